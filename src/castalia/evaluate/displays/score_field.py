"""Where a denoising autoencoder moves points: the gradient of the log-density of noisy data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.evaluate.displays.display import Display
from castalia.utils.figure_style import COLOURS, INK, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ScoreField"]


@dataclass
class ScoreField(Display):
    """Arrows (r(x) - x) over the plane of two columns: they point to where data are.

    r(x) - x is sigma^2 times the gradient of log p of the noisy data, so arrows vanish on the
    manifold of the data, at its peaks, and between them, where they part.

    Parameters
    ----------
    points, arrows
        Where arrows begin, and how far they reach, (n, 2), in the units of X.
    data
        Rows that are shown below them, (m, 2).

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> from castalia import DenoisingAutoencoder
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = DenoisingAutoencoder(epochs=2, random_state=0).fit(X)
    >>> ScoreField.from_estimator(model, X, side=5).arrows.shape
    (25, 2)
    """

    points: np.ndarray
    arrows: np.ndarray
    data: np.ndarray

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, side: int = 20) -> ScoreField:
        """Build from a fitted autoencoder of two columns.

        Parameters
        ----------
        estimator
            A model with ``reconstruct``, such as ``DenoisingAutoencoder``.
        X
            Rows to show, (n, 2); the arrows cover a little more than they.
        side
            Arrows along each edge.
        """
        if not hasattr(estimator, "reconstruct"):
            raise InvalidParameter(
                f"ScoreField: the model must have `reconstruct`; {type(estimator).__name__} has "
                "not."
            )
        rows = np.asarray(X, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise ShapeMismatch(f"ScoreField: X must have 2 columns; got shape {rows.shape}.")
        low, high = rows.min(axis=0), rows.max(axis=0)
        margin = 0.15 * (high - low)
        axes = np.linspace(low - margin, high + margin, side).T
        points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        return cls(points, np.asarray(estimator.reconstruct(points)) - points, rows)

    def plot(self, ax: Axes | None = None) -> ScoreField:
        """Draw data and arrows."""
        self.ax_, self.figure_ = start(ax, (4.7, 4.7), grid="none")
        self.ax_.plot(*self.data[:2000].T, "o", ms=2.5, mew=0, color=INK, alpha=0.35, zorder=1)
        self.ax_.quiver(
            *self.points.T, *self.arrows.T, color=COLOURS[0], angles="xy", scale_units="xy",
            scale=1, width=0.004, zorder=2,
        )  # fmt: skip
        self.ax_.set_aspect("equal", adjustable="datalim")
        return self
