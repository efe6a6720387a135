"""What the units of each layer say, and how many of them say nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.evaluate.activity import activity
from castalia.evaluate.displays.display import Display
from castalia.evaluate.network_probe import encoded
from castalia.utils.figure_style import COLOURS, INK, by_depth, labels, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from torch import nn

__all__ = ["ActivationHistogram"]


@dataclass
class ActivationHistogram(Display):
    """Distribution of the activations of each layer over a batch, first layer on top.

    Healthy layers look alike. A spike at zero that grows from layer to layer is a signal that
    vanishes; heaps at both limits are saturated units; a unit without slope on any row is dead: no
    gradient passes it, on these rows at least.

    Parameters
    ----------
    names
        The layers, in the order of their calls, (L,).
    density
        Histograms, each of area 1, (L, B); what lies beyond the edges is in the last bins.
    edges
        Limits of the bins, the same for all layers, (B + 1,).
    mean, std
        Of each layer, (L,).
    flat
        Share of values where the activation has no slope, (L,); NaN for layers that are none.
        Half of them is usual for ReLU, where it means zeros; for a sigmoid it means saturation.
    dead, units
        How many units or channels are dead, and how many there are, (L,).

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(1, 4), nn.ReLU())
    >>> _ = net[0].weight.data.fill_(1.0), net[0].bias.data.copy_(torch.tensor([0, 0, 0, -9.0]))
    >>> shown = ActivationHistogram.from_network(net, torch.tensor([[-1.0], [1.0]]))
    >>> shown.names, shown.dead, shown.units, shown.flat
    (['1'], array([1]), array([4]), array([0.625]))
    """

    names: list[str]
    density: np.ndarray
    edges: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    flat: np.ndarray
    dead: np.ndarray
    units: np.ndarray

    @classmethod
    def from_network(
        cls,
        net: nn.Module,
        x: Any,
        *,
        layers: Iterable[str] | None = None,
        bins: int = 61,
        below: float = 0.01,
    ) -> ActivationHistogram:
        """Measure one batch in the network's present mode; the network is left as it was.

        Parameters
        ----------
        net
            Any module.
        x
            Inputs on the network's device; several come as a tuple.
        layers
            Names in ``net.named_modules()``; None takes every activation or, where activations are
            called as functions, every linear and convolutional layer.
        bins
            Of the histograms.
        below
            Slopes smaller than this count as none.
        """
        if bins < 2:
            raise InvalidParameter(f"ActivationHistogram: `bins` must be at least 2; got {bins}.")
        found = activity("ActivationHistogram", net, x, layers, below)
        if not found:
            raise InvalidParameter(
                "ActivationHistogram: the layers must be called by the network's forward; got none "
                "that was."
            )
        edges = np.linspace(*_limits([layer.values for layer in found]), bins + 1)
        return cls(
            [layer.name for layer in found],
            np.stack([_histogram(layer.values, edges) for layer in found]),
            edges,
            np.array([layer.mean for layer in found]),
            np.array([layer.std for layer in found]),
            np.array([layer.flat for layer in found]),
            np.array([int(layer.dead.sum()) for layer in found]),
            np.array([len(layer.dead) for layer in found]),
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        layers: Iterable[str] | None = None,
        bins: int = 61,
        below: float = 0.01,
    ) -> ActivationHistogram:
        """Measure the network of a fitted estimator on rows X.

        Parameters
        ----------
        estimator
            A fitted estimator with a network.
        X, y
            Rows as for ``predict``; targets are not needed.
        layers, bins, below
            As for ``from_network``.
        """
        net, x = encoded("ActivationHistogram", estimator, X)
        return cls.from_network(net, x, layers=layers, bins=bins, below=below)

    def plot(self, ax: Axes | None = None) -> ActivationHistogram:
        """Draw one ridge a layer; heights are square roots, so that a spike leaves the rest seen.

        To the right stand the share of values without slope and the number of dead units.
        """
        count = len(self.names)
        self.ax_, self.figure_ = start(ax, (5.4, 1.0 + 0.42 * max(count, 3)), grid="x")
        middle = (self.edges[:-1] + self.edges[1:]) / 2
        for i, colour in enumerate(by_depth(count)):
            height = np.sqrt(self.density[i] / max(self.density[i].max(), 1e-300))
            top = i - 1.25 * height
            style = {"color": colour, "zorder": 2 + i}
            self.ax_.fill_between(middle, i, top, alpha=0.3, lw=0, step="mid", **style)
            self.ax_.step(middle, top, where="mid", lw=1.2, **style)
        self.ax_.set_yticks(range(count), labels(self.names, 18))
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set(ylim=(count - 0.75, -1.45), xlabel="activation")
        self.ax_.spines["left"].set_visible(False)
        self._shares()
        return self

    def _shares(self) -> None:
        """Write to the right of each ridge what passes no gradient on."""
        side = self.ax_.secondary_yaxis("right")
        side.spines["right"].set_visible(False)
        side.set_yticks(range(len(self.names)), [self._words(i) for i in range(len(self.names))])
        side.tick_params(length=0, labelsize=8.5)
        for text, dead in zip(side.get_yticklabels(), self.dead, strict=True):
            text.set(color=COLOURS[4] if dead else INK, va="bottom")

    def _words(self, i: int) -> str:
        flat = f"{self.flat[i]:.0%} flat" if np.isfinite(self.flat[i]) else ""
        dead = f"{self.dead[i]} of {self.units[i]} dead" if self.dead[i] else ""
        return ", ".join(filter(None, (flat, dead)))


def _limits(values: list[np.ndarray]) -> tuple[float, float]:
    """Return where all but a thousandth of each layer's finite values lie."""
    finite = [v[np.isfinite(v)] for v in values]
    ends = np.array([np.quantile(v, (0.001, 0.999)) for v in finite if len(v)])
    if not len(ends):
        return -1.0, 1.0
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    room = 0.02 * (high - low) or max(abs(high), 1.0)
    return low - room, high + room


def _histogram(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    kept = values[~np.isnan(values)]
    counts = np.histogram(np.clip(kept, edges[0], edges[-1]), edges)[0]
    found: np.ndarray = counts / (max(len(kept), 1) * np.diff(edges))
    return found
