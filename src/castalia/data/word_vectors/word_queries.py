"""Questions to word vectors: nearest words, analogies, agreement with people.

Likeness is the cosine of the angle between two vectors. Shapes: V words, D dim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import nn

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.utils.text import did_you_mean

__all__ = ["Projection", "WordQueries", "WordVectors"]

Question = tuple[str, str, str, str]


class Projection(NamedTuple):
    """Words on a plane."""

    words: list[str]
    points: np.ndarray
    explained: np.ndarray


class WordQueries:
    """What can be asked of anything with ``words_`` and ``vectors_``."""

    words_: list[str]
    vectors_: np.ndarray

    def embed(self, words: str | Sequence[str]) -> np.ndarray:
        """Return the vector of a word, (D,), or those of several, (n, D)."""
        if isinstance(words, str):
            return self._vector(words)
        return np.stack([self._vector(word) for word in words])

    def similarity(self, first: str, second: str) -> float:
        """Return the cosine between the vectors of two words."""
        one, other = _unit(self.embed([first, second]))
        return float(one @ other)

    def most_similar(self, word: str | np.ndarray, n: int = 10) -> list[tuple[str, float]]:
        """Return the nearest words and their cosines, best first; not the word itself."""
        vector = self._vector(word) if isinstance(word, str) else np.asarray(word)
        return self._nearest(vector, [word] if isinstance(word, str) else [], n)

    def analogy(self, a: str, b: str, c: str, n: int = 1) -> list[tuple[str, float]]:
        """Return what is to c as b is to a: the words nearest to b - a + c, none of the three."""
        one, two, three = _unit(self.embed([a, b, c]))
        return self._nearest(two - one + three, [a, b, c], n)

    def evaluate_similarity(self, pairs: Iterable[tuple[str, str, float]]) -> dict[str, float]:
        """Compare cosines with people's judgements.

        Parameters
        ----------
        pairs
            Two words and how alike people find them, such as those of WordSim-353.

        Returns
        -------
        dict
            ``correlation``, Spearman's; ``pairs``, how many were judged; ``unknown``, how many
            were left out, having a word without a vector.
        """
        index, unit = self._lookup()
        given = [(a, b, score) for a, b, score in pairs]
        known = [(index[a], index[b], s) for a, b, s in given if a in index and b in index]
        if len(known) < 2:
            raise InvalidData(
                f"{type(self).__name__}: at least two pairs must have known words; got "
                f"{len(known)} of {len(given)}."
            )
        first, second, people = (np.array(column) for column in zip(*known, strict=True))
        cosines = (unit[first] * unit[second]).sum(axis=1)
        correlation = float(spearmanr(cosines, people)[0])
        missing = float(len(given) - len(known))
        return {"correlation": correlation, "pairs": float(len(known)), "unknown": missing}

    def evaluate_analogies(
        self, questions: Mapping[str, Sequence[Question]] | Sequence[Question]
    ) -> dict[str, float]:
        """Return the share of analogies answered right, ``total`` and by section.

        Parameters
        ----------
        questions
            Four words each, a : b = c : d; a list, or lists by the name of their section. Those
            with a word that has no vector are left out.

        Returns
        -------
        dict
            ``total``, ``questions`` (how many were asked), and the share of every section that
            had one.
        """
        sections = questions if isinstance(questions, Mapping) else {"": questions}
        index, unit = self._lookup()
        right = {name: _right(unit, index, asked) for name, asked in sections.items()}
        every = np.concatenate([np.zeros(0, bool), *right.values()])
        if not len(every):
            raise InvalidData(
                f"{type(self).__name__}: at least one analogy must have known words; got none."
            )
        shares = {name: float(found.mean()) for name, found in right.items() if name and len(found)}
        return {"total": float(every.mean()), "questions": float(len(every)), **shares}

    def project(self, words: Sequence[str] | None = None) -> Projection:
        """Project vectors on their two principal components.

        Returns
        -------
        Projection
            ``words``, ``points`` of shape (n, 2), and ``explained``, the share of the variance
            that each component holds.
        """
        chosen = list(self.words_ if words is None else words)
        vectors = self.embed(chosen).astype(np.float64)
        if min(vectors.shape) < 2:
            raise InvalidData(
                f"{type(self).__name__}: at least two words and dim 2 are needed to project; got "
                f"{len(chosen)} and {vectors.shape[1]}."
            )
        centred = vectors - vectors.mean(axis=0)
        left, scale, _ = np.linalg.svd(centred, full_matrices=False)
        total = max(float((scale**2).sum()), np.finfo(float).tiny)
        return Projection(chosen, left[:, :2] * scale[:2], scale[:2] ** 2 / total)

    def embedding(self, *, frozen: bool = True) -> nn.Embedding:
        """Return a layer that looks vectors up by the number of the word.

        Parameters
        ----------
        frozen
            Whether training leaves the vectors as they are; otherwise it fine-tunes a copy.
        """
        self._lookup()
        return nn.Embedding.from_pretrained(torch.tensor(self.vectors_), freeze=frozen)

    # -- looking up ----------------------------------------------------------------------------

    def _vector(self, word: str) -> np.ndarray:
        index = self._lookup()[0]
        if word not in index:
            raise InvalidData(
                f"{type(self).__name__}: the word must be one of {len(index):,} known ones; got "
                f"{word!r}.{did_you_mean(str(word), list(index)[:20_000])}"
            )
        return self.vectors_[index[word]]

    def _lookup(self) -> tuple[dict[str, int], np.ndarray]:
        """Return the words' numbers and the vectors of length 1, made when first asked for."""
        kept: Any = self.__dict__.get("_kept")
        if kept is None or kept[0] is not self.vectors_:
            index = {word: i for i, word in enumerate(self.words_)}
            kept = (self.vectors_, index, _unit(self.vectors_))
            self.__dict__["_kept"] = kept
        return kept[1], kept[2]

    def _nearest(
        self, vector: np.ndarray, without: Sequence[str], n: int
    ) -> list[tuple[str, float]]:
        if not isinstance(n, int | np.integer) or n < 1:
            raise InvalidParameter(
                f"{type(self).__name__}: `n` must be a whole number of at least 1; got {n!r}."
            )
        index, unit = self._lookup()
        if vector.shape != unit.shape[1:]:
            raise ShapeMismatch(
                f"{type(self).__name__}: a vector must have the shape {unit.shape[1:]}; got "
                f"{vector.shape}."
            )
        cosines = unit @ _unit(vector.astype(unit.dtype))
        cosines[[index[word] for word in without if word in index]] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:n]
        return [(self.words_[i], float(cosines[i])) for i in best if cosines[i] > -np.inf]

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_kept"}


