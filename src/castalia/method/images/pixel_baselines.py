"""What a network for images has to beat: guessing, and models of a few coarse pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from castalia.data.images import Images

__all__ = ["MOST_TRAINED", "SIDE", "coarse_pixels", "pixel_model"]

SIDE = 12  # pixels to which images are shrunk
MOST_TRAINED = 10_000  # images a baseline learns from
BLOCK = 4096


def coarse_pixels(images: Images) -> np.ndarray:
    """Return every image shrunk to a row of numbers, (N, C * SIDE * SIDE)."""
    channels = 1 if images.channels == 1 else 3
    blocks = np.array_split(np.arange(len(images)), max(1, len(images) // BLOCK))
    found = [images.pixels(rows, (SIDE, SIDE), channels).flatten(1).numpy() for rows in blocks]
    return np.concatenate(found)


def pixel_model(key: str, rounds: int, seed: int) -> Any:
    """Return a baseline, not yet fitted: ``"guess"``, ``"linear"`` or ``"boosting"``."""
    if key == "guess":
        return DummyClassifier(strategy="prior")
    if key == "linear":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    return HistGradientBoostingClassifier(max_iter=rounds, random_state=seed)
