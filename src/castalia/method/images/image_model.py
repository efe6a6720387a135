"""The network for images: which one, and at which size; ``image_recipe`` says how it learns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from castalia.base import Estimator
from castalia.catalog import System
from castalia.errors import ShapeMismatch
from castalia.method.fit_plan import FitPlan
from castalia.method.table_model import built, made
from castalia.models.vision.image_recipe import TRAINING, image_amounts, image_augmentation
from castalia.protocols import Spec
from castalia.utils.devices import resolve_device
from castalia.utils.seeds import seed_scope

__all__ = ["build_image_model", "choose_model", "choose_size", "enlarged"]

MANY = 5_000  # images from which the larger network pays
DETAILED = 32  # pixels from which it does
KEPT = 96  # pixels up to which images of one size keep it
SHORTEST = 8  # pixels an image has at least
STAGES = 5  # of a ConvNet at most
WIDTH = 32  # of its first stage


class Scale(NamedTuple):
    """What so many images allow."""

    most: float  # images up to which this holds
    longest: int  # pixels to which larger images are shrunk


SCALES = (Scale(2_000, 64), Scale(float("inf"), 128))


def _scale(rows: int) -> Scale:
    return next(scale for scale in SCALES if rows <= scale.most)


def choose_size(sizes: np.ndarray, rows: int) -> tuple[int, int]:
    """Return the height and width that images are brought to.

    Images of one moderate size keep it; others get the median shape, shrunk to what so many
    images can teach, and never less than `SHORTEST`.

    Examples
    --------
    >>> choose_size(np.array([[28, 28]] * 3), 3), choose_size(np.array([[300, 400], [301, 400]]), 2)
    ((28, 28), (48, 64))
    """
    one = bool((sizes == sizes[0]).all()) and sizes.max() <= KEPT
    shape = np.median(sizes, axis=0)
    if not one:
        shape = np.round(shape * min(1.0, _scale(rows).longest / shape.max()) / 8) * 8
    if shape.min() < SHORTEST:
        shape = np.maximum(np.ceil(shape * SHORTEST / max(shape.min(), 1)), SHORTEST)
        shape = np.minimum(shape, KEPT)
    return int(shape[0]), int(shape[1])


def choose_model(rows: int, size: tuple[int, int], device: str) -> tuple[str, str]:
    """Return the network that suits the images, and why.

    Examples
    --------
    >>> choose_model(800, (64, 64), "cpu")
    ('ConvNetClassifier', 'there are fewer than 5,000 images')
    """
    if rows < MANY:
        return "ConvNetClassifier", f"there are fewer than {MANY:,} images"
    if min(size) < DETAILED:
        return "ConvNetClassifier", f"images are smaller than {DETAILED} x {DETAILED} pixels"
    if resolve_device(device).type == "cpu":
        return "ConvNetClassifier", "a larger network takes long without a GPU"
    return "ResNetClassifier", f"there are {MANY:,} images or more"


def enlarged(model: Any, size: tuple[int, int], channels: int, classes: int) -> tuple[int, int]:
    """Return the size, doubled until the network takes it."""
    for times in (1, 2, 4, 8, 16):
        found = size[0] * times, size[1] * times
        spec = Spec(channels, classes, extra={"size": list(found)})
        try:
            with seed_scope(0), torch.device("meta"):  # no weight is made
                model._network(spec)
        except ShapeMismatch:
            continue
        return found
    return size


def build_image_model(
    plan: FitPlan,
    system: System,
    rows: int,
    size: tuple[int, int],
    channels: int,
    seed: int = 0,
) -> Any:
    """Return an unfitted classifier, trained as those that need no argument are.

    Only the size of the images and that of a small network are chosen here; the plan overrides it.
    """
    own: dict[str, Any] = {
        "random_state": seed,
        "image_size": size[0] if size[0] == size[1] else size,
        **_recipe(made(system), rows, size, channels),
    }
    own["training"] = replace(own["training"], device=plan.device, verbose=False)
    if system.name == "ConvNetClassifier":
        own["widths"] = _widths(plan.settings.get("image_size") or size, rows)
    return built(system, own, plan)


def _recipe(model: Any, rows: int, size: tuple[int, int], channels: int) -> dict[str, Any]:
    """Return a network's own training, or for one that has none that of ``image_recipe``."""
    if model.usual_training != Estimator.usual_training:
        return {"training": model.usual_training}
    changes = image_augmentation(rows, channels, size)
    return {**image_amounts(rows)._asdict(), "augment": changes, "training": TRAINING}


def _widths(size: Any, rows: int) -> tuple[int, ...]:
    """Return a width a stage: each halves the image until 4 to 7 cells are left.

    Where images are few and not tiny, half the width learns as much in a quarter of the time.
    """
    shortest = min(size) if isinstance(size, tuple | list) else size
    stages = 1 + int(np.clip(np.log2(shortest / 4), 0, STAGES - 1))
    first = WIDTH // 2 if rows <= 2_000 and shortest > DETAILED else WIDTH
    return tuple(first * 2 ** min(i, 3) for i in range(stages))
