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
from castalia.errors import CheckpointMismatch
from castalia.method.classic_model import ClassicModel

__all__ = ["MOST_TRAINED", "SIDE", "CoarsePixels", "coarse_pixels", "pixel_model"]

SIDE = 12  # pixels to which images are shrunk
MOST_TRAINED = 10_000  # images a baseline learns from
BLOCK = 4096


def coarse_pixels(images: Images) -> np.ndarray:
    """Return every image shrunk to a row of numbers, (N, C * SIDE * SIDE)."""
    channels = 1 if images.channels == 1 else 3
    blocks = np.array_split(np.arange(len(images)), max(1, len(images) // BLOCK))
    found = [images.pixels(rows, (SIDE, SIDE), channels).flatten(1).numpy() for rows in blocks]
    return np.concatenate(found)


class CoarsePixels:
    """Images as rows of a few pixels; there is nothing to learn."""

    def fit(self, images: Images) -> CoarsePixels:
        """Return itself."""
        return self

    def encode(self, images: Images) -> np.ndarray:
        """Return what `coarse_pixels` does."""
        return coarse_pixels(images)

    def state(self) -> dict[str, Any]:
        """Return the size, which must be the same when it is read."""
        return {"side": SIDE}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> CoarsePixels:
        """Return the features whose `state` this is."""
        if state["side"] != SIDE:
            raise CheckpointMismatch(
                f"load: images must be shrunk to {SIDE} pixels; the model was fitted on "
                f"{state['side']}. Fit it again."
            )
        return cls()


def pixel_model(key: str, rounds: int, seed: int) -> ClassicModel:
    """Return a baseline, not yet fitted: ``"guess"``, ``"linear"`` or ``"boosting"``."""
    model: Any = HistGradientBoostingClassifier(max_iter=rounds, random_state=seed)
    if key == "guess":
        model = DummyClassifier(strategy="prior")
    elif key == "linear":
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    return ClassicModel(model, CoarsePixels())
