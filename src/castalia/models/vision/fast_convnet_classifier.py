"""The classifier that is trained in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from torch import nn

from castalia.base import Amounts, Interval, OneOf, Recipe, Sizes, fields_for
from castalia.data.adapter_base import Reads
from castalia.data.augment import AlternatingFlip, Crop
from castalia.data.images import ImageAdapter
from castalia.models.vision.image_classifier import ImageClassifier
from castalia.models.vision.image_estimator import Transform
from castalia.nets.vision.fast_convnet import FastConvNet, rate_factors
from castalia.objectives import Layered
from castalia.objectives.objective import Objective
from castalia.optim.schedules import linear_decay
from castalia.protocols import Spec
from castalia.train import Training

__all__ = ["FastConvNetClassifier"]

STEPS, LARGEST, SMALLEST = 25, 2_000, 32  # of an epoch; rows of a batch

AUGMENT = AlternatingFlip(padding="reflection") | Crop(2, padding="reflection")
MUON = {
    "momentum": 0.6,
    "iterations": 3,
    "scale": "shape",
    "sphere": True,
    "rest": "nesterov",
    "betas": (0.85, 0.95),
}
TRAINING = Training(
    optimizer=("muon", MUON),
    schedule=linear_decay(floor=0.0),
    weight_decay=2e-5,  # of the scores: filters keep their norm
)


class LargeBatches(Recipe):
    """Some steps an epoch, where ``batch_size`` is None."""

    def amounts(self, est: Any) -> Amounts:
        """Return the fields, and a batch of a twenty-fifth of the images."""
        rows = min(LARGEST, max(SMALLEST, est.spec_.rows // STEPS))
        return super().amounts(est)._replace(batch_size=est.batch_size or rows)


@dataclass(kw_only=True, eq=False, repr=False)
class FastConvNetClassifier(ImageClassifier):
    """Convolutional network for thousands of small images that is trained in seconds on a GPU.

    Patches of the images are whitened, few wide stages follow; cross-entropy is minimised by Muon
    in some hundred steps of large batches at rates that fall in a straight line. Meant for images
    of about 32 pixels; on larger ones, or on a CPU, a ``ResNetClassifier`` or a
    ``ConvNetClassifier`` is better.

    Parameters
    ----------
    widths
        Channels of each stage; every stage halves the image.
    convs
        Convolutions in each stage.
    shortcut
        Whether a shortcut leads around the later convolutions of each stage; with three and more.
    patch
        Height and width of the whitened patches.
    batch_size
        None: a twenty-fifth of the images, 32 to 2,000.
    lr
        Rate of the filters at the start; biases and scores follow it at their own.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.FastConvNet``.
    classes_, history_
        See ``ImageClassifier``.

    Shapes
    ------
    X: (n, H, W) or (n, H, W, C) array, (n, C, H, W) tensor, or ``Images``.  y: (n,) classes, or
    (n, L) of 0 and 1.

    Notes
    -----
    1.97 million weights by default, for colour images and ten classes. What it reaches on CIFAR-10
    and in how many seconds is in ``evidence/RESULTS.md``.

    References
    ----------
    2024, Jordan, 94% on CIFAR-10 in 3.29 seconds on a single GPU, arXiv 2404.00498. 2018, Page, How
    to train your ResNet.

    See Also
    --------
    ResNetClassifier : for images of any size.

    Examples
    --------
    >>> from castalia.testing.toys import stripes
    >>> X, y = stripes()
    >>> model = FastConvNetClassifier(widths=(8, 8), batch_size=32, random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (240,)
    """

    adapter: ClassVar[Any] = Reads(ImageAdapter, "patch", size="image_size")
    recipe: ClassVar[Recipe] = LargeBatches()
    usual_training: ClassVar[Training] = TRAINING

    epochs: Annotated[int, Interval(1, whole=True)] = 12
    batch_size: Annotated[int | None, Interval(1, whole=True, optional=True)] = None  # type: ignore[assignment]
    lr: Annotated[float, Interval(0, closed="neither")] = 0.24
    augment: Annotated[Any, Transform()] = AUGMENT
    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.2
    views: Annotated[str, OneOf("one", "flip", "shift")] = "shift"
    widths: Annotated[tuple[int, ...], Sizes()] = (64, 256, 256)
    convs: Annotated[int, Interval(1, whole=True)] = 2
    shortcut: Annotated[bool, OneOf(True, False)] = False
    patch: Annotated[int, Interval(1, whole=True)] = 2

    def _network(self, spec: Spec) -> nn.Module:
        own = {**fields_for(self, FastConvNet), **spec.extra}
        return FastConvNet(spec.inputs, spec.outputs, **own)

    def _objective(self, spec: Spec) -> Objective:
        return Layered(super()._objective(spec), rate_factors)
