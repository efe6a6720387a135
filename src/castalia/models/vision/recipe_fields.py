"""The settings of image classifiers that need no argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from castalia.base import Interval
from castalia.models.vision.image_estimator import Transform
from castalia.models.vision.image_recipe import TRAINING, ImageRecipe
from castalia.train import Training

__all__ = ["ByRecipe"]


@dataclass(kw_only=True, eq=False, repr=False)
class ByRecipe:
    """Fields that follow the recipe of ``image_recipe`` where they are not set.

    Parameters
    ----------
    epochs, batch_size, lr
        None: by the number of images.
    augment
        ``"auto"``: by their number, size and colours; None: no change.
    """

    recipe: ClassVar[ImageRecipe] = ImageRecipe()
    usual_training: ClassVar[Training] = TRAINING

    epochs: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    batch_size: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    lr: Annotated[float | None, Interval(0, closed="neither", optional=True)] = None
    augment: Annotated[Any, Transform("auto")] = "auto"
