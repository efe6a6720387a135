"""Segmenters: a class for every pixel of an image, by the one recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from torch import nn

from castalia.base import Interval, OneOf, Sizes, fields_for
from castalia.models.vision.image_segmenter import ImageSegmenter
from castalia.nets.vision import FCN, DilatedNet, SegNet, UNet
from castalia.nets.vision.dilated import CONTEXT
from castalia.protocols import Spec

__all__ = ["DilatedSegmenter", "FCNSegmenter", "SegNetSegmenter", "UNetSegmenter"]


@dataclass(kw_only=True, eq=False, repr=False)
class FCNSegmenter(ImageSegmenter):
    """Fully convolutional network: a classifier's scores enlarged, finer maps added.

    Minimises the cross-entropy of every pixel. The simplest of the segmenters, and with
    ``stride=32`` the coarsest: outlines get sharper with 16 and 8. Where outlines matter
    ``UNetSegmenter`` is better.

    Parameters
    ----------
    stride
        32, 16 or 8: pixels between two of the finest scores; smaller is sharper.
    widths
        Channels of the five stages; wider ones learn more kinds of patterns.
    depths
        Convolutions of the five stages.
    hidden
        Channels of the two layers that were dense in the classifier; 4096 in the paper.
    dropout
        Probability of zeroing a map of those two layers in training.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.FCN``.
    classes_, class_weight_, history_
        See ``ImageSegmenter``.

    Shapes
    ------
    X: images (N, H, W), (N, H, W, C), a tensor (N, C, H, W), a list of several sizes, or
    ``castalia.data.Images``.  y: masks (N, H, W) of whole numbers, or a list of (H, W).

    Notes
    -----
    Trained from nothing; the paper starts from a VGG trained on ImageNet. Objects much smaller than
    ``stride`` are lost.

    References
    ----------
    2015, Long, Shelhamer, Darrell, Fully convolutional networks for semantic segmentation, arXiv
    1411.4038.

    See Also
    --------
    UNetSegmenter : skips at every size; sharper outlines from less data.

    Examples
    --------
    >>> from castalia.testing import toy
    >>> X, y = toy("shapes")  # grey images (64, 24, 24) and their masks
    >>> model = FCNSegmenter(stride=8, widths=(8, 8, 16, 16, 16), depths=(1, 1, 1, 1, 1), hidden=16,
    ...     epochs=2, batch_size=16, lr=0.01, random_state=0).fit(X, y)
    >>> model.predict(X[:2]).shape
    (2, 24, 24)
    """

    stride: Annotated[int, OneOf(32, 16, 8)] = 8
    widths: Annotated[tuple[int, ...], Sizes()] = (64, 128, 256, 512, 512)
    depths: Annotated[tuple[int, ...], Sizes()] = (2, 2, 3, 3, 3)
    hidden: Annotated[int, Interval(1, whole=True)] = 1024
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.5

    def _network(self, spec: Spec) -> nn.Module:
        return FCN(spec.inputs, spec.outputs, **fields_for(self, FCN))


@dataclass(kw_only=True, eq=False, repr=False)
class SegNetSegmenter(ImageSegmenter):
    """Encoder and decoder that remember where each maximum was.

    Minimises the cross-entropy of every pixel. The decoder puts each value back to the place its
    maximum came from, which keeps outlines at the price of one index a value: less memory than the
    skips of ``UNetSegmenter``, usually a little less sharp.

    Parameters
    ----------
    widths
        Channels of the encoder's stages; each halves height and width.
    depths
        Convolutions of each stage; None: those of VGG-16 for five stages, two otherwise.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.SegNet``.
    classes_, class_weight_, history_
        See ``ImageSegmenter``.

    Shapes
    ------
    X: images (N, H, W), (N, H, W, C), a tensor (N, C, H, W), a list of several sizes, or
    ``castalia.data.Images``.  y: masks (N, H, W) of whole numbers, or a list of (H, W).

    Notes
    -----
    Trained from nothing; the paper starts from a VGG trained on ImageNet and weights classes by
    ``class_weight="median"``.

    References
    ----------
    2017, Badrinarayanan, Kendall, Cipolla, SegNet: a deep convolutional encoder-decoder
    architecture for image segmentation, TPAMI 39, arXiv 1511.00561.

    See Also
    --------
    UNetSegmenter : whole maps instead of places as skips.

    Examples
    --------
    >>> from castalia.testing import toy
    >>> X, y = toy("shapes")  # grey images (64, 24, 24) and their masks
    >>> model = SegNetSegmenter(widths=(8, 16), epochs=2, batch_size=16, lr=0.01, random_state=0)
    >>> model.fit(X, y).predict(X[:2]).shape
    (2, 24, 24)
    """

    widths: Annotated[tuple[int, ...], Sizes()] = (64, 128, 256, 512, 512)
    depths: tuple[int, ...] | None = None

    def _network(self, spec: Spec) -> nn.Module:
        return SegNet(spec.inputs, spec.outputs, **fields_for(self, SegNet))


@dataclass(kw_only=True, eq=False, repr=False)
class UNetSegmenter(ImageSegmenter):
    """Encoder and decoder with the encoder's maps beside the decoder's at every size.

    Minimises the cross-entropy of every pixel. The one to try first: sharp outlines, and it learns
    from few images.

    Parameters
    ----------
    widths
        Channels from the full size to the coarsest one; height and width halve from one to the
        next. More of them see more context.
    depth
        Convolutions at each size, on each side.
    dropout
        Probability of zeroing a map at the two coarsest sizes in training.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.UNet``.
    classes_, class_weight_, history_
        See ``ImageSegmenter``.

    Shapes
    ------
    X: images (N, H, W), (N, H, W, C), a tensor (N, C, H, W), a list of several sizes, or
    ``castalia.data.Images``.  y: masks (N, H, W) of whole numbers, or a list of (H, W).

    Notes
    -----
    Where widths double and depth is 2, an image costs about 40 H W widths[0]^2 products at each of
    the sizes. Training holds all maps: halve ``widths`` before ``batch_size`` when memory is short.

    References
    ----------
    2015, Ronneberger, Fischer, Brox, U-Net: convolutional networks for biomedical image
    segmentation, MICCAI, arXiv 1505.04597.

    See Also
    --------
    SegNetSegmenter : places of maxima instead of whole maps as skips.
    DilatedSegmenter : context without going down in size.

    Examples
    --------
    >>> from castalia.testing import toy
    >>> X, y = toy("shapes")  # grey images (64, 24, 24) and their masks
    >>> model = UNetSegmenter(widths=(8, 16), epochs=6, batch_size=8, lr=0.02, random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    """

    widths: Annotated[tuple[int, ...], Sizes()] = (64, 128, 256, 512, 1024)
    depth: Annotated[int, Interval(1, whole=True)] = 2
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        return UNet(spec.inputs, spec.outputs, **fields_for(self, UNet))


@dataclass(kw_only=True, eq=False, repr=False)
class DilatedSegmenter(ImageSegmenter):
    """Dilated convolutions instead of further poolings: wide context at one resolution.

    Minimises the cross-entropy of every pixel. The context module sees 1 + 2 (d_1 + … + d_n) of
    its pixels each way. Right where the kind of a thing depends on its surroundings; maps stay
    large, so it costs more memory a layer than ``UNetSegmenter``.

    Parameters
    ----------
    widths
        Channels of the front end's stages.
    depth
        Convolutions of a stage.
    stride
        1, 2, 4 or 8: what height and width are divided by inside; smaller is sharper and dearer.
    hidden
        Channels of the context module.
    dilations
        Dilations of the context module, one convolution each.
    dropout
        Probability of zeroing a map before the scores in training.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.DilatedNet``.
    classes_, class_weight_, history_
        See ``ImageSegmenter``.

    Shapes
    ------
    X: images (N, H, W), (N, H, W, C), a tensor (N, C, H, W), a list of several sizes, or
    ``castalia.data.Images``.  y: masks (N, H, W) of whole numbers, or a list of (H, W).

    Notes
    -----
    Trained from nothing; the paper starts from a VGG trained on ImageNet.

    References
    ----------
    2016, Yu, Koltun, Multi-scale context aggregation by dilated convolutions, ICLR, arXiv
    1511.07122.

    See Also
    --------
    UNetSegmenter : context by going down in size.

    Examples
    --------
    >>> from castalia.testing import toy
    >>> X, y = toy("shapes")  # grey images (64, 24, 24) and their masks
    >>> model = DilatedSegmenter(widths=(8, 16), stride=2, hidden=16, dilations=(1, 2, 4),
    ...     epochs=2, batch_size=16, lr=0.01, random_state=0).fit(X, y)
    >>> model.predict(X[:2]).shape
    (2, 24, 24)
    """

    widths: Annotated[tuple[int, ...], Sizes()] = (64, 128, 256, 512, 512)
    depth: Annotated[int, Interval(1, whole=True)] = 2
    stride: Annotated[int, OneOf(1, 2, 4, 8)] = 8
    hidden: Annotated[int, Interval(1, whole=True)] = 128
    dilations: Annotated[tuple[int, ...], Sizes()] = CONTEXT
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        return DilatedNet(spec.inputs, spec.outputs, **fields_for(self, DilatedNet))
