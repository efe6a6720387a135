"""Classifiers of images: a network each, one recipe (``ImageClassifier``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from torch import nn

from castalia.base import Interval, OneOf, Sizes, fields_for
from castalia.base.transferable import Transferable
from castalia.models.vision.image_classifier import ImageClassifier
from castalia.models.vision.recipe_fields import ByRecipe
from castalia.nets.vision import VGG, AlexNet, ConvNet, GoogLeNet, LeNet, ResNet
from castalia.nn import ACTIVATIONS
from castalia.protocols import Spec

__all__ = [
    "AlexNetClassifier",
    "ConvNetClassifier",
    "GoogLeNetClassifier",
    "LeNetClassifier",
    "ResNetClassifier",
    "VGGClassifier",
]


@dataclass(kw_only=True, eq=False, repr=False)
class ConvNetClassifier(Transferable, ImageClassifier):
    """Small convolutional network that says what is on an image.

    Stages of convolution, batch norm, ReLU and pooling; cross-entropy is minimised (binary
    cross-entropy for several labels at once). The first network to try on images of 8 to 64
    pixels; on larger ones, and with many thousand images, a ``ResNetClassifier`` is better.

    Parameters
    ----------
    widths
        Channels of each stage; every stage halves the image. Wider and more stages fit more.
    convs
        Convolutions in each stage.
    kernel
        Height and width of a filter, odd.
    pooling
        What halves the image after a stage: the ``"max"`` of 2 x 2 pixels, or ``"stride"``: its
        last convolution moves by two pixels, which is a quarter of its arithmetic.
    batch_norm
        Normalise after each convolution, by the mean and the deviation of the batch, and in
        predictions by those of the training. ``"own"`` has none of the training: rows that are
        predicted together decide, as in the few-shot tasks of ``MAML``.
    hidden
        Widths of dense layers before the scores; empty: the last map is averaged over its places.
    dropout
        Probability of zeroing an input of each dense layer in training.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.ConvNet``.
    classes_, history_
        See ``ImageClassifier``.

    Shapes
    ------
    X: (n, H, W) or (n, H, W, C) array, (n, C, H, W) tensor, or ``Images``.  y: (n,) classes, or
    (n, L) of 0 and 1.

    Notes
    -----
    The default has 287,018 weights for grey images and ten classes; ``widths=(32, 48, 56)`` has
    97,594. The arithmetic of an image grows with its area.

    References
    ----------
    1998, LeCun, Bottou, Bengio, Haffner, Gradient-based learning applied to document recognition,
    Proc. IEEE 86. 2015, Ioffe, Szegedy, Batch normalization, arXiv 1502.03167.

    See Also
    --------
    LeNetClassifier : the same idea with fewer weights.
    ResNetClassifier : deeper, with shortcuts.

    Examples
    --------
    >>> from castalia.testing.toys import stripes
    >>> X, y = stripes()
    >>> model = ConvNetClassifier(widths=(8, 16), convs=1, epochs=5, lr=0.01, random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    widths: Annotated[tuple[int, ...], Sizes()] = (32, 64, 128)
    convs: Annotated[int, Interval(1, whole=True)] = 2
    kernel: Annotated[int, Interval(1, whole=True)] = 3
    pooling: Annotated[str, OneOf("max", "stride")] = "max"
    batch_norm: Annotated[bool | str, OneOf(True, False, "own")] = True
    hidden: Annotated[tuple[int, ...], Sizes()] = ()
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        size = spec.extra["size"]
        own = fields_for(self, ConvNet)
        return self._started(ConvNet(spec.inputs, spec.outputs, size=size, **own))


@dataclass(kw_only=True, eq=False, repr=False)
class LeNetClassifier(Transferable, ImageClassifier):
    """LeNet-5, the digit recogniser of 1998, with today's choices by default.

    Two convolutions with pooling, then three dense layers; cross-entropy is minimised. Small and
    quick on a CPU, right for digits and the like; on photographs use a ``ResNetClassifier``.

    Parameters
    ----------
    pooling
        ``"max"``, ``"average"`` or the paper's ``"trainable"``.
    activation
        Non-linearity, a name from ``castalia.nn.ACTIVATIONS``; the paper's is ``"tanh"``.
    partial
        Join the maps of the second convolution to the first by the paper's table.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.LeNet``.
    classes_, history_
        See ``ImageClassifier``.

    Shapes
    ------
    X: (n, H, W) or (n, H, W, C) array, (n, C, H, W) tensor, or ``Images``, of 12 pixels and more.
    y: (n,) classes, or (n, L) of 0 and 1.

    Notes
    -----
    61,706 weights for grey images of 28 pixels and ten classes. Scores are linear, where the
    paper has distances to drawn codes.

    References
    ----------
    1998, LeCun, Bottou, Bengio, Haffner, Gradient-based learning applied to document recognition,
    Proc. IEEE 86.

    See Also
    --------
    ConvNetClassifier : normalised, with as many stages as one likes.

    Examples
    --------
    >>> from castalia.testing.toys import stripes
    >>> X, y = stripes()
    >>> LeNetClassifier(epochs=8, lr=0.01, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    pooling: Annotated[str, OneOf("max", "average", "trainable")] = "max"
    activation: Annotated[str, OneOf(*ACTIVATIONS)] = "relu"
    partial: Annotated[bool, OneOf(True, False)] = False

    def _network(self, spec: Spec) -> nn.Module:
        size = spec.extra["size"]
        own = fields_for(self, LeNet)
        return self._started(LeNet(spec.inputs, spec.outputs, size=size, **own))


@dataclass(kw_only=True, eq=False, repr=False)
class AlexNetClassifier(Transferable, ImageClassifier):
    """AlexNet, the winner of 2012: five convolutions, three dense layers, dropout.

    Cross-entropy is minimised. Of historical interest, and as a start for transfer (``towers=1``
    takes torchvision's weights); a ``ResNetClassifier`` is smaller and better.

    Parameters
    ----------
    towers
        2: the network of 2012, in two groups. 1: that of 2014, torchvision's.
    width
        Factor on all widths; below 1 for small problems.
    dropout
        Probability of zeroing an input of the hidden dense layers in training.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.AlexNet``.
    classes_, history_
        See ``ImageClassifier``.

    Shapes
    ------
    X: (n, H, W) or (n, H, W, C) array, (n, C, H, W) tensor, or ``Images``, of 63 pixels and more
    (``image_size=64`` enlarges smaller ones).  y: (n,) classes, or (n, L) of 0 and 1.

    Notes
    -----
    60,965,224 weights (two towers) or 61,100,840 (one) at 224 pixels and a thousand classes, most
    of them in the dense layers.

    References
    ----------
    2012, Krizhevsky, Sutskever, Hinton, ImageNet classification with deep convolutional neural
    networks, NeurIPS. 2014, Krizhevsky, One weird trick for parallelizing convolutional neural
    networks, arXiv 1404.5997.

    See Also
    --------
    LeNetClassifier : its ancestor, for small images.
    ResNetClassifier : deeper, with fewer weights.

    Examples
    --------
    >>> from castalia.testing.toys import stripes
    >>> X, y = stripes(90)
    >>> model = AlexNetClassifier(width=0.05, image_size=64, epochs=1, random_state=0)
    >>> model.fit(X, y).predict(X).shape
    (90,)
    """

    towers: Annotated[int, OneOf(1, 2)] = 2
    width: Annotated[float, Interval(0, closed="neither")] = 1.0
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.5

    def _network(self, spec: Spec) -> nn.Module:
        size = spec.extra["size"]
        own = fields_for(self, AlexNet)
        return self._started(AlexNet(spec.inputs, spec.outputs, size=size, **own))


@dataclass(kw_only=True, eq=False, repr=False)
class VGGClassifier(Transferable, ImageClassifier):
    """VGG: 11 to 19 layers of 3x3 convolutions and dense layers.

    Cross-entropy is minimised. Its features are good for transfer and for style; as a classifier it
    is large and slow, and a ``ResNetClassifier`` is better.

    Parameters
    ----------
    depth
        Layers with weights: 11, 13, 16 or 19.
    batch_norm
        Normalise after each convolution; without it deep ones hardly train from scratch.
    width
        Factor on all widths; below 1 for small problems.
    dropout
        Probability of zeroing an output of the hidden dense layers in training.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.VGG``.
    classes_, history_
        See ``ImageClassifier``.

    Shapes
    ------
    X: (n, H, W) or (n, H, W, C) array, (n, C, H, W) tensor, or ``Images``, of 32 pixels and more
    (``image_size=32`` enlarges smaller ones).  y: (n,) classes, or (n, L) of 0 and 1.

    Notes
    -----
    138,357,544 weights at depth 16 and 143,667,240 at 19, for images of 224 pixels and a thousand
    classes; 124 million of them are in the dense layers, which shrink with the image.

    References
    ----------
    2014, Simonyan, Zisserman, Very deep convolutional networks for large-scale image recognition,
    arXiv 1409.1556.

    See Also
    --------
    ConvNetClassifier : the same kind of layers, fewer of them.
    ResNetClassifier : deeper, with shortcuts and fewer weights.

    Examples
    --------
    >>> from castalia.testing.toys import stripes
    >>> X, y = stripes(90)
    >>> model = VGGClassifier(depth=11, width=0.05, image_size=32, epochs=1, random_state=0)
    >>> model.fit(X, y).predict(X).shape
    (90,)
    """

    depth: Annotated[int, OneOf(11, 13, 16, 19)] = 16
    batch_norm: Annotated[bool, OneOf(True, False)] = True
    width: Annotated[float, Interval(0, closed="neither")] = 1.0
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.5

    def _network(self, spec: Spec) -> nn.Module:
        size = spec.extra["size"]
        own = fields_for(self, VGG)
        return self._started(VGG(spec.inputs, spec.outputs, size=size, **own))


@dataclass(kw_only=True, eq=False, repr=False)
class GoogLeNetClassifier(Transferable, ImageClassifier):
    """GoogLeNet, the winner of 2014: inception modules of four branches each.

    Cross-entropy is minimised. Few weights for its depth; ``batch_norm=True``, the default here, is
    torchvision's version and trains much more easily than the paper's.

    Parameters
    ----------
    batch_norm
        True: normalised, 3x3 in the third branch, 6,624,904 weights. False: the paper's network.
    width
        Factor on all widths; below 1 for small problems.
    dropout
        Probability of zeroing an input of the last layer in training.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.GoogLeNet``.
    classes_, history_
        See ``ImageClassifier``.

    Shapes
    ------
    X: (n, H, W) or (n, H, W, C) array, (n, C, H, W) tensor, or ``Images``, of 15 pixels and more
    (31 without batch norm).  y: (n,) classes, or (n, L) of 0 and 1.

    Notes
    -----
    The paper's network has 6,998,552 weights for a thousand classes, here without its auxiliary
    classifiers.

    References
    ----------
    2014, Szegedy et al., Going deeper with convolutions, arXiv 1409.4842. 2015, Ioffe, Szegedy,
    Batch normalization, arXiv 1502.03167.

    See Also
    --------
    VGGClassifier : one branch, many more weights.
    ResNetClassifier : shortcuts instead of branches.

    Examples
    --------
    >>> from castalia.testing.toys import stripes
    >>> X, y = stripes(90)
    >>> model = GoogLeNetClassifier(width=0.05, image_size=16, epochs=1, random_state=0)
    >>> model.fit(X, y).predict(X).shape
    (90,)
    """

    batch_norm: Annotated[bool, OneOf(True, False)] = True
    width: Annotated[float, Interval(0, closed="neither")] = 1.0
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.4

    def _network(self, spec: Spec) -> nn.Module:
        size = spec.extra["size"]
        own = fields_for(self, GoogLeNet)
        return self._started(GoogLeNet(spec.inputs, spec.outputs, size=size, **own))


@dataclass(kw_only=True, eq=False, repr=False)
class ResNetClassifier(ByRecipe, Transferable, ImageClassifier):  # type: ignore[misc]
    """Residual network: each block learns what to add to its input, x + F(x).

    Cross-entropy is minimised. The network to take for images of any size when there are
    thousands of them, or weights to start from; a ``ConvNetClassifier`` is quicker on few and small
    ones.

    Parameters
    ----------
    depth
        Layers with weights. 18, 34, 50, 101, 152 and 200 are the networks for large images; 8,
        14, 20, 32, 44, 56 and 110 the narrow ones for images of about 32 pixels.
    variant
        ``"v1"``, or ``"v2"`` with normalisation and ReLU before the convolutions.
    width
        Channels of the first stage; None is the paper's, 64 or 16.
    shortcut
        False leaves the shortcuts out: the plain network, for comparison.
    scale
        Factor on the shortcut.
    multistep
        Learn how much of the state before the last each block adds.
    zero_init
        Start every block as its shortcut alone.
    stem
        ``"imagenet"`` shrinks images by four at once, ``"small"`` does not, ``"auto"`` decides by
        their size: small up to 64 pixels.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.ResNet``.
    classes_, history_
        See ``ImageClassifier``.

    Shapes
    ------
    X: (n, H, W) or (n, H, W, C) array, (n, C, H, W) tensor, or ``Images``.  y: (n,) classes, or
    (n, L) of 0 and 1.

    Notes
    -----
    11.7 million weights at depth 18, 25.6 at 50, 60.2 at 152, for a thousand classes; 0.27 million
    at depth 20. A bottleneck's stride is in its 3x3 convolution, as in the weight files of
    torchvision and timm, which start these networks with the stem ``"imagenet"``.

    References
    ----------
    2015, He, Zhang, Ren, Sun, Deep residual learning for image recognition, arXiv 1512.03385. 2016,
    the same, Identity mappings in deep residual networks, arXiv 1603.05027. 2018, Lu, Zhong, Li,
    Dong, Beyond finite layer neural networks, arXiv 1710.10121 (multistep).

    See Also
    --------
    ConvNetClassifier : a few layers without shortcuts.

    Examples
    --------
    >>> from castalia.testing.toys import stripes
    >>> X, y = stripes()
    >>> model = ResNetClassifier(depth=8, width=8, epochs=4, lr=0.01, random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    depth: Annotated[int, OneOf(8, 14, 18, 20, 32, 34, 44, 50, 56, 101, 110, 152, 200)] = 18
    variant: Annotated[str, OneOf("v1", "v2")] = "v1"
    width: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    shortcut: Annotated[bool, OneOf(True, False)] = True
    scale: Annotated[float, Interval(0)] = 1.0
    multistep: Annotated[bool, OneOf(True, False)] = False
    zero_init: Annotated[bool, OneOf(True, False)] = False
    stem: Annotated[str, OneOf("auto", "imagenet", "small")] = "auto"

    def _network(self, spec: Spec) -> nn.Module:
        size = spec.extra["size"]
        own = fields_for(self, ResNet)
        return self._started(ResNet(spec.inputs, spec.outputs, size=size, **own))
