"""Classifiers of images that begin with patches, with the recipe of ``image_recipe``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from torch import nn

from castalia.base import Interval, Sizes, fields_for
from castalia.base.transferable import Transferable
from castalia.models.vision.image_classifier import ImageClassifier
from castalia.models.vision.recipe_fields import ByRecipe
from castalia.nets.vision import ConvNeXt, ViT
from castalia.protocols import Spec

__all__ = ["ConvNeXtClassifier", "ViTClassifier"]


@dataclass(kw_only=True, eq=False, repr=False)
class ViTClassifier(ByRecipe, Transferable, ImageClassifier):  # type: ignore[misc]
    """Vision transformer: an image is a sentence of patches.

    Cross-entropy is minimised. Worth its cost with weights to start from, or with very many images;
    from nothing and on some thousands of them a ``ResNetClassifier`` is better.

    Parameters
    ----------
    patch
        Height and width of a patch, which divides those of the image; None: 4 pixels for images up
        to 64, else 16.
    dim
        Size of the vectors.
    depth
        Number of blocks.
    heads
        Attention heads.
    hidden
        Width of the dense layers; None: four times ``dim``.
    dropout
        Probability of zeroing an output of each part in training.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.ViT``.
    classes_, history_
        See ``ImageClassifier``.

    Shapes
    ------
    X: (n, H, W) or (n, H, W, C) array, (n, C, H, W) tensor, or ``Images``.  y: (n,) classes, or
    (n, L) of 0 and 1.

    Notes
    -----
    5.7 million weights by default at 224 pixels and a thousand classes (the tiny one); dim=768 and
    heads=12 make the base, 86.6 million, whose weight files of torchvision and timm start it.

    References
    ----------
    2021, Dosovitskiy et al., An image is worth 16x16 words, arXiv 2010.11929.

    See Also
    --------
    ResNetClassifier : convolutions, which need fewer images.

    Examples
    --------
    >>> from castalia.testing.toys import stripes
    >>> X, y = stripes(90)
    >>> model = ViTClassifier(dim=16, depth=1, heads=2, epochs=1, random_state=0)
    >>> model.fit(X, y).predict(X).shape
    (90,)
    """

    patch: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    dim: Annotated[int, Interval(1, whole=True)] = 192
    depth: Annotated[int, Interval(1, whole=True)] = 12
    heads: Annotated[int, Interval(1, whole=True)] = 3
    hidden: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        size = spec.extra["size"]
        own = fields_for(self, ViT)
        return self._started(ViT(spec.inputs, spec.outputs, size=size, **own))


@dataclass(kw_only=True, eq=False, repr=False)
class ConvNeXtClassifier(ByRecipe, Transferable, ImageClassifier):  # type: ignore[misc]
    """ConvNeXt: depthwise filters and dense layers over channels, with layer norms.

    Cross-entropy is minimised. Strong with weights to start from; from nothing and on small images
    a ``ResNetClassifier`` learns faster.

    Parameters
    ----------
    widths
        Channels of each stage.
    blocks
        Blocks of each stage, as many as widths.
    patch
        Height and width of the first patches.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.vision.ConvNeXt``.
    classes_, history_
        See ``ImageClassifier``.

    Shapes
    ------
    X: (n, H, W) or (n, H, W, C) array, (n, C, H, W) tensor, or ``Images``.  y: (n,) classes, or
    (n, L) of 0 and 1.

    Notes
    -----
    28.6 million weights by default for a thousand classes (the tiny one); weight files of
    torchvision and timm start it.

    References
    ----------
    2022, Liu et al., A ConvNet for the 2020s, arXiv 2201.03545.

    See Also
    --------
    ResNetClassifier : batch norm and shortcuts, quicker from nothing.

    Examples
    --------
    >>> from castalia.testing.toys import stripes
    >>> X, y = stripes(90)
    >>> model = ConvNeXtClassifier(widths=(8,), blocks=(1,), epochs=1, random_state=0)
    >>> model.fit(X, y).predict(X).shape
    (90,)
    """

    widths: Annotated[tuple[int, ...], Sizes()] = (96, 192, 384, 768)
    blocks: Annotated[tuple[int, ...], Sizes()] = (3, 3, 9, 3)
    patch: Annotated[int, Interval(1, whole=True)] = 4

    def _network(self, spec: Spec) -> nn.Module:
        size = spec.extra["size"]
        own = fields_for(self, ConvNeXt)
        return self._started(ConvNeXt(spec.inputs, spec.outputs, size=size, **own))
