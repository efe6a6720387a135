"""Where an image network sees what it says: Grad-CAM.

L = relu(sum_k a_k A_k),  a_k = mean over places of dS / dA_k
for the maps A_k of one layer and the score S of a class. Where maps are averaged and read by a
linear layer, a_k is its weight over the number of places: the class activation map.
Shapes: N images, C channels, H height, W width, K classes.
References: 2017, Selvaraju et al., Grad-CAM: visual explanations from deep networks via
gradient-based localization, arXiv 1610.02391; 2016, Zhou et al., Learning deep features for
discriminative localization, arXiv 1512.04150.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.evaluate.displays.drawn_images import as_images, stretched
from castalia.evaluate.network_probe import encoded
from castalia.nn import evaluating, recording
from castalia.utils.figure_style import COLOURS, label, start
from castalia.utils.text import did_you_mean, listing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["GradCAM"]

MOST = 16  # images in a figure
VEIL = 0.75  # of a place that says nothing


@dataclass
class GradCAM:
    """How much each place of an image speaks for a class.

    A network that finds its class on the background, on a watermark or on a ruler shows it here.

    Parameters
    ----------
    maps
        How much each pixel speaks for the class, (N, H, W), at least 0, in units of the score.
    images
        The images, (N, H, W) or (N, H, W, 3), between 0 and 1.
    names
        The classes explained, one an image.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> from castalia import ConvNetClassifier
    >>> from castalia.testing.toys import stripes
    >>> X, y = stripes()
    >>> model = ConvNetClassifier(widths=(4, 8), convs=1, epochs=2, random_state=0).fit(X, y)
    >>> GradCAM.from_estimator(model, X[:3]).maps.shape
    (3, 12, 12)
    """

    maps: np.ndarray
    images: np.ndarray
    names: Sequence[str] = ()
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_network(
        cls, net: nn.Module, x: Tensor, classes: Any = None, *, layer: str | None = None
    ) -> GradCAM:
        """Explain scores of a network, which is left as it was.

        Parameters
        ----------
        net
            From images (N, C, H, W) to scores (N, K).
        x
            Images on the network's device.
        classes
            Number of the class to explain for each image, or one for all; None: the highest.
        layer
            Name in ``net.named_modules()`` of a layer that gives maps; None: the last that does.
        """
        name = _last_maps(net, x[:1]) if layer is None else _known(net, layer)
        with evaluating(net), torch.enable_grad(), _cut_at(net, name) as cut:
            scores = net(x)
            chosen = _chosen(scores, classes)
            (slopes,) = torch.autograd.grad(scores.gather(1, chosen[:, None]).sum(), cut[0])
        share = slopes.mean(dim=(2, 3), keepdim=True)
        heat = (share * cut[0].detach()).sum(dim=1, keepdim=True).relu()
        heat = F.interpolate(heat, x.shape[2:], mode="bilinear", align_corners=False)
        seen = as_images("GradCAM", x.float().cpu())
        found = heat[:, 0].float().cpu().numpy()
        images = np.zeros_like(found) if seen is None else stretched(seen)
        return cls(found, images, [str(int(c)) for c in chosen])

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, layer: str | None = None
    ) -> GradCAM:
        """Explain predictions of a fitted classifier of images.

        Parameters
        ----------
        estimator
            The classifier.
        X
            Images as for ``predict``.
        y
            The class to explain for each image, or one for all; None: the predicted ones.
        layer
            As for ``from_network``.
        """
        net, x = encoded("GradCAM", estimator, X)
        known = [str(c) for c in estimator.classes_]
        numbers = None if y is None else [_number(str(c), known) for c in np.atleast_1d(y)]
        made = cls.from_network(net, x, numbers, layer=layer)
        made.names = [known[int(c)] for c in made.names]
        return made

    def plot(self, ax: Axes | None = None) -> GradCAM:
        """Draw the images, and below each what speaks for its class: the rest under a veil."""
        shown = min(len(self.maps), MOST)
        self.ax_, self.figure_ = start(ax, (max(1.1 * shown, 2.2), 2.5), grid="none")
        rows = [
            np.concatenate(list(part[:shown]), axis=1) for part in (self._colour(), self._lit())
        ]
        self.ax_.imshow(np.concatenate(rows, axis=0), interpolation="nearest")
        width = self.maps.shape[2]
        self.ax_.set_yticks([])
        self.ax_.set_xticks(
            [width * (i + 0.5) - 0.5 for i in range(shown)],
            [label(name, 12) for name in self.names[:shown]],
        )
        self.ax_.spines[:].set_visible(False)
        self.ax_.tick_params(length=0)
        return self

    def _colour(self) -> np.ndarray:
        """Return the images with three channels, (N, H, W, 3)."""
        grey = self.images.ndim == 3
        return np.repeat(self.images[..., None], 3, axis=3) if grey else self.images

    def _lit(self) -> np.ndarray:
        """Return grey images with what speaks for the class in colour, (N, H, W, 3)."""
        from matplotlib.colors import to_rgb

        most = self.maps.max(axis=(1, 2), keepdims=True)
        share = (self.maps / np.where(most > 0, most, 1.0))[..., None]
        grey = self._colour().mean(axis=3, keepdims=True)
        colour = np.asarray(to_rgb(COLOURS[1]))
        return grey * (1 - VEIL * share) + VEIL * share * colour


@contextmanager
def _cut_at(net: nn.Module, name: str) -> Iterator[list[Tensor]]:
    """Let the graph of a pass begin at the maps of a layer; they are put into the list."""
    cut: list[Tensor] = []

    def begin(module: nn.Module, inputs: Any, out: Tensor) -> Tensor:
        cut[:] = [out.detach().requires_grad_()]
        return cut[0]

    handle = dict(net.named_modules())[name].register_forward_hook(begin)
    try:
        yield cut
    finally:
        handle.remove()


def _last_maps(net: nn.Module, x: Tensor) -> str:
    """Return the name of the last layer that gives maps of more than one place."""
    names = [name for name, _ in net.named_modules() if name]
    with evaluating(net), torch.no_grad(), recording(net, names) as seen:
        net(x)
    found = [name for name, _, out in seen if _are_maps(out)]
    if not found:
        raise InvalidParameter(
            f"GradCAM: {type(net).__name__} must have a layer that gives maps (N, C, H, W); got "
            "none. Transformers on patches have none."
        )
    return found[-1]


def _are_maps(out: Any) -> bool:
    return isinstance(out, Tensor) and out.ndim == 4 and out.shape[2] * out.shape[3] > 1


def _known(net: nn.Module, layer: str) -> str:
    names = [name for name, _ in net.named_modules() if name]
    if layer not in names:
        raise InvalidParameter(
            f"GradCAM: `layer` must be one of the network's, {listing(names, most=12)}; got "
            f"{layer!r}.{did_you_mean(layer, names)}"
        )
    return layer


def _chosen(scores: Tensor, classes: Any) -> Tensor:
    """Return the number of the class of each image, (N,)."""
    if classes is None:
        return scores.argmax(dim=1)
    wanted = torch.as_tensor(np.broadcast_to(np.asarray(classes), (len(scores),)).copy())
    if int(wanted.min()) < 0 or int(wanted.max()) >= scores.shape[1]:
        raise InvalidParameter(
            f"GradCAM: `classes` must be from 0 to {scores.shape[1] - 1}; got {wanted.tolist()}."
        )
    return wanted.to(scores.device)


def _number(name: str, known: list[str]) -> int:
    if name not in known:
        raise InvalidParameter(
            f"GradCAM: `y` must be one of the classes, {listing(known)}; got {name!r}."
            f"{did_you_mean(name, known)}"
        )
    return known.index(name)