class WordVectors(WordQueries):
    """Words with their vectors, such as a file of word2vec holds.

    Parameters
    ----------
    words
        V different words.
    vectors
        Their vectors, (V, D).

    Attributes
    ----------
    words_ : list of str
    vectors_ : ndarray, (V, D)

    Examples
    --------
    >>> words = ["france", "paris", "italy", "rome", "fish"]
    >>> made = WordVectors(words, [[1, 0], [1, 1], [2, 0], [2, 1], [-1, -1]])
    >>> made.most_similar("france", n=1)[0][0]
    'italy'
    >>> made.analogy("france", "paris", "italy")[0][0]
    'rome'
    """

    def __init__(self, words: Sequence[str], vectors: Any) -> None:
        found = np.asarray(vectors)
        if found.dtype.kind != "f":
            found = found.astype(np.float32)
        if found.ndim != 2 or len(found) != len(words):
            raise ShapeMismatch(
                f"WordVectors: `vectors` must have the shape ({len(words)}, D), a row a word; got "
                f"{found.shape}."
            )
        if len(set(words)) < len(words):
            twice = next(word for i, word in enumerate(words) if word in words[:i])
            raise InvalidData(f"WordVectors: words must differ; got {twice!r} twice.")
        self.words_, self.vectors_ = list(words), found

    def __len__(self) -> int:
        return len(self.words_)

    def __repr__(self) -> str:
        return f"WordVectors({len(self.words_):,} words, dim={self.vectors_.shape[1]})"


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors of length 1; those of length 0 as they are."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)


def _right(unit: np.ndarray, index: Mapping[str, int], asked: Sequence[Question]) -> np.ndarray:
    """Return which of the analogies with known words are answered right."""
    known = [[index[word] for word in four] for four in asked if all(w in index for w in four)]
    found = []
    for start in range(0, len(known), 512):
        a, b, c, d = np.array(known[start : start + 512]).T
        cosines = (unit[b] - unit[a] + unit[c]) @ unit.T  # (questions, V)
        rows = np.arange(len(a))
        for column in (a, b, c):
            cosines[rows, column] = -np.inf
        found.append(cosines.argmax(axis=1) == d)
    return np.concatenate([np.zeros(0, bool), *found])
