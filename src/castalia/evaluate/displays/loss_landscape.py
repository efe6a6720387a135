"""The loss around trained weights, along random directions whose scale follows the weights.

f(a, b) = J(theta + a delta + b eta).  Each filter (the weights into one unit) of a direction has
the length of that filter in theta, so that sharp and flat can be compared between networks: scaling
a ReLU layer up and the next one down changes no output, and no landscape.
Reference: 2018, Li, Xu, Taylor, Studer, Goldstein, Visualizing the loss landscape of neural nets,
arXiv 1712.09913.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.evaluate.displays.display import Display
from castalia.evaluate.landscape import losses_around, random_directions
from castalia.evaluate.network_probe import as_objective, problem
from castalia.protocols import Batch, Objective
from castalia.utils.figure_style import COLOURS, INK, along_depth, caption, label, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from torch import Tensor, nn

__all__ = ["LossLandscape"]


@dataclass
class LossLandscape(Display):
    """The loss on a line or a square around a network's weights.

    Parameters
    ----------
    loss
        f, (A,) or (A, A); the first index is a.
    steps
        Values of a and b, (A,), with 0 in the middle; 1 is as long as the weights themselves.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from castalia.objectives import SquaredError
    >>> net, x = nn.Linear(3, 1), torch.eye(3)
    >>> found = LossLandscape.from_network(net, SquaredError(), x, net(x).detach(), points=5)
    >>> found.loss.shape, found.centre
    ((5, 5), 0.0)
    """

    loss: np.ndarray
    steps: np.ndarray

    @classmethod
    def from_network(
        cls,
        net: nn.Module,
        objective: Objective | Callable[[Any, Any], Tensor],
        x: Tensor,
        y: Tensor | None = None,
        *,
        weight: Tensor | None = None,
        points: int = 21,
        radius: float = 1.0,
        dimensions: int = 2,
        normalise: bool = True,
        batch_size: int = 4096,
        random_state: int = 0,
    ) -> LossLandscape:
        """Measure the loss on rows, in evaluation mode; the network is left as it was, bit for bit.

        Parameters
        ----------
        net, objective
            The network and what it minimises, penalties included: an objective, or a plain function
            of outputs and targets such as ``nn.CrossEntropyLoss()``.
        x, y, weight
            Rows, targets and row weights, on the network's device.
        points
            Odd number of values along each direction.
        radius
            Largest step along a direction.
        dimensions
            1 or 2 directions.
        normalise
            Give every filter of a direction the length it has in the network; otherwise directions
            are plain normal draws for every parameter.
        batch_size
            Rows at a time.
        random_state
            Seed of the directions.
        """
        _check(points, radius, dimensions)
        half = points // 2
        steps = radius * np.arange(-half, half + 1) / half  # 0 exactly in the middle
        directions = random_directions(net, dimensions, random_state, normalise=normalise)
        batch = Batch(x, y, weight)
        return cls(
            losses_around(net, as_objective(objective), batch, directions, steps, batch_size), steps
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        points: int = 21,
        radius: float = 1.0,
        dimensions: int = 2,
        random_state: int = 0,
    ) -> LossLandscape:
        """Measure the loss of a fitted estimator's network on rows X and targets y.

        Every row counts once, whatever weights the training used.

        Parameters
        ----------
        estimator
            A fitted estimator with a network; of several stages the last one's objective is taken.
        X, y
            Rows and targets as for ``fit``.
        points, radius, dimensions, random_state
            As for ``from_network``.
        """
        net, objective, batch = problem("LossLandscape", estimator, X, y)
        return cls.from_network(
            net,
            objective,
            *batch[:2],
            weight=batch.weight,
            points=points,
            radius=radius,
            dimensions=dimensions,
            random_state=random_state,
        )

    @property
    def centre(self) -> float:
        """The loss at the network's own weights."""
        return float(self.loss[(len(self.steps) // 2,) * self.loss.ndim])

    def sharpness(self, radius: float | None = None) -> float:
        """Return the mean rise of the loss within a radius, over 1 + the loss in the middle.

        Parameters
        ----------
        radius
            How far from the middle; None takes all that was measured.
        """
        grids = np.meshgrid(*[self.steps] * self.loss.ndim, indexing="ij")
        distance = np.sqrt(sum(np.square(grid) for grid in grids))
        within = distance <= (self.steps[-1] if radius is None else radius) + 1e-12
        return float((self.loss[within].mean() - self.centre) / (1 + self.centre))

    def levels(self, count: int = 14) -> np.ndarray:
        """Return losses to draw contours at, from the lowest to the highest that was measured.

        Equal ratios where the losses span more than a decade, equal steps otherwise. Give the
        levels of one landscape to the ``plot`` of another, and the two can be compared.
        """
        finite = self.loss[np.isfinite(self.loss)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        if low >= high:
            return np.linspace(low - 0.5, low + 0.5, count)
        if low >= 0 and high > 10 * low:
            return np.geomspace(max(low, 1e-4 * high), high, count)
        return np.linspace(low, high, count)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: str = "contour",
        levels: Sequence[float] | None = None,
        name: str = "",
    ) -> LossLandscape:
        """Draw a curve along one direction; contours or a surface over two.

        Parameters
        ----------
        ax
            Where to draw; for a surface, axes in three dimensions.
        kind
            ``"contour"`` or ``"surface"``.
        levels
            Losses of the contours and limits of the colours, as ``levels`` returns them; a surface
            is cut off above the last.
        name
            What to call it: the title, or the name of a curve among several on the same axes.
        """
        if kind not in ("contour", "surface"):
            raise InvalidParameter(
                f"LossLandscape: `kind` must be 'contour' or 'surface'; got {kind!r}."
            )
        if self.loss.ndim == 1:
            self._curve(ax, name)
            return self
        chosen = self.levels() if levels is None else np.asarray(levels, dtype=float)
        if kind == "contour":
            self._contours(ax, chosen)
        else:
            self._surface(ax, chosen)
        self.ax_.set_title(label(name, 40), color=INK, size=10.5)
        return self

    def _curve(self, ax: Axes | None, name: str) -> None:
        self.ax_, self.figure_ = start(ax, (4.7, 3.3))
        colour = COLOURS[len(self.ax_.lines) % len(COLOURS)]
        words = label(name, 40) if name else "_"
        self.ax_.plot(self.steps, self.loss, color=colour, lw=1.8, label=words)
        self.ax_.set(xlabel="step along the direction", ylabel="loss")
        if name:
            caption(self.ax_)

    def _contours(self, ax: Axes | None, levels: np.ndarray) -> None:
        self.ax_, self.figure_ = start(ax, (4.3, 3.9), grid="none")
        colours = {"levels": levels, "cmap": along_depth(), "norm": _norm(levels)}
        where = self.steps, self.steps, self.loss.T
        self.ax_.contourf(*where, alpha=0.22, extend="both", **colours)
        lines = self.ax_.contour(*where, linewidths=1.1, **colours)
        self.ax_.clabel(lines, levels=list(levels[::2]), fontsize=7, fmt="%.2g")
        self.ax_.plot(0, 0, marker="+", ms=9, mew=1.6, color=INK)
        self.ax_.set(xlabel="first direction", ylabel="second direction", aspect="equal")

    def _surface(self, ax: Any, levels: np.ndarray) -> None:
        if ax is None:
            _, self.figure_ = start(None, (4.9, 4.2))
            self.figure_.clear()
            ax = self.figure_.add_subplot(projection="3d")
        self.ax_, self.figure_ = ax, ax.figure
        norm = _norm(levels)
        ratios = type(norm).__name__ == "LogNorm"
        cut = np.clip(self.loss, levels[0] if ratios else -np.inf, levels[-1])
        height = np.log10(cut) if ratios else cut
        a, b = np.meshgrid(self.steps, self.steps, indexing="ij")
        ax.plot_surface(
            a,
            b,
            height,
            facecolors=along_depth()(norm(cut)),
            rcount=len(self.steps),
            ccount=len(self.steps),
            linewidth=0.25,
            edgecolor=(1, 1, 1, 0.35),
            shade=False,
        )
        _dress_space(ax)
        words = "log₁₀ of the loss" if ratios else "loss"
        ax.set(xlabel="first direction", ylabel="second direction", zlabel=words)


def _norm(levels: np.ndarray) -> Any:
    """Return the scale of the colours: of ratios where the levels have equal ratios."""
    from matplotlib.colors import LogNorm, Normalize

    even = levels[0] <= 0 or np.allclose(np.diff(levels), levels[1] - levels[0])
    return (Normalize if even else LogNorm)(levels[0], levels[-1])


def _dress_space(ax: Any) -> None:
    """Give axes in three dimensions the house style: no panes, faint lines, small text."""
    ax.patch.set_alpha(0)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_pane_color((0, 0, 0, 0))
        axis.line.set(color=INK, alpha=0.5, linewidth=0.8)
        axis._axinfo["grid"].update(color=INK + "30", linewidth=0.6)
        axis.label.set(color=INK, size=9)
        axis.set_tick_params(colors=INK, labelsize=7.5)
    ax.view_init(elev=32, azim=-58)
    ax.set_box_aspect((1, 1, 0.75), zoom=0.9)  # room for the labels


def _check(points: int, radius: float, dimensions: int) -> None:
    if points < 3 or points % 2 == 0:
        raise InvalidParameter(
            f"LossLandscape: `points` must be odd and at least 3, so that 0 is one of them; got "
            f"{points}."
        )
    if radius <= 0:
        raise InvalidParameter(f"LossLandscape: `radius` must be above 0; got {radius}.")
    if dimensions not in (1, 2):
        raise InvalidParameter(f"LossLandscape: `dimensions` must be 1 or 2; got {dimensions}.")
