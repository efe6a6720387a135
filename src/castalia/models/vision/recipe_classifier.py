"""Classifiers of images whose unset settings follow the recipe of ``image_recipe``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from castalia.base import Amounts, Interval
from castalia.models.vision.image_classifier import ImageClassifier
from castalia.models.vision.image_estimator import Transform
from castalia.models.vision.image_recipe import TRAINING, image_amounts, image_augmentation
from castalia.objectives import Augmented, class_loss
from castalia.objectives.objective import Objective
from castalia.protocols import Spec
from castalia.train import Training

__all__ = ["RecipeClassifier"]

PLAIN_RATE = 1e-3  # with a training of one's own, whose optimizer the recipe does not know


@dataclass(kw_only=True, eq=False, repr=False)
class RecipeClassifier(ImageClassifier):
    """Base of classifiers that need no argument; a subclass gives ``_network``.

    Parameters
    ----------
    epochs, batch_size, lr
        None: by the number of images, see ``castalia.models.vision.image_recipe``.
    augment
        ``"auto"``: by their number, size and colours; None: no change.
    training
        None: Muon with one cycle of the rate.
    """

    usual_training: ClassVar[Training] = TRAINING

    epochs: Annotated[int | None, Interval(1, whole=True, optional=True)] = None  # type: ignore[assignment]
    batch_size: Annotated[int | None, Interval(1, whole=True, optional=True)] = None  # type: ignore[assignment]
    lr: Annotated[float | None, Interval(0, closed="neither", optional=True)] = None  # type: ignore[assignment]
    augment: Annotated[Any, Transform("auto")] = "auto"

    def _amounts(self) -> Amounts:
        started = getattr(self, "start", None) is not None
        usual = image_amounts(self.spec_.rows, self.batch_size, started=started)
        if self.training is not None:
            usual = usual._replace(lr=PLAIN_RATE)
        given = {"epochs": self.epochs, "lr": self.lr}
        return usual._replace(**{name: v for name, v in given.items() if v is not None})

    def _objective(self, spec: Spec) -> Objective:
        augment = self.augment
        if isinstance(augment, str):
            augment = image_augmentation(spec.rows, spec.inputs, spec.extra["size"])
        loss = class_loss(self.multilabel_, self.label_smoothing)
        return loss if augment is None else Augmented(loss, augment)
