"""The task of giving a tag to every word of a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from castalia.base import Estimator, Target
from castalia.data.text import as_sentences
from castalia.errors import InvalidData
from castalia.objectives import Objective, TagCrossEntropy
from castalia.protocols import Spec

__all__ = ["WordTagger", "same_rows"]


def same_rows(owner: str, X: Any, y: Any) -> None:
    """Refuse targets that are missing or not as many as the rows."""
    if y is None:
        raise InvalidData(f"{owner}: requires y to be passed, but the target y is None.")
    if len(X) != len(y):
        raise InvalidData(
            f"{owner}: X and y must have the same number of rows; got {len(X):,} and {len(y):,}."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class WordTagger(Estimator):
    """Base of networks that give a tag to every word; a subclass gives adapter and network.

    Rows are (B, C, T): ids, and at the first piece of the n-th word n. The network gives scores at
    every token, (B, T, K).
    """

    _wants_validation_outputs: ClassVar[bool] = False

    def _check_target(self, X: Any, y: Any) -> np.ndarray:
        name = type(self).__name__
        same_rows(name, X, y)
        found = as_sentences(y, name, "y")
        for place, (words, tags) in enumerate(zip(X, found, strict=True)):
            if len(words) != len(tags):
                raise InvalidData(
                    f"{name}: every word must have a tag; sentence {place} has {len(words)} words "
                    f"and {len(tags)} tags."
                )
        return found

    def _encode_target(self, y: np.ndarray, weight: np.ndarray | None) -> Target:
        flat = [tag for tags in y for tag in tags]
        self.classes_, counts = np.unique(flat, return_counts=True)
        self.commonest_ = str(self.classes_[counts.argmax()])
        return Target(self._codes(y), len(self.classes_), weight)

    def _reencode_target(self, y: np.ndarray) -> Target:
        known = set(self.classes_.tolist())
        strange = [tag for tags in y for tag in tags if tag not in known]
        if strange:
            raise InvalidData(
                f"{type(self).__name__}: validation tags must be among those seen in training; "
                f"got {strange[0]!r}."
            )
        return Target(self._codes(y), len(self.classes_), None)

    def _codes(self, y: np.ndarray) -> Tensor:
        codes = np.full((len(y), max(len(tags) for tags in y)), -1, dtype=np.int64)
        for row, tags in zip(codes, y, strict=True):
            row[: len(tags)] = np.searchsorted(self.classes_, np.array(tags))
        return torch.from_numpy(codes)

    def _after_fit(self, outputs: Tensor | None, targets: Tensor | None) -> None:
        """Nothing to learn from the validation rows."""

    def _objective(self, spec: Spec) -> Objective:
        return TagCrossEntropy()

    def predict(self, X: Any) -> np.ndarray:
        """Return the tags of each sentence's words, an array of n lists.

        Parameters
        ----------
        X
            Lists of words.
        """
        sentences, said = self._checked(X), []
        blocks = zip(self.adapter_.blocks(sentences, None), self._through(sentences), strict=True)
        for rows, scores in blocks:
            for numbers, best in zip(rows[:, 1], scores.argmax(dim=-1), strict=True):
                said.append(self.classes_[best[numbers > 0].numpy()].tolist())
        found = np.empty(len(said), dtype=object)
        for place, (tags, words) in enumerate(zip(said, sentences, strict=True)):
            found[place] = tags + [self.commonest_] * (len(words) - len(tags))
        return found

    def score(self, X: Any, y: Any) -> float:
        """Return the share of words with the right tag.

        Parameters
        ----------
        X
            Lists of words.
        y
            Lists of tags.
        """
        wanted = self._check_target(self._checked(X), y)
        pairs = zip(self.predict(X), wanted, strict=True)
        hits = [a == b for said, true in pairs for a, b in zip(said, true, strict=True)]
        return float(np.mean(hits))
