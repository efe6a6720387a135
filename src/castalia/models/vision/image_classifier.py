"""The recipe that classifiers of images share: cross-entropy on augmented images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from castalia.base import Classifier, Interval, OneOf
from castalia.base.targets import ClassCodec
from castalia.models.vision.image_estimator import ImageEstimator
from castalia.models.vision.image_recipe import image_augmentation
from castalia.models.vision.image_views import VIEWS, average_views
from castalia.objectives import Augmented, class_loss
from castalia.objectives.objective import Objective
from castalia.protocols import Spec

__all__ = ["ImageClassifier", "SeenClasses"]


class SeenClasses(ClassCodec):
    """Classes of images, by the mean of the scores over the estimator's ``views`` of them."""

    def outputs(self, est: Any, x: Any) -> Any:
        """Return the mean scores of images, (B, K)."""
        return average_views(est.module_, x, est.views)


@dataclass(kw_only=True, eq=False, repr=False)
class ImageClassifier(Classifier, ImageEstimator):
    """Base of networks that say what is on an image; a subclass gives ``_network``.

    Parameters
    ----------
    augment
        Random changes of the training images, such as ``Flip() | Shift(0.1)``; None: none;
        ``"auto"``: by their number, size and colours (``castalia.models.vision.image_recipe``).
    label_smoothing
        Share of a label's mass that is spread over all classes.
    views
        What predictions are made from: ``"one"``, the image; ``"flip"``, the mean score of it and
        its mirror image; ``"shift"``, also of both moved by a pixel, three times the work of that.
    class_weight
        None, ``"balanced"`` or a dict from class to weight.
    calibrate
        Fit one temperature on the validation rows after training.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The classes, in the order of ``predict_proba``.
    history_ : list of dict
        Loss and validation loss of every epoch.
    """

    codec: ClassVar[Any] = SeenClasses()

    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    views: Annotated[str, OneOf(*VIEWS)] = "one"

    def _objective(self, spec: Spec) -> Objective:
        loss = class_loss(self.multilabel_, self.label_smoothing)
        augment = self.augment
        if isinstance(augment, str):
            augment = image_augmentation(spec.rows, spec.inputs, spec.extra["size"])
        return loss if augment is None else Augmented(loss, augment)
