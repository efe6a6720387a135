"""How images are learnt where nothing is said: one recipe, by their number, size and colours.

Muon with one cycle of the learning rate (up for three tenths of the training, then down along a
cosine), in batches that grow with the number of images, for about 1,500 steps and at least 15
passes. Training images are cropped at random and, in colour, mirrored: a mirrored cat is a cat, a
mirrored digit is none. Where there are few, they are also turned, zoomed and recoloured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from castalia.base import Amounts, Recipe
from castalia.data.augment import Augmentation, Crop, Flip, Recolor, Rotate, Zoom
from castalia.optim.schedules import one_cycle
from castalia.train import Training

__all__ = [
    "TRAINING",
    "ImageRecipe",
    "augmentation_words",
    "image_amounts",
    "image_augmentation",
]

TRAINING: Training = Training(optimizer="muon", schedule=one_cycle(), weight_decay=0.1)
FEW, MANY = 2_000, 20_000  # images
STEPS, FEWEST, MOST = 1_500, 15, 100  # steps in all, epochs at least and at most
PEAK, BATCH = 0.01, 512  # rate at its highest, with such batches; its square root follows theirs
PLAIN = 1e-3  # rate with a training of one's own, whose optimizer the recipe does not know
FINE = 0.1  # of the peak where weights are given to start from


def image_amounts(rows: int, batch_size: int | None = None, *, started: bool = False) -> Amounts:
    """Return epochs, batch size and peak rate for so many images.

    Examples
    --------
    >>> image_amounts(50_000)
    Amounts(epochs=15, batch_size=512, lr=0.01)
    >>> image_amounts(600)
    Amounts(epochs=79, batch_size=32, lr=0.0025)
    """
    if batch_size is None:
        batch_size = 32 if rows <= FEW else 128 if rows <= MANY else BATCH
    steps = -(-rows // batch_size)
    rate = PEAK * (min(batch_size, BATCH) / BATCH) ** 0.5 * (FINE if started else 1.0)
    return Amounts(int(np.clip(round(STEPS / steps), FEWEST, MOST)), batch_size, rate)


def image_augmentation(rows: int, channels: int, size: Sequence[int]) -> Augmentation:
    """Return the changes of training images that leave their meaning alone.

    Examples
    --------
    >>> image_augmentation(50_000, 3, (32, 32))
    Flip(padding='reflection', axis='horizontal', chance=0.5) | Crop(padding='reflection', pixels=4)
    """
    outside = "reflection"
    moved: Augmentation = Crop(max(1, round(min(size) / 8)), padding=outside)
    colour = channels >= 3
    if rows <= FEW:
        moved = Rotate(10, padding=outside) | Zoom(0.8, 1.2, padding=outside) | moved
    changed = Flip(padding=outside) | moved if colour else moved
    return changed | Recolor() if colour and rows <= FEW else changed


def augmentation_words(rows: int, channels: int) -> str:
    """Say what ``image_augmentation`` does to so many images.

    >>> augmentation_words(50_000, 1)
    'cropped at random, but not flipped, for a mirrored sign is another one'
    """
    more = ", turned and zoomed a little" if rows <= FEW else ""
    if channels < 3:
        return f"cropped at random{more}, but not flipped, for a mirrored sign is another one"
    return f"flipped and cropped at random{more}{' and recoloured' if more else ''}"


class ImageRecipe(Recipe):
    """Amounts by the number of images, where an estimator's fields are None."""

    def amounts(self, est: Any) -> Amounts:
        """Return what is set, and what the number of images asks for elsewhere."""
        started = getattr(est, "start", None) is not None
        usual = image_amounts(est.spec_.rows, est.batch_size, started=started)
        if est.training is not None and est.training.optimizer != TRAINING.optimizer:
            usual = usual._replace(lr=PLAIN)
        given = {"epochs": est.epochs, "lr": est.lr}
        return usual._replace(**{name: value for name, value in given.items() if value is not None})
