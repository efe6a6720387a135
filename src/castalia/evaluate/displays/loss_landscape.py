"""The loss around trained weights, along random directions whose scale follows the weights.

f(a, b) = J(theta + a delta + b eta).  Each filter (the weights into one unit) of a direction has
the length of that filter in theta, so that sharp and flat can be compared between networks: scaling
a ReLU layer up and the next one down changes no output, and no landscape.
Reference: 2018, Li, Xu, Taylor, Studer, Goldstein, Visualizing the loss landscape of neural nets,
arXiv 1712.09913.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.evaluate.displays.style import COLOURS, INK, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor, nn

    from castalia.protocols import Objective

__all__ = ["LossLandscape"]


@dataclass
class LossLandscape:
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
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

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
        from castalia.evaluate.inside import as_objective
        from castalia.evaluate.landscape import losses_around, random_directions
        from castalia.protocols import Batch

        _check(points, radius, dimensions)
        half = points // 2
        steps = radius * np.arange(-half, half + 1) / half  # 0 exactly in the middle
        directions = random_directions(net, dimensions, random_state, normalise=normalise)
        batch = Batch(x, y, weight)
        return cls(losses_around(net, as_objective(objective), batch, directions, steps, batch_size), steps)

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
        from castalia.evaluate.inside import problem

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
            How far to look; None looks at all that was measured.
        """
        grids = np.meshgrid(*[self.steps] * self.loss.ndim, indexing="ij")
        distance = np.sqrt(sum(np.square(grid) for grid in grids))
        within = distance <= (self.steps[-1] if radius is None else radius) + 1e-12
        return float((self.loss[within].mean() - self.centre) / (1 + self.centre))

    def plot(self, ax: Axes | None = None, *, kind: str = "contour") -> LossLandscape:
        """Draw a curve along one direction; contours or a surface over two.

        Parameters
        ----------
        ax
            Where to draw; for a surface, axes in three dimensions.
        kind
            ``"contour"`` or ``"surface"``.
        """
        if kind not in ("contour", "surface"):
            raise InvalidParameter(
                f"LossLandscape: `kind` must be 'contour' or 'surface'; got {kind!r}."
            )
        if self.loss.ndim == 1:
            self.ax_, self.figure_ = start(ax, (4.7, 3.3))
            self.ax_.plot(self.steps, self.loss, color=COLOURS[0], lw=1.8)
            self.ax_.set(xlabel="step along the direction", ylabel="loss")
        elif kind == "contour":
            self._contours(ax)
        else:
            self._surface(ax)
        return self

    def _contours(self, ax: Axes | None) -> None:
        self.ax_, self.figure_ = start(ax, (4.3, 3.9))
        lines = self.ax_.contour(self.steps, self.steps, self.loss.T, levels=14, linewidths=1.1)
        self.ax_.clabel(lines, fontsize=7, colors=INK)
        self.ax_.plot(0, 0, marker="+", ms=9, color=COLOURS[1])
        self.ax_.set(xlabel="first direction", ylabel="second direction", aspect="equal")

    def _surface(self, ax: Any) -> None:
        if ax is None:
            _, self.figure_ = start(None, (4.7, 3.9))
            self.figure_.clear()
            ax = self.figure_.add_subplot(projection="3d")
            ax.patch.set_alpha(0)
        self.ax_, self.figure_ = ax, ax.figure
        a, b = np.meshgrid(self.steps, self.steps, indexing="ij")
        ax.plot_surface(a, b, self.loss, cmap="viridis", linewidth=0)
        ax.set(xlabel="first direction", ylabel="second direction", zlabel="loss")


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
