"""Vectors of words in their sentence, from language models in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.base import Estimator, NoTarget, TargetCodec
from castalia.errors import InvalidParameter
from castalia.models.language.pretrained.elmo_parameters import ELMoSizes
from castalia.nn.attention import masked_mean
from castalia.objectives import BidirectionalLM, Objective
from castalia.protocols import Spec
from castalia.utils.text import listing

__all__ = ["ELMo"]

DIRECTIONS = ("both", "forward", "backward")
LOGITS = 1 << 24  # scores of a direction held at once


@dataclass(kw_only=True, eq=False, repr=False)
class ELMo(ELMoSizes, Estimator):
    """Recurrent language models in both directions, whose layers are vectors of the words.

    One LSTM predicts each token from those before it, another from those after it, on one layer of
    tokens and one output layer; the sum of the two means of -log p is minimised. The vectors of a
    word, one a layer, then depend on its whole sentence, unlike those of ``Word2Vec``: a bank is
    another thing by a river. Lower layers know more of grammar, higher ones of meaning; a task
    mixes them, as ``ELMoClassifier(start=…)`` and ``ELMoTagger(start=…)`` do. ``BERT`` reads both
    sides at once and needs more text and time.

    Parameters
    ----------
    tokenizer
        A tokenizer, fitted or not, or the name of one; None: words and punctuation marks. A
        ``start`` has its own.
    context
        Most tokens of a sentence, begin and end included; longer ones are cut.
    dim, depth
        Width of each direction and number of its layers; not used with a ``start``.
    hidden
        Cells of an LSTM, projected to ``dim``; None: ``dim``, not projected.
    spelled
        Whether a token's vector is made of how it is written, by convolutions over its bytes as in
        the paper, instead of looked up in a table: then words never met have vectors, too.
    dropout
        Probability for the vectors of tokens and the output of each layer.
    start
        What to continue from: a fitted ELMo or the folder of a saved one; None: random weights.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.language.ELMo``; ``module_.layers(rows)`` gives all vectors.
    adapter_ : SentenceAdapter
        Holds the fitted ``tokenizer``.
    encoder_ : dict
        Sizes of the network.
    history_ : list of dict
        Losses of every epoch; ``loss`` is the sum of both directions.

    Shapes
    ------
    X: n texts, best of one sentence each, or n lists of words.  ``embed``: n arrays (T, 2 dim).
    ``transform``: (n, 2 dim).

    Notes
    -----
    The steps of a sentence are done one after the other: time grows with the longest sentence. A
    spelled token costs some thousand times a lookup.

    References
    ----------
    2018, Peters, Neumann, Iyyer, Gardner, Clark, Lee, Zettlemoyer, Deep contextualized word
    representations, arXiv 1802.05365.

    See Also
    --------
    RNNLanguageModel : one direction, to write texts.
    BERT : attention to both sides at once.
    ELMoClassifier, ELMoTagger : a task on its vectors.

    Examples
    --------
    >>> from castalia.testing.toys import chain
    >>> X, _ = chain(100)
    >>> model = ELMo(dim=16, epochs=2, random_state=0).fit(X)
    >>> [vectors.shape for vectors in model.embed(["a b c", "a"])]
    [(3, 32), (1, 32)]
    """

    codec: ClassVar[TargetCodec] = NoTarget()

    def _network(self, spec: Spec) -> nn.Module:
        return self._encoder(spec, predicts=True, dropout=self.dropout)

    def _objective(self, spec: Spec) -> Objective:
        return BidirectionalLM(pad=spec.extra["padding"])

    def _blocks(self, X: Any) -> Iterator[Tensor]:
        """Yield rows on the network's device, which is set to evaluation mode."""
        check_is_fitted(self, "module_")
        device = next(self.module_.eval().parameters()).device
        for rows in self.adapter_.blocks(self.adapter_.check(X, type(self).__name__), None):
            yield rows.to(device)

    # -- vectors -------------------------------------------------------------------------------

    def embed(self, X: Any, *, layer: int | str = "mean", pool: str | None = None) -> Any:
        """Return a vector for each token, which depends on its sentence: n arrays (T, 2 dim).

        Parameters
        ----------
        X
            Texts; or lists of words, and the vectors are those of each word's first piece.
        layer
            0 is the token by itself, twice; 1 to ``depth`` are the two directions side by side, -1
            the last; ``"mean"`` is the mean of all.
        pool
            None, or ``"mean"`` over the tokens: an array (n, 2 dim).
        """
        if pool not in (None, "mean"):
            raise InvalidParameter(f"embed: `pool` must be None or 'mean'; got {pool!r}.")
        vectors: list[np.ndarray] = []
        for rows in self._blocks(X):
            with torch.inference_mode():
                h = self._chosen(self.module_.layers(rows), layer).float()  # type: ignore[operator]
            inside = rows[:, 1] > 0  # (B, T), first pieces of words
            if pool is None:
                vectors += [row[real].cpu().numpy() for row, real in zip(h, inside, strict=True)]
            else:
                vectors += [masked_mean(h, inside).cpu().numpy()]
        return vectors if pool is None else np.concatenate(vectors)

    def _chosen(self, found: list[Tensor], layer: int | str) -> Tensor:
        if layer == "mean":
            return torch.stack(found).mean(dim=0)
        if not isinstance(layer, int) or not -len(found) <= layer < len(found):
            raise InvalidParameter(
                f"embed: `layer` must be 'mean', from 0 to {len(found) - 1}, or from -{len(found)} "
                f"to -1; got {layer!r}."
            )
        return found[layer]

    def transform(self, X: Any) -> np.ndarray:
        """Return the mean over the tokens of the mean of their layers, (n, 2 dim)."""
        return self.embed(X, pool="mean")

    # -- scoring -------------------------------------------------------------------------------

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of a token over both directions, in nats."""
        return -float(np.mean(self._losses(X)))

    def perplexity(self, X: Any, *, direction: str = "both") -> float:
        """Return exp of the mean of -log p of the tokens and of a sentence's end (or begin)."""
        if direction not in DIRECTIONS:
            raise InvalidParameter(
                f"perplexity: `direction` must be {listing(DIRECTIONS)}; got {direction!r}."
            )
        ahead, back = self._losses(X)
        mean = {"forward": ahead, "backward": back, "both": (ahead + back) / 2}[direction]
        return float(np.exp(mean))

    def _losses(self, X: Any) -> tuple[float, float]:
        """Return the mean of -log p of a token, forwards and backwards."""
        check_is_fitted(self, "module_")
        objective = BidirectionalLM(pad=self.adapter_.padding)
        total, count = np.zeros(2), 0
        for block in self._blocks(X):
            for rows in block.split(max(1, LOGITS // (block.shape[2] * self.adapter_.vocabulary))):
                with torch.inference_mode():
                    ahead, back, counted = objective.losses(self.module_, rows)
                total += [float(losses[counted].double().sum()) for losses in (ahead, back)]
                count += int(counted.sum())
        return float(total[0] / count), float(total[1] / count)
