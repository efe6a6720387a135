"""Encoders that learn from unlabelled texts by guessing hidden tokens."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.base import Estimator, Interval, NoTarget, OneOf, TargetCodec
from castalia.data.text import PairAdapter
from castalia.data.tokenizers import Tokenizer
from castalia.errors import CheckpointMismatch, InvalidParameter
from castalia.models.language.generated_text import check_setting
from castalia.models.language.pretrained.encoder_parameters import EncoderSizes, sizes_of
from castalia.models.language.pretrained.start_weights import StartReader
from castalia.nets import language as nets
from castalia.nets.language.heads import segments_of
from castalia.nn.attention import masked_mean
from castalia.objectives import MaskedLM, NextSentence, Objective
from castalia.protocols import Spec

__all__ = ["BERT", "RoBERTa"]

_ROLES = ("pad", "unknown", "begin", "end", "mask")


@dataclass(kw_only=True, eq=False, repr=False)
class MaskedEncoder(EncoderSizes, Estimator):
    """Base of encoders pretrained by masked tokens.

    Parameters
    ----------
    rate
        Share of a text's tokens that are hidden and guessed.
    """

    codec: ClassVar[TargetCodec] = NoTarget()

    rate: Annotated[float, Interval(0, 1, closed="right")] = 0.15

    def _masked(self, spec: Spec) -> MaskedLM:
        tokenizer = self.adapter_.tokenizer
        known = [tokenizer.find_id(role) for role in _ROLES]
        return MaskedLM(
            spec.extra["vocabulary"],
            mask=tokenizer.id_of("mask"),
            pad=spec.extra["padding"],
            special=[number for number in known if number is not None],
            rate=self.rate,
        )

    def _joined(self) -> PairAdapter:
        """Return the adapter for reading, which joins the texts of a pair."""
        check_is_fitted(self, "module_")
        made = copy.copy(self.adapter_)
        made.apart = False
        return made

    def _read(self, X: Any) -> Iterator[tuple[Tensor, list[Tensor]]]:
        """Yield ids and the outputs of all layers, block by block, on the CPU."""
        adapter = self._joined()
        device = next(self.module_.parameters()).device
        net: Any = self.module_.eval()
        for ids in adapter.blocks(adapter.check(X, type(self).__name__), None):
            with torch.inference_mode():
                on = ids.to(device)
                found = net.layers(on, self._segments(on), keep=on != adapter.padding)
            yield ids, [h.float().cpu() for h in found]

    def _segments(self, ids: Tensor) -> Tensor | None:
        net: Any = self.module_
        if net.segments.num_embeddings == 1 or net.offset:  # RoBERTa has none
            return None
        return segments_of(ids, end=self.adapter_.end, padding=self.adapter_.padding)

    def embed(
        self,
        X: Any,
        *,
        layers: int | Sequence[int] = -1,
        merge: str = "concat",
        pool: str | None = "mean",
    ) -> Any:
        """Return vectors of texts, (n, D), or of their tokens.

        Parameters
        ----------
        X
            Texts, or pairs of texts.
        layers
            Which layers: 0 the embeddings, -1 the last block; several are merged.
        merge
            How several layers become one: ``"concat"``, ``"sum"`` or ``"mean"``.
        pool
            ``"mean"`` over the tokens, ``"first"`` token, or None: a list of (T, D) for the tokens
            of each text, begin and end included.
        """
        for name, value, known in (
            ("merge", merge, ("concat", "sum", "mean")),
            ("pool", pool, ("mean", "first", None)),
        ):
            if value not in known:
                raise InvalidParameter(
                    f"embed: `{name}` must be one of {', '.join(map(repr, known))}; got {value!r}."
                )
        chosen = [layers] if isinstance(layers, int) else list(layers)
        vectors: list[Any] = []
        for ids, found in self._read(X):
            h = _merged([self._layer(found, layer) for layer in chosen], merge)  # (B, T, D)
            keep = ids != self.adapter_.padding
            if pool is None:
                vectors += [row[real].numpy() for row, real in zip(h, keep, strict=True)]
            elif pool == "first":
                vectors += [h[:, 0].numpy()]
            else:
                vectors += [masked_mean(h, keep).numpy()]
        return vectors if pool is None else np.concatenate(vectors)

    def _layer(self, found: list[Tensor], layer: int) -> Tensor:
        if not -len(found) <= layer < len(found):
            raise InvalidParameter(
                f"embed: `layers` must be from 0 to {len(found) - 1}, or from -{len(found)} to -1; "
                f"got {layer}."
            )
        return found[layer]

    def transform(self, X: Any) -> np.ndarray:
        """Return the mean vector of each text's tokens in the last layer, (n, dim)."""
        return self.embed(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the share of hidden tokens guessed right, each text hidden the same every time."""
        adapter, right, total = self._joined(), 0, 0
        masked, source = self._masked(self.spec_), torch.Generator().manual_seed(0)
        device = next(self.module_.parameters()).device
        self.module_.eval()
        for ids in adapter.blocks(adapter.check(X, type(self).__name__), None):
            found = masked.damage(ids, source)
            segments = self._segments(ids)
            with torch.inference_mode():
                on = [None if t is None else t.to(device) for t in (found.ids, segments)]
                logits = self.module_(*on, keep=(ids != adapter.padding).to(device)).cpu()
            guessed = logits.argmax(dim=-1).gather(1, found.places)
            right += int(((guessed == found.targets) & found.counted).sum())
            total += int(found.counted.sum())
        return right / total

    def fill(self, text: str, top: int = 5) -> list[tuple[str, float]]:
        """Return the most probable tokens at the first mask of a text, with their probabilities.

        Parameters
        ----------
        text
            A text that holds the tokenizer's mask, such as ``[MASK]``.
        top
            How many.
        """
        name = f"{type(self).__name__}.fill"
        check_setting("top", top, Interval(1, whole=True), name)
        adapter = self._joined()
        tokenizer: Any = adapter.tokenizer
        mask = tokenizer.id_of("mask")
        read = tokenizer.encode(text, special=True) if isinstance(text, str) else []
        if mask not in read:
            raise InvalidParameter(
                f"{name}: `text` must be a text that holds {tokenizer.decode([mask], special=True)}"
                f", the mask of the tokenizer; got {text!r}."
            )
        ids = [tokenizer.id_of("begin"), *read, adapter.end]
        device = next(self.module_.parameters()).device
        self.module_.eval()
        with torch.inference_mode():
            logits = self.module_(torch.tensor([ids], device=device))[0, ids.index(mask)]
        best = logits.float().softmax(dim=-1).cpu().topk(min(top, len(tokenizer)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [(tokenizer.decode([i], special=True), p) for i, p in pairs]

    @classmethod
    def from_pretrained(cls, path: str | os.PathLike[str]) -> Self:
        """Return a fitted estimator from a Hugging Face folder."""
        net: Any = nets.load_pretrained(path, extra="ignore")
        kind = "RoBERTa" if getattr(net, "offset", 0) else type(net).__name__
        if kind != cls.__name__:
            raise CheckpointMismatch(
                f"{cls.__name__}.from_pretrained: `{path}` must hold a {cls.__name__}; it holds a "
                f"{kind}."
            )
        made = cls(context=net.context, dim=net.dim, depth=len(net.blocks), heads=net.heads)
        made.adapter_ = PairAdapter(context=net.context)
        made.adapter_.double = net.offset > 0
        made.adapter_.adopt(Tokenizer.load(Path(path)))
        made.encoder_ = sizes_of(net)
        extra = {**made.adapter_.extra, "vocabulary": net.vocabulary}
        made.spec_ = Spec(1, 0, extra=extra)
        made.module_, made.history_, made.n_iter_ = net, [], 0
        made.pretrained_ = True
        return made

    def save_pretrained(self, path: str | os.PathLike[str]) -> Path:
        """Write network and tokenizer as a folder that Hugging Face's libraries read."""
        check_is_fitted(self, "module_")
        tokenizer = self.adapter_.exported()
        return nets.save_pretrained(self.module_, path, tokenizer=tokenizer)


def _merged(layers: list[Tensor], merge: str) -> Tensor:
    if merge == "concat":
        return torch.cat(layers, dim=-1)
    together = torch.stack(layers)
    return together.sum(dim=0) if merge == "sum" else together.mean(dim=0)


@dataclass(kw_only=True, eq=False, repr=False)
class BERT(MaskedEncoder):
    """Transformer encoder that learns a language from unlabelled texts.

    Of each text 15 % of the tokens are masked, others every time, and predicted from both sides:
    the mean of -log p(token | the damaged text) is minimised; with ``next_sentence`` also that of
    whether one text follows another. What it has learnt is used through ``transform`` and
    ``embed``, or by ``BERTClassifier(start=…)`` and its like. Right before a task with few labels
    and much text; for writing texts use ``GPTLanguageModel``.

    Parameters
    ----------
    tokenizer
        A tokenizer with a mask token, fitted or not, or the name of one; None: word pieces.
    context
        Most tokens of a text; longer ones are cut.
    dim, depth, heads
        Width of the vectors, number of blocks and attention heads; not used with a ``start``.
    hidden
        Units of the position-wise networks; None: 4 ``dim``.
    dropout
        Probability for embeddings, attention weights and the output of each part.
    start
        What to continue from: a fitted ``BERT``, the folder of a saved one, or a Hugging Face
        folder; None: random weights.
    batch_tokens
        Most tokens of a batch, padding included; short texts then make batches of more rows.
        None: batches of ``batch_size`` rows.
    rate
        Share of a text's tokens that are hidden.
    next_sentence
        Whether pairs are judged too. X then holds pairs of texts that follow each other, as
        ``castalia.data.text.sentence_pairs`` makes them; half are exchanged at random.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.BERT``; ``module_(ids)`` gives the tokens' logits.
    adapter_ : PairAdapter
        Holds the fitted ``tokenizer``.
    encoder_ : dict
        Sizes of the network.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: n texts, or n pairs of texts.  ``transform``: (n, dim).

    Notes
    -----
    A step costs 6 operations a weight and token, the head only at the hidden places. Masks are
    drawn on the device; validation texts are hidden the same way after every epoch.

    References
    ----------
    2019, Devlin, Chang, Lee, Toutanova, BERT: pre-training of deep bidirectional transformers,
    arXiv 1810.04805.

    See Also
    --------
    RoBERTa : without pairs, on bytes.
    BERTClassifier : a label for each text.

    Examples
    --------
    >>> from castalia.testing.toys import chain
    >>> X, _ = chain(100)
    >>> model = BERT(context=16, dim=16, depth=1, heads=2, epochs=2, random_state=0).fit(X)
    >>> model.transform(X).shape
    (100, 16)
    """

    adapter: ClassVar[Any] = StartReader(PairAdapter, apart="next_sentence")

    next_sentence: Annotated[bool, OneOf(True, False)] = False

    def _network(self, spec: Spec) -> nn.Module:
        pairs = self.next_sentence
        return self._encoder(spec, masked=True, pooler=pairs, next_sentence=pairs)

    def _objective(self, spec: Spec) -> Objective:
        masked = self._masked(spec)
        if not self.next_sentence:
            return masked
        return NextSentence(masked, begin=spec.extra["begin"], end=spec.extra["end"])


@dataclass(kw_only=True, eq=False, repr=False)
class RoBERTa(MaskedEncoder):
    """BERT's network by a simpler recipe: masked tokens only, drawn each time, on byte pieces.

    No pairs of sentences, masks that differ every time a text is seen, and a vocabulary of bytes
    that knows every text; the mean of -log p(token | the damaged text) is minimised. Wants larger
    batches and more text than BERT, and then beats it.

    Parameters
    ----------
    tokenizer
        A tokenizer with a mask token, fitted or not, or the name of one; None: byte BPE.
    start
        What to continue from: a fitted ``RoBERTa``, the folder of a saved one, or a Hugging Face
        folder; None: random weights.
    context, dim, depth, heads, hidden, dropout, batch_tokens, rate
        As for ``BERT``.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.BERT`` with RoBERTa's settings.
    adapter_ : PairAdapter
        Holds the fitted ``tokenizer``.
    encoder_ : dict
        Sizes of the network.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: n texts.  ``transform``: (n, dim).

    Notes
    -----
    Costs what ``BERT`` costs.

    References
    ----------
    2019, Liu et al., RoBERTa: a robustly optimized BERT pretraining approach, arXiv 1907.11692.

    See Also
    --------
    BERT : with pairs of sentences, on word pieces.

    Examples
    --------
    >>> from castalia.testing.toys import chain
    >>> X, _ = chain(100)
    >>> model = RoBERTa(context=16, dim=16, depth=1, heads=2, epochs=2, random_state=0).fit(X)
    >>> len(model.fill("a b <mask>", top=3))
    3
    """

    _family: ClassVar[str] = "roberta"

    def _network(self, spec: Spec) -> nn.Module:
        return self._encoder(spec, masked=True, pooler=False, next_sentence=False)

    def _objective(self, spec: Spec) -> Objective:
        return self._masked(spec)
