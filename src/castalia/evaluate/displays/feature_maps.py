"""What the channels of a layer make of one image, series or row, and the filters that do it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.evaluate.displays.display import Display
from castalia.evaluate.displays.drawn_images import as_images, stretched
from castalia.evaluate.network_probe import encoded, layer_calls
from castalia.nn import evaluating
from castalia.utils.figure_style import INK, heat, label, signed, start, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from torch import Tensor, nn

__all__ = ["FeatureMaps"]


@dataclass
class FeatureMaps(Display):
    """The channels of one layer for one input, on a grid with one colour scale.

    Early layers of a convolutional network answer to edges and keep the place of things; late ones
    answer to few things each. Maps that are empty for every input belong to dead channels; many
    that look the same, to a layer wider than it needs to be.

    Parameters
    ----------
    maps
        (C, H, W) for images, (C, T) for series, (C,) for dense layers.
    name
        What is shown.
    image
        The input, (H, W) or (H, W, 3) between 0 and 1, if it is an image.
    hidden
        Channels that are left out.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU())
    >>> FeatureMaps.from_network(net, torch.rand(1, 1, 8, 8)).maps.shape
    (6, 6, 6)
    """

    maps: np.ndarray
    name: str = ""
    image: np.ndarray | None = None
    hidden: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.maps.ndim <= 3 or not self.maps.size:
            raise ShapeMismatch(
                "FeatureMaps: `maps` must be (C, H, W), (C, T) or (C,) and not empty; got "
                f"{self.maps.shape}."
            )

    @classmethod
    def from_network(
        cls, net: nn.Module, x: Any, layer: str | None = None, *, row: int = 0, most: int = 64
    ) -> FeatureMaps:
        """Run one row in evaluation mode; the network is left as it was, bit for bit.

        Parameters
        ----------
        net
            Any module.
        x
            A batch of inputs on the network's device; several inputs come as a tuple.
        layer
            Name in ``net.named_modules()``; None takes the first convolution, or the first linear
            layer where there is none.
        row
            Which row of the batch.
        most
            Channels to keep, from the first.
        """
        one = tuple(_one(v, row) for v in x) if isinstance(x, tuple) else _one(x, row)
        name = _first(net) if layer is None else layer
        with evaluating(net):
            calls = layer_calls("FeatureMaps", net, one, [name])
        if not calls:
            raise InvalidParameter(
                f"FeatureMaps: `layer` must be called by the network's forward; got {name!r}, "
                "which was not."
            )
        maps = calls[0].out[0].movedim(calls[0].axis - 1, 0).float().cpu().numpy()
        if maps.ndim > 3:  # the slices of a volume, one below the other
            maps = maps.reshape(len(maps), -1, maps.shape[-1])
        first = one[0] if isinstance(one, tuple) else one
        images = as_images("FeatureMaps", first.float().cpu()) if first.ndim == 4 else None
        image = None if images is None else stretched(images)[0]
        return cls(maps[:most], f"layer {name}", image, max(len(maps) - most, 0))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        layer: str | None = None,
        *,
        row: int = 0,
        most: int = 64,
    ) -> FeatureMaps:
        """Run one row through the network of a fitted estimator.

        Parameters
        ----------
        estimator
            A fitted estimator with a network.
        X, y
            Rows as for ``predict``; targets are not needed.
        layer, row, most
            As for ``from_network``.
        """
        net, x = encoded("FeatureMaps", estimator, X)
        return cls.from_network(net, x, layer, row=row, most=most)

    @classmethod
    def from_filters(
        cls,
        net: nn.Module,
        layer: str | None = None,
        *,
        shape: tuple[int, int] | None = None,
        most: int = 64,
    ) -> FeatureMaps:
        """Show the weights of a layer instead of what they do.

        Parameters
        ----------
        net
            Any module.
        layer
            A convolutional or linear layer; None takes the first, as in ``from_network``.
        shape
            Height and width of the images that a linear layer takes as rows.
        most
            Filters to keep, from the first.

        Notes
        -----
        Of several input channels the sum is shown: the filter that a grey image meets.
        """
        name = _first(net) if layer is None else layer
        weight = getattr(dict(net.named_modules()).get(name), "weight", None)
        if weight is None or weight.ndim < 2:
            raise InvalidParameter(
                f"FeatureMaps: `layer` must be one with filters, such as {_first(net)!r}; got "
                f"{name!r}."
            )
        found = weight.detach().float().cpu().numpy()  # (C, inputs, …)
        if found.ndim > 2:
            found = found.sum(axis=1)
        elif shape is not None:
            if shape[0] * shape[1] != found.shape[1]:
                raise ShapeMismatch(
                    f"FeatureMaps: `shape` must have as many pixels as {name!r} has inputs, "
                    f"{found.shape[1]}; got {shape}."
                )
            found = found.reshape(len(found), *shape)
        return cls(found[:most], f"filters of layer {name}", None, max(len(found) - most, 0))

    def plot(self, ax: Axes | None = None) -> FeatureMaps:
        """Draw the channels, beside the input where that is an image and the figure is ours."""
        image = self.image if ax is None else None
        wide = 4.7 if image is None else 6.2
        self.ax_, self.figure_ = start(ax, (wide, 4.2), grid="none")
        if image is not None:
            self._input(image)
        shown = self._mosaic()
        low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
        reach = max(-low, high) or 1.0
        drawn = self.ax_.imshow(
            shown,
            cmap=signed() if low < 0 else heat(),
            vmin=-reach if low < 0 else 0.0,
            vmax=reach,
            interpolation="nearest",
            aspect="auto" if self.maps.ndim == 2 else "equal",
        )
        self._frame()
        bar = self.figure_.colorbar(drawn, ax=self.ax_, shrink=0.7, pad=0.02)
        bar.outline.set_visible(False)  # type: ignore[operator]
        bar.ax.tick_params(colors=INK, labelsize=8, length=2)
        return self

    def _mosaic(self) -> np.ndarray:
        """Return one image of all channels, gaps left empty."""
        if self.maps.ndim == 2:
            return self.maps
        tiles = self.maps if self.maps.ndim == 3 else self.maps[:, None, None]
        count, height, width = tiles.shape
        gap = max(1, round(0.08 * max(height, width))) if self.maps.ndim == 3 else 0
        across = _across(count, (height + gap) / (width + gap))
        down = -(-count // across)
        full = np.full((down * across, height + gap, width + gap), np.nan)
        full[:count, :height, :width] = tiles
        grid = full.reshape(down, across, height + gap, width + gap).transpose(0, 2, 1, 3)
        whole: np.ndarray = grid.reshape(down * (height + gap), across * (width + gap))
        return whole[: down * (height + gap) - gap, : across * (width + gap) - gap]

    def _frame(self) -> None:
        if self.maps.ndim == 2:
            self.ax_.set(xlabel="position", ylabel="channel")
            whole_ticks(self.ax_.yaxis)
        else:
            self.ax_.set(xticks=[], yticks=[])
            self.ax_.spines[:].set_visible(False)
        more = f", {self.hidden} more not shown" if self.hidden else ""
        kind = "unit" if self.maps.ndim == 1 else "channel"
        what = f"{len(self.maps)} {kind}{'s' if len(self.maps) > 1 else ''}{more}"
        self.ax_.set_title(f"{label(self.name, 30)}: {what}" if self.name else what)

    def _input(self, image: np.ndarray) -> None:
        grid = self.figure_.add_gridspec(1, 2, width_ratios=[1, 3.4])
        self.ax_.set_subplotspec(grid[1])
        left = self.figure_.add_subplot(grid[0])
        left.imshow(image, cmap="gray", vmin=0, vmax=1)
        left.set(xticks=[], yticks=[])
        left.spines[:].set_visible(False)
        left.set_title("input", color=INK, size=10.5)


def _across(count: int, tall: float) -> int:
    """Return how many tiles stand in a row: few empty places, and nearly a square in all."""
    square = np.sqrt(count * tall)

    def cost(n: int) -> float:
        return float(-count % n / count + abs(np.log(n / square)))

    return min(range(1, 2 * int(square) + 2), key=cost)


def _one(x: Tensor, row: int) -> Tensor:
    if not -len(x) <= row < len(x):
        raise InvalidParameter(f"FeatureMaps: `row` must be one of the {len(x)} rows; got {row}.")
    return x[row : row + 1] if row != -1 else x[-1:]


def _first(net: nn.Module) -> str:
    """Return the name of the first convolution, or of the first linear layer."""
    from torch.nn import Linear
    from torch.nn.modules.conv import _ConvNd

    for kind in (_ConvNd, Linear):
        for name, module in net.named_modules():
            if isinstance(module, kind):
                return name
    raise InvalidParameter(
        f"FeatureMaps: {type(net).__name__} must have a convolutional or linear layer; got none. "
        "Name the `layer` to show."
    )
