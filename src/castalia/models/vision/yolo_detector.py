"""YOLO detectors: a grid of boxes from one pass over the image."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from torch import nn

from castalia.base import Constraint, Interval, OneOf, Target, TargetCodec
from castalia.data.augment import WithBoxes
from castalia.data.images import Boxes
from castalia.models.vision.detector_task import BoxCodec, Detector
from castalia.models.vision.image_estimator import ImageEstimator
from castalia.nets.vision import YOLO, AnchorYOLO, slim_layers
from castalia.nn import anchor_sizes
from castalia.objectives import AnchorYOLOLoss, Augmented, YOLOLoss
from castalia.objectives.objective import Objective
from castalia.protocols import Spec

__all__ = ["YOLODetector"]


class Strides(Constraint):
    """Pixels of a cell on each grid."""

    def rule(self) -> str:
        """Say what they are."""
        return "a tuple of powers of two from 2 up that rise, such as (16, 32)"

    def holds(self, value: Any) -> bool:
        """Whether they are."""
        whole = Interval(2, whole=True)
        return (
            isinstance(value, tuple | list)
            and len(value) > 0
            and all(whole.holds(stride) and not stride & (stride - 1) for stride in value)
            and all(a < b for a, b in pairwise(value))
        )


class AnchoredBoxCodec(BoxCodec):
    """Boxes whose typical sizes, ``anchors_``, are learnt too."""

    def fit(
        self, est: Any, adapter: Any, X: Any, y: list[Boxes], weight: np.ndarray | None
    ) -> Target:
        """Learn the classes and the anchors, and pad the boxes."""
        target = super().fit(est, adapter, X, y, weight)
        est.anchors_ = None
        if est.design == "anchors":
            sizes = target.y[target.y[..., 0] >= 0][:, 3:]
            found = anchor_sizes(sizes, est.anchors * len(est.strides))
            est.anchors_ = found.unflatten(0, (len(est.strides), -1)).numpy()
        return target


@dataclass(kw_only=True, eq=False, repr=False)
class YOLODetector(Detector, ImageEstimator):
    """One convolutional network that finds and names all things on an image at once.

    The image is cut into cells; each answers a few boxes with a confidence and classes. Boxes
    whose confidence times class probability is high are kept, the best of those that overlap. With
    anchors, boxes start from sizes that are typical for the training boxes (k-means) and overlap
    and cross-entropy are trained; as in the paper, sizes are free and squared errors are.

    Parameters
    ----------
    design
        ``"anchors"``; ``"grid"``, the paper's grid and loss on a network of the given width and
        depth; ``"paper"``, its 24 convolutions and 2 dense layers, meant for ``image_size=448``.
    anchors
        Typical sizes on each grid; with anchors only.
    boxes
        Boxes of a cell; without anchors only.
    strides
        Pixels of a cell, powers of two that rise, one for each grid. Small things need a fine one.
        Without anchors there is one grid, the first.
    width
        Channels of the first stage; they double with every halving.
    depth
        Residual (without anchors: plain) pairs of convolutions after each halving.
    positives
        Boxes that learn each true one; with anchors only.
    augment
        Random changes of the training images, such as ``Flip() | Zoom(0.8, 1.2)``; boxes move
        along. None: none.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        The classes, sorted.
    anchors_ : ndarray (grids, anchors, 2)
        Width and height of the anchors in shares of the image; None without anchors.

    Shapes
    ------
    X: images, see ``castalia.data.images.as_images``. y: for each image a ``Boxes``, or an
    array (M, 5) of class, x1, y1, x2, y2 in pixels; M may be 0. ``predict`` gives ``Boxes`` with
    scores.

    Notes
    -----
    Boxes are cut off at the edge of their image; those without area are left out, with one
    warning. Boxes marked difficult are not learnt, and are neither rewarded nor asked for in
    ``score``, the mean average precision at an overlap of 0.5.

    References
    ----------
    2016, Redmon, Divvala, Girshick, Farhadi, You only look once, arXiv 1506.02640; 2016, Redmon,
    Farhadi, YOLO9000, arXiv 1612.08242; 2018, Redmon, Farhadi, YOLOv3, arXiv 1804.02767.

    See Also
    --------
    castalia.evaluate.detection_scores : Average precision of each class, and COCO's measure.
    castalia.nn.non_maximum_suppression : The filter that leaves one box for each thing.

    Examples
    --------
    >>> from castalia.testing import toy
    >>> X, y = toy("scenes")
    >>> model = YOLODetector(strides=(8,), width=4, epochs=1, random_state=0).fit(X[:20], y[:20])
    >>> model.classes_.tolist(), model.anchors_.shape, len(model.predict(X[:2]))
    (['disc', 'square'], (1, 3, 2), 2)
    """

    codec: ClassVar[TargetCodec] = AnchoredBoxCodec()

    design: Annotated[str, OneOf("anchors", "grid", "paper")] = "anchors"
    anchors: Annotated[int, Interval(1, whole=True)] = 3
    boxes: Annotated[int, Interval(1, whole=True)] = 2
    strides: Annotated[tuple[int, ...], Strides()] = (16, 32)
    width: Annotated[int, Interval(2, whole=True)] = 32
    depth: Annotated[int, Interval(0, whole=True)] = 1
    positives: Annotated[int, Interval(1, whole=True)] = 9

    def _network(self, spec: Spec) -> nn.Module:
        if self.design == "anchors" and self.anchors_ is not None:
            return AnchorYOLO(
                spec.inputs,
                spec.outputs,
                anchors=self.anchors_.tolist(),
                strides=self.strides,
                width=self.width,
                depth=self.depth,
            )
        size = spec.extra["size"]
        if self.design == "paper":
            return YOLO(spec.inputs, spec.outputs, size=size, boxes=self.boxes)
        return YOLO(
            spec.inputs,
            spec.outputs,
            size=size,
            boxes=self.boxes,
            layers=slim_layers(self.width, self.depth, self.strides[0]),
            hidden=0,
            norm=True,
        )

    def _objective(self, spec: Spec) -> Objective:
        loss: Objective = YOLOLoss()
        if self.design == "anchors":
            loss = AnchorYOLOLoss(positives=self.positives)
        return loss if self.augment is None else Augmented(loss, WithBoxes(self.augment))
