"""The task of giving a tag to every word of a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from castalia.base import Estimator, Target, TargetCodec
from castalia.base.input_checks import same_rows
from castalia.data.text import as_sentences
from castalia.errors import InvalidData
from castalia.objectives import Objective, TagCrossEntropy
from castalia.protocols import Spec

__all__ = ["TagCodec", "WordTagger"]


class TagCodec(TargetCodec):
    """A tag for every word: learns ``classes_`` and the tag that is commonest, ``commonest_``."""

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> np.ndarray:
        """Return lists of tags, one for each word."""
        name = type(est).__name__
        same_rows(name, X, y)
        found = as_sentences(y, name, "y")
        for place, (words, tags) in enumerate(zip(X, found, strict=True)):
            if len(words) != len(tags):
                raise InvalidData(
                    f"{name}: every word must have a tag; sentence {place} has {len(words)} words "
                    f"and {len(tags)} tags."
                )
        return found

    def fit(
        self, est: Any, adapter: Any, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> Target:
        """Learn the tags, and return their numbers."""
        flat = [tag for tags in y for tag in tags]
        est.classes_, counts = np.unique(flat, return_counts=True)
        est.commonest_ = str(est.classes_[counts.argmax()])
        return super().fit(est, adapter, X, y, weight)

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Return the numbers of tags, (N, W), -1 behind the last word."""
        known = set(est.classes_.tolist())
        strange = [tag for tags in y for tag in tags if tag not in known]
        if strange:
            raise InvalidData(
                f"{type(est).__name__}: validation tags must be among those seen in training; "
                f"got {strange[0]!r}."
            )
        codes = np.full((len(y), max(len(tags) for tags in y)), -1, dtype=np.int64)
        for row, tags in zip(codes, y, strict=True):
            row[: len(tags)] = np.searchsorted(est.classes_, np.array(tags))
        return Target(torch.from_numpy(codes), len(est.classes_))


@dataclass(kw_only=True, eq=False, repr=False)
class WordTagger(Estimator):
    """Base of networks that give a tag to every word; a subclass gives adapter and network.

    Rows are (B, C, T): ids, and at the first piece of the n-th word n. The network gives scores at
    every token, (B, T, K).
    """

    codec: ClassVar[TargetCodec] = TagCodec()

    def _objective(self, spec: Spec) -> Objective:
        return TagCrossEntropy()

    def predict(self, X: Any) -> np.ndarray:
        """Return the tags of each sentence's words, an array of n lists."""
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
        """Return the share of words with the right tag."""
        wanted = self.codec.check(self, self.adapter_, self._checked(X), y)
        pairs = zip(self.predict(X), wanted, strict=True)
        hits = [a == b for said, true in pairs for a, b in zip(said, true, strict=True)]
        return float(np.mean(hits))
