"""Encoders with decoders that are pretrained on damaged texts and fine-tuned on pairs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from castalia.base import Estimator, Interval, Target, TargetCodec
from castalia.data.text import PairAdapter
from castalia.data.tokenizers import sentinels
from castalia.errors import InvalidParameter
from castalia.models.language.pretrained.start_weights import (
    STARTS,
    Given,
    read_start,
    refuse_forgetting,
)
from castalia.models.language.seq2seq.text_to_text import AnswerCodec, TextToText
from castalia.nets import language as nets
from castalia.objectives import Denoising, Objective, SequenceCrossEntropy, SpanCorruption
from castalia.protocols import Spec

__all__ = ["BART", "T5"]

SENTINELS = 100
_ROLES = ("pad", "unknown", "begin", "end", "mask")


class DenoiserCodec(AnswerCodec):
    """Answers, or none: then texts are damaged and mended, ``pretraining_``."""

    required = False

    def check(self, est: Any, adapter: PairAdapter, X: np.ndarray, y: Any) -> np.ndarray:
        """Return the answers, or zeros; in ``fit`` the tokenizer is learnt here."""
        est.pretraining_ = y is None
        if y is not None:
            return super().check(est, adapter, X, y)
        self.learn_tokenizer(est, adapter, X)
        return np.zeros(len(X), dtype=np.int64)

    def fit(
        self, est: Any, adapter: PairAdapter, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> Target:
        """Learn how long answers are."""
        if not est.pretraining_:
            return super().fit(est, adapter, X, y, weight)
        est.answer_tokens_ = est.context
        return Target(torch.from_numpy(y), 0, weight)

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Encode further answers."""
        return Target(torch.from_numpy(y), 0) if est.pretraining_ else super().encode(est, y)


@dataclass(kw_only=True, eq=False, repr=False)
class Denoiser(TextToText, Estimator):
    """Base of encoder–decoders that learn from texts alone when there is no y.

    Parameters
    ----------
    dropout
        Probability for embeddings, attention weights and the output of each part.
    label_smoothing
        Share of a token's mass that is spread over the vocabulary, when there is a y.
    start
        What to continue from; None: random weights.
    """

    codec: ClassVar[TargetCodec] = DenoiserCodec()
    _kind: ClassVar[type]

    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.1
    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    start: Annotated[Any, STARTS] = None

    def _sizes(self, spec: Spec) -> dict[str, Any]:
        """Return the arguments of a new network."""
        raise NotImplementedError

    def _sizes_of(self, net: Any) -> dict[str, Any]:
        """Return the arguments that build such a network, as plain values."""
        raise NotImplementedError

    def _damage(self, spec: Spec) -> Objective:
        """Return the objective on texts alone."""
        raise NotImplementedError

    def _reader(self) -> PairAdapter:
        refuse_forgetting(self)
        self._opened = self._open()
        made = super()._reader()
        if self._opened is not None:
            made.asked = self._opened.tokenizer
        return made

    def _open(self) -> Given | None:
        """Return the network and the tokenizer of the start."""
        given, name = read_start(self.start), type(self).__name__
        if given is not None and type(given.net) is not self._kind:
            raise InvalidParameter(
                f"{name}: `start` must hold a {self._kind.__name__}; got {self.start!r} with a "
                f"{type(given.net).__name__}."
            )
        if given is not None and given.tokenizer is None:
            raise InvalidParameter(
                f"{name}: `start` must hold a tokenizer; {self.start!r} has no tokenizer.json."
            )
        return given

    def _network(self, spec: Spec) -> nn.Module:
        if hasattr(self, "n_iter_") and not hasattr(self, "module_"):  # it is being loaded
            return self._kind(**vars(self)["sizes_"], dropout=self.dropout)
        opened = getattr(self, "_opened", None)
        self.sizes_ = self._sizes(spec) if opened is None else self._sizes_of(opened.net)
        net: nn.Module = self._kind(**self.sizes_, dropout=self.dropout)
        if opened is not None:
            given = opened.net
            net.to(next(given.parameters()).dtype).load_state_dict(given.state_dict())
        self._opened = None
        return net

    def _objective(self, spec: Spec) -> Objective:
        if self.pretraining_:
            return self._damage(spec)
        return SequenceCrossEntropy(
            **self._ids(spec), label_smoothing=self.label_smoothing, per=self.usual_tokens_
        )

    @classmethod
    def from_pretrained(cls, path: str | os.PathLike[str]) -> Self:
        """Return a fitted estimator from a Hugging Face folder."""
        made = cls(start=path)
        given: Any = made._open()
        net, made.start = given.net, None
        made.adapter_ = PairAdapter(context=made.context).adopt(given.tokenizer)
        made.adapter_.special = cls._special_meant
        made.sizes_ = made._sizes_of(net)
        made.spec_ = Spec(1, 0, extra={**made.adapter_.extra, "vocabulary": net.vocabulary})
        made.module_, made.history_, made.n_iter_ = net, [], 0
        made.answer_tokens_, made.pretraining_ = made.context, True
        made.pretrained_ = True
        return made

    def save_pretrained(self, path: str | os.PathLike[str]) -> Path:
        """Write network and tokenizer as a folder that Hugging Face's libraries read."""
        check_is_fitted(self, "module_")
        tokenizer = self.adapter_.exported()
        return nets.save_pretrained(self.module_, path, tokenizer=tokenizer)


