"""The recipe that segmenters of images share: cross-entropy of pixels on augmented images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from castalia.base import Interval
from castalia.data.augment import WithMasks
from castalia.models.vision.image_estimator import ImageEstimator
from castalia.models.vision.segmenter_task import Segmenter
from castalia.objectives import Augmented, Objective, PixelCrossEntropy
from castalia.protocols import Spec

__all__ = ["ImageSegmenter"]


@dataclass(kw_only=True, eq=False, repr=False)
class ImageSegmenter(Segmenter, ImageEstimator):
    """Base of networks that label every pixel of an image; a subclass gives ``_network``.

    Parameters
    ----------
    image_size
        Height and width that images and masks are brought to, or one number for both; None keeps
        the size they have. Predictions have the size of the image either way.
    augment
        Random changes of the training images, such as ``Flip() | Zoom(0.8, 1.5)``; masks move
        along, and what comes from outside an image is void. None: none.
    label_smoothing
        Share of a label's mass that is spread over all classes.
    class_weight
        None, ``"balanced"`` (inverse frequency of pixels), ``"median"`` (median frequency
        balancing) or a dict from class to weight; helps classes of few pixels.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The class values, in the order of ``predict_proba``.
    class_weight_ : ndarray (K,) or None
        Weight of each class in the loss.
    history_ : list of dict
        Loss and validation loss of every epoch.
    """

    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _objective(self, spec: Spec) -> Objective:
        void = spec.outputs  # the code after the last class
        loss = PixelCrossEntropy(
            class_weight=None if self.class_weight_ is None else self.class_weight_.tolist(),
            void=void,
            label_smoothing=self.label_smoothing,
        )
        if self.augment is None:
            return loss
        return Augmented(loss, WithMasks(self.augment, void=void))
