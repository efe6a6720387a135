"""Style transfer: the content of one image in the style of another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.base import DirectEstimator, Interval, OneOf, check_parameters
from castalia.data.images import as_images
from castalia.data.images.image_collection import CHANNELS
from castalia.errors import InvalidData
from castalia.models.vision.colour_palette import palette, with_palette
from castalia.models.vision.image_size import ImageSize
from castalia.models.vision.network_features import Layers, Network, features_of, seen_by
from castalia.models.vision.synthesis import synthesise
from castalia.nets.vision import Taps, scale_layers
from castalia.objectives import StyleLoss, gram
from castalia.protocols import Batch, Spec
from castalia.utils.devices import resolve_device
from castalia.utils.seeds import generator, seed_from

__all__ = ["StyleTransfer"]

SCALES = 5  # of the style, from the finest
CONTENT_SCALE = 3  # at which contents are compared, or the coarsest there is


@dataclass(kw_only=True, eq=False, repr=False)
class StyleTransfer(TransformerMixin, DirectEstimator):
    """Paints images in the style of another one.

    A fixed network reads the image. Its pixels are changed, by L-BFGS, until
    deep maps are those of the content, correlations between the channels of each map (Gram
    matrices) those of the style, and neighbouring pixels alike: see
    ``castalia.objectives.StyleLoss``. A toy and a lesson on what layers know; there is nothing to
    predict with it.

    Parameters
    ----------
    network
        What looks: a fitted classifier of images of ours, or a module with ``features``, such as
        a ``VGG`` into which ``load_weights`` put torchvision's, which gives the published look.
        None draws a small VGG with random weights: it needs no file, and carries over colours and
        brush strokes, less so larger forms.
    content_layers
        Layers at which contents are compared; None takes one, a quarter of the size of the image
        or nearest to it.
    style_layers
        Layers whose correlations make the style; None takes the first activation of each of the
        five finest scales.
    content_weight, style_weight, variation_weight
        How much it matters to keep the content, to have the style, to be smooth.
    steps
        Iterations of L-BFGS for an image.
    start
        Where the pixels begin: the ``"content"``, or ``"noise"``.
    recolour
        Give contents the style's mean and covariance of colours at the start, so that keeping
        the content does not mean keeping its colours; False is the paper's way.
    image_size
        Longer side in pixels to which images, style included, are brought; a pair is height and
        width. None keeps their size.

    Attributes
    ----------
    module_ : torch.nn.Module
        The layers looked through, a ``castalia.nets.vision.Taps``.
    grams_ : dict of ndarray (C, C)
        The style: products of channels averaged over places, for each layer; of several images
        the mean.
    colour_mean_, colour_covariance_ : ndarray (3,) and (3, 3)
        Of the style's red, green and blue, between 0 and 1.
    content_layers_, style_layers_ : list of str
        The layers in use.
    history_ : list of list of dict
        Of each image of the last ``transform``: the loss and its parts every ten iterations.

    Shapes
    ------
    X: (n, H, W, 3), (n, H, W), one image (H, W, 3), a tensor (n, 3, H, W), or ``Images``; bytes,
    or floats between 0 and 1. Results: (n, H, W, 3) bytes, a list where sizes differ.

    Notes
    -----
    An iteration costs a forward and a backward pass, so a GPU helps. Images are made one by
    one: each has its own curvature. The loss never rises. A classifier of grey images sees
    luminance only, and colours stay those of the content. Scale matters: the style has the size of
    ``image_size`` too.

    References
    ----------
    2016, Gatys, Ecker, Bethge, Image style transfer using convolutional neural networks, CVPR,
    arXiv 1508.06576. 2016, He, Wang, Hopcroft, A powerful generative model using random weights for
    the deep image representation, NeurIPS, arXiv 1606.04801.

    See Also
    --------
    castalia.models.vision.synthesise : pixels that minimise any function.
    VGGClassifier : the network of the paper.

    Examples
    --------
    >>> from castalia.testing.toys import textures
    >>> X, _ = textures()
    >>> painter = StyleTransfer(steps=10, random_state=0).fit(X[0])
    >>> painter.transform(X[1:3]).shape, painter.style_layers_
    ((2, 16, 16, 3), ['relu1_1', 'relu2_1', 'relu3_1'])
    """

    network: Annotated[Any, Network()] = None
    content_layers: Annotated[Any, Layers()] = None
    style_layers: Annotated[Any, Layers()] = None
    content_weight: Annotated[float, Interval(0)] = 0.01
    style_weight: Annotated[float, Interval(0)] = 1.0
    variation_weight: Annotated[float, Interval(0)] = 0.1
    steps: Annotated[int, Interval(1, whole=True)] = 200
    start: Annotated[str, OneOf("content", "noise")] = "content"
    recolour: Annotated[bool, OneOf(True, False)] = True
    image_size: Annotated[Any, ImageSize()] = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> StyleTransfer:
        """Learn the style of an image, or the mean style of several.

        Returns
        -------
        self
        """
        check_parameters(self)
        styles = list(self._each(X))
        self.seed_ = seed_from(self.random_state)
        self._choose_layers(min((tuple(style.shape[2:]) for style in styles), key=min))
        made = self._network(self.spec_).requires_grad_(False).eval()
        self.module_ = made.to(resolve_device(self.device))
        with torch.no_grad():
            found = [self._grams(style) for style in styles]
            mean, covariance = zip(*map(palette, styles), strict=True)
        self.colour_mean_ = torch.stack(mean).mean(dim=0).cpu().numpy()
        self.colour_covariance_ = torch.stack(covariance).mean(dim=0).cpu().numpy()
        self.grams_ = {
            layer: np.mean([grams[layer] for grams in found], axis=0)
            for layer in self.style_layers_
        }
        return self

    def transform(self, X: Any) -> Any:
        """Return images in the style.

        Returns
        -------
        ndarray (n, H, W, 3) of bytes, or list
            The paintings; a list where sizes differ.
        """
        check_is_fitted(self, "grams_")
        self.module_.to(resolve_device(self.device))
        done = [self._paint(content) for content in self._each(X)]
        self.history_ = [history for _, history in done]
        made = [_bytes(x) for x, _ in done]
        return np.stack(made) if len({p.shape for p in made}) == 1 else made

    def score(self, X: Any, y: Any = None) -> float:
        """Return the share of the loss that is taken away, a mean over the images."""
        self.transform(X)
        return float(np.mean([1 - h[-1]["loss"] / h[0]["loss"] for h in self.history_]))

    def _network(self, spec: Spec) -> nn.Module:
        """Return the layers up to the last one needed; also of a saved model, to be filled."""
        return Taps(features_of(self.network, self.seed_), spec.extra["layers"])

    def _choose_layers(self, size: tuple[int, ...]) -> None:
        """Take the layers asked for, or find some on every scale that the images leave."""
        features = features_of(self.network, self.seed_)
        channels = next(features.parameters()).shape[1]
        scales = scale_layers(features, channels, size)
        if not scales:
            raise InvalidData(
                f"StyleTransfer: the style must leave maps of at least 4 x 4; got {size} pixels."
            )
        deep = scales[min(CONTENT_SCALE, len(scales)) - 1][-1]
        firsts = [names[0] for names in scales[:SCALES]]
        self.content_layers_ = list(self.content_layers or [deep])
        self.style_layers_ = list(self.style_layers or firsts)
        layers = [*dict.fromkeys([*self.style_layers_, *self.content_layers_])]
        self.spec_ = Spec(channels, 0, extra={"layers": layers})

    def _maps(self, x: Tensor) -> dict[str, Tensor]:
        """Return what the layers make of images between 0 and 1."""
        seen = seen_by(self.network, x, self.spec_.inputs)
        maps: dict[str, Tensor] = self.module_(seen.to(next(self.module_.parameters()).dtype))
        return maps

    def _grams(self, style: Tensor) -> dict[str, np.ndarray]:
        maps = self._maps(style)
        return {
            layer: (gram(maps[layer])[0] / maps[layer][0, 0].numel()).cpu().numpy()
            for layer in self.style_layers_
        }

    def _paint(self, content: Tensor) -> tuple[Tensor, list[dict[str, float]]]:
        """Return the result for one image, (1, 3, H, W), and how the loss fell."""
        loss = StyleLoss(
            {name: torch.from_numpy(g).to(content.device) for name, g in self.grams_.items()},
            content_layers=self.content_layers_,
            content_weight=self.content_weight,
            style_weight=self.style_weight,
            variation_weight=self.variation_weight,
        )
        with torch.no_grad():
            if self.recolour:
                colours = (self.colour_mean_, self.colour_covariance_)
                content = with_palette(content, *(torch.from_numpy(v).to(content) for v in colours))
            wanted = self._maps(content)
        begin = content
        if self.start == "noise":
            noise = torch.rand(content.shape, generator=generator(self.seed_), dtype=content.dtype)
            begin = noise.to(content)

        def terms(x: Tensor) -> dict[str, Tensor]:
            return loss.terms(self._maps, Batch(x, wanted), "train")  # type: ignore[arg-type]

        return synthesise(terms, begin, steps=self.steps)

    # -- images -------------------------------------------------------------------------------

    def _each(self, X: Any) -> Iterator[Tensor]:
        """Yield images one by one at their size, on the device, (1, 3, H, W) between 0 and 1."""
        images = as_images(_several(X), type(self).__name__)
        if images.channels not in CHANNELS:
            raise InvalidData(
                f"StyleTransfer: images must have 1, 3 or 4 channels; got {images.channels}."
            )
        for i, (height, width) in enumerate(images.sizes.tolist()):
            pixels = images.pixels([i], self._size(height, width), 3)
            if not pixels.is_floating_point():
                pixels = pixels.float() / 255
            elif pixels.amin() < 0 or pixels.amax() > 1:
                raise InvalidData(
                    "StyleTransfer: images of floats must lie between 0 and 1; image "
                    f"{i} goes from {float(pixels.amin()):g} to {float(pixels.amax()):g}."
                )
            yield pixels.to(resolve_device(self.device)).contiguous()

    def _size(self, height: int, width: int) -> tuple[int, int]:
        if self.image_size is None:
            return height, width
        if isinstance(self.image_size, tuple | list):
            return int(self.image_size[0]), int(self.image_size[1])
        factor = self.image_size / max(height, width)
        return max(1, round(height * factor)), max(1, round(width * factor))


def _several(X: Any) -> Any:
    """Return one image, (H, W) or (H, W, 3), as a list of one; several as they are."""
    alone = isinstance(X, np.ndarray) and (X.ndim == 2 or (X.ndim == 3 and X.shape[2] in (3, 4)))
    return [X] if alone else X


def _bytes(x: Tensor) -> np.ndarray:  # (1, 3, H, W)
    """Return one image as bytes with channels last, (H, W, 3)."""
    return (255 * x[0].clamp(0, 1)).round().to(torch.uint8).permute(1, 2, 0).cpu().numpy()