@dataclass(kw_only=True, eq=False, repr=False)
class T5(Denoiser):
    """Text-to-text transformer: every task is a text that answers a text.

    Without y it is pretrained: stretches of each text are cut out, and the answer puts them back.
    With y the mean of -log p(answer | text) is minimised; a task is named by a prefix of the
    source, as ``"translate English to German: …"``. Right where one model shall do several tasks.

    Parameters
    ----------
    tokenizer
        A tokenizer with an end and sentinels ``<extra_id_0>`` …, fitted or not, or the name of one;
        None: BPE. A ``start`` has its own.
    dim, depth, heads, head_dim
        Width of the vectors, blocks of each half, attention heads and the width of one.
    hidden
        Units of the position-wise networks.
    start
        What to continue from: a fitted ``T5``, the folder of a saved one, or a Hugging Face folder;
        None: random weights.
    rate, mean_span
        Share of the tokens that are cut out, and the mean length of a stretch.
    context, beams, length_penalty, batch_tokens
        As for ``Transformer``.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.T5``; ``module_(ids, decoder_ids)``.
    adapter_ : PairAdapter
        Holds the fitted ``tokenizer``.
    pretraining_ : bool
        Whether the last fit was one without y.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: n texts.  y: n texts, or None.  ``predict``: (n,) texts.

    Notes
    -----
    Texts are read as ``text </s>``; an answer begins with padding, as in the published weights.
    Sentinels and ``</s>`` written in a text are meant, and an answer to a text with sentinels, such
    as ``"The <extra_id_0> walks."``, names those that it fills.

    References
    ----------
    2020, Raffel et al., Exploring the limits of transfer learning with a unified text-to-text
    transformer, arXiv 1910.10683.

    See Also
    --------
    BART : whole texts are written again.
    Transformer : without pretraining.

    Examples
    --------
    >>> from castalia.testing.toys import reversal
    >>> X, y = reversal(60)
    >>> small = {"dim": 16, "depth": 1, "heads": 2, "head_dim": 8, "hidden": 32, "random_state": 0}
    >>> base = T5(tokenizer="whitespace", epochs=1, **small).fit(X)
    >>> len(T5(start=base, epochs=1, **small).fit(X, y).predict(X[:3]))
    3
    """

    _kind: ClassVar[type] = nets.T5
    _special: ClassVar[tuple[str, ...]] = ("<pad>", "</s>", "<unk>", *sentinels(SENTINELS))
    _special_meant: ClassVar[bool] = True

    dim: Annotated[int, Interval(1, whole=True)] = 256
    depth: Annotated[int, Interval(1, whole=True)] = 3
    heads: Annotated[int, Interval(1, whole=True)] = 4
    head_dim: Annotated[int, Interval(1, whole=True)] = 64
    hidden: Annotated[int, Interval(1, whole=True)] = 1024
    rate: Annotated[float, Interval(0, 1, closed="neither")] = 0.15
    mean_span: Annotated[float, Interval(1)] = 3.0

    def _start_of(self, adapter: PairAdapter) -> int:
        return adapter.padding

    def _words(self, adapter: PairAdapter, ids: list[int], source: str) -> str:
        """Return an answer, with its sentinels where the text has some."""
        tokenizer: Any = adapter.tokenizer
        kept = "<extra_id_" in source
        words: str = tokenizer.decode([i for i in ids if i != adapter.padding], special=kept)
        return words

    def _sizes(self, spec: Spec) -> dict[str, Any]:
        own = ("dim", "depth", "heads", "head_dim", "hidden")
        return {"vocabulary": spec.extra["vocabulary"], **{n: getattr(self, n) for n in own}}

    def _sizes_of(self, net: nets.T5) -> dict[str, Any]:
        own = ("vocabulary", "dim", "heads", "head_dim", "hidden", "activation", "gated", "scaled")
        bias = net.encoder_bias
        return {
            **{name: getattr(net, name) for name in own},
            "depth": len(net.encoder),
            "decoder_depth": len(net.decoder),
            "buckets": bias.buckets,
            "furthest": bias.furthest,
            "tied": net.output is None,
            "eps": net.eps,
        }

    def _damage(self, spec: Spec) -> Objective:
        tokenizer = self.adapter_.tokenizer
        known = [tokenizer.find_id(name) for name in sentinels(SENTINELS)]
        return SpanCorruption(
            [number for number in known if number is not None],
            **self._ids(spec),
            end=spec.extra["end"],
            rate=self.rate,
            mean_span=self.mean_span,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class BART(Denoiser):
    """Encoder and decoder that learn to write damaged texts whole again.

    Without y it is pretrained: stretches of each text become one mask, tokens are deleted,
    sentences change places, and the mean of -log p(whole text | damaged text) is minimised. With y
    it learns to answer texts. Right for writing tasks (summaries, translation) with few pairs.

    Parameters
    ----------
    tokenizer
        A tokenizer with begin, end and mask, fitted or not, or the name of one; None: byte BPE. A
        ``start`` has its own.
    dim, depth, heads
        Width of the vectors, blocks of each half, and attention heads.
    hidden
        Units of the position-wise networks; None: 4 ``dim``.
    start
        What to continue from: a fitted ``BART``, the folder of a saved one, or a Hugging Face
        folder; None: random weights.
    infilled, mean_span
        Share of the tokens covered by stretches that become one mask, and their mean length.
    masked, deleted
        Shares of single tokens that become the mask, and that disappear.
    sentence_ends
        Pieces after which a sentence is over; sentences then change places. Empty: they stay.
    context, beams, length_penalty, batch_tokens
        As for ``Transformer``.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.BART``; ``module_(ids, decoder_ids)``.
    adapter_, pretraining_, history_
        As for ``T5``.

    Shapes
    ------
    X: n texts.  y: n texts, or None.  ``predict``: (n,) texts.

    Notes
    -----
    Texts are read as ``<s> text </s>``; an answer begins with ``</s>``, as in the published
    weights.

    References
    ----------
    2020, Lewis et al., BART: denoising sequence-to-sequence pre-training, arXiv 1910.13461.

    See Also
    --------
    T5 : writes only what was cut out.

    Examples
    --------
    >>> from castalia.testing.toys import reversal
    >>> X, y = reversal(60)
    >>> small = {"dim": 16, "depth": 1, "heads": 2, "random_state": 0, "epochs": 1}
    >>> base = BART(tokenizer="whitespace", **small).fit(X)
    >>> len(BART(start=base, **small).fit(X, y).predict(X[:3]))
    3
    """

    _kind: ClassVar[type] = nets.BART
    _default_tokenizer: ClassVar[str] = "byte-bpe"
    _special: ClassVar[tuple[str, ...]] = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")

    dim: Annotated[int, Interval(1, whole=True)] = 256
    depth: Annotated[int, Interval(1, whole=True)] = 3
    heads: Annotated[int, Interval(1, whole=True)] = 4
    hidden: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    infilled: Annotated[float, Interval(0, 1, closed="left")] = 0.3
    mean_span: Annotated[float, Interval(1)] = 3.0
    masked: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    deleted: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    sentence_ends: tuple[str, ...] = ()

    def _start_of(self, adapter: PairAdapter) -> int:
        return adapter.end

    def _sizes(self, spec: Spec) -> dict[str, Any]:
        own = ("dim", "depth", "heads", "hidden")
        room = 2 * self.context  # inserted masks make a damaged text longer
        sizes = {"vocabulary": spec.extra["vocabulary"], "context": room}
        return {**sizes, **{name: getattr(self, name) for name in own}}

    def _sizes_of(self, net: nets.BART) -> dict[str, Any]:
        own = ("vocabulary", "context", "dim", "heads", "hidden", "activation", "scaled")
        depths = {"depth": len(net.encoder), "decoder_depth": len(net.decoder)}
        return {**{name: getattr(net, name) for name in own}, **depths}

    def _damage(self, spec: Spec) -> Objective:
        tokenizer = self.adapter_.tokenizer
        known = [tokenizer.find_id(role) for role in _ROLES if role != "unknown"]
        return Denoising(
            mask=tokenizer.id_of("mask"),
            **self._ids(spec),
            special=[number for number in known if number is not None],
            infilled=self.infilled,
            mean_span=self.mean_span,
            masked=self.masked,
            deleted=self.deleted,
            sentence_ends=[tokenizer.id_of(piece) for piece in self.sentence_ends],
        )
