"""How many bits a language model needs for each passage of a text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from castalia.method.texts.passages import Passages

__all__ = ["surprises"]


def surprises(model: Any, passages: Passages) -> np.ndarray:
    """Return the bits and the number of tokens of each passage, (n, 2).

    A passage is read after those before it that are in the same run. Its tokens are its own: none
    reaches over its ends, so that bits and characters belong together.
    """
    tokenizer = model.tokenizer_
    found = []
    for run in passages.runs():
        ids = [np.asarray(row, dtype=np.int64) for row in tokenizer.encode(run)]
        sizes = [len(row) for row in ids]
        bits = -_logs(model, np.concatenate(ids), len(tokenizer)) / math.log(2)
        sums = np.add.reduceat(np.append(bits, 0.0), np.cumsum([0, *sizes[:-1]]))
        found += list(zip(np.where(sizes, sums, 0.0), sizes, strict=True))
    return np.array(found, dtype=float).reshape(-1, 2)


def _logs(model: Any, ids: np.ndarray, vocabulary: int) -> np.ndarray:
    """Return log p of every token; of a first one that is not predicted, that of an even guess."""
    if not len(ids):
        return np.zeros(0)
    logs = model.token_log_probabilities([ids])[0][: len(ids)]
    return np.concatenate([np.full(len(ids) - len(logs), -math.log(vocabulary)), logs])
