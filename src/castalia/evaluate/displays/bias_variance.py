"""Bias and variance of an estimator, measured over many training sets.

With h* the true function, F_D the fit on data set D and F = E_D F_D:
E_D (F_D - h*)^2 = (F - h*)^2 + E_D (F_D - F)^2, the squared bias plus the variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.evaluate.displays.display import Display
from castalia.utils.figure_style import COLOURS, caption, log_across, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BiasVariance"]

Sampler = Callable[[np.random.Generator], tuple[Any, Any]]


@dataclass
class BiasVariance(Display):
    """Squared bias, variance and their sum over the values of one parameter.

    Parameters
    ----------
    bias, variance
        Squared bias and variance, (V,), averaged over the test points.
    error
        Mean squared distance of the fits from the truth, (V,).
    values, parameter
        What was varied.
    fits
        Predictions, (V, R, P): values, training sets, test points.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> def sample(rng):
    ...     x = rng.uniform(-1, 1, size=(20, 1))
    ...     return x, x[:, 0] + rng.normal(size=20)
    >>> x = np.linspace(-1, 1, 9)[:, None]
    >>> found = BiasVariance.from_sampler(Ridge(), sample, x, x[:, 0], parameter="alpha",
    ...                                   values=[0.0, 100.0], repeats=30)
    >>> bool(found.variance[0] > found.variance[1]), bool(found.bias[0] < found.bias[1])
    (True, True)
    """

    bias: np.ndarray
    variance: np.ndarray
    error: np.ndarray
    values: Sequence[Any]
    parameter: str
    fits: np.ndarray = field(repr=False)

    @classmethod
    def from_sampler(
        cls,
        estimator: Any,
        sample: Sampler,
        X: Any,
        truth: Any,
        *,
        parameter: str,
        values: Sequence[Any],
        repeats: int = 100,
        random_state: int = 0,
    ) -> BiasVariance:
        """Fit every value of a parameter on many data sets from a known source.

        Parameters
        ----------
        estimator
            Cloned for every fit.
        sample
            Draws a training set ``(X, y)`` with the generator it is given.
        X, truth
            Test points and the true function there, without noise.
        parameter, values
            What is varied, and over what.
        repeats
            Number of data sets; the same ones for every value.
        random_state
            Seed of the data sets.
        """
        from sklearn.base import clone

        if repeats < 2:
            raise InvalidParameter(f"BiasVariance: `repeats` must be at least 2; got {repeats!r}.")
        rng = np.random.default_rng(random_state)
        sets = [sample(rng) for _ in range(repeats)]
        fits = np.array(
            [
                [clone(estimator).set_params(**{parameter: v}).fit(*s).predict(X) for s in sets]
                for v in values
            ]
        )  # (V, R, P)
        return cls.from_fits(fits, truth, values, parameter)

    @classmethod
    def from_fits(
        cls, fits: Any, truth: Any, values: Sequence[Any], parameter: str = "setting"
    ) -> BiasVariance:
        """Build from predictions, (V, R, P), and the truth, (P,)."""
        fits, truth = np.asarray(fits, dtype=float), np.asarray(truth, dtype=float)
        if fits.ndim != 3 or fits.shape[0] != len(values) or fits.shape[2:] != truth.shape:
            raise ShapeMismatch(
                "BiasVariance: `fits` must be (settings, repeats, points), with a value for each "
                f"setting and a truth for each point; got shape {fits.shape}, {len(values)} values "
                f"and truth of shape {truth.shape}."
            )
        mean = fits.mean(axis=1, keepdims=True)
        return cls(
            bias=np.square(mean[:, 0] - truth).mean(axis=1),
            variance=np.square(fits - mean).mean(axis=(1, 2)),
            error=np.square(fits - truth).mean(axis=(1, 2)),
            values=list(values),
            parameter=parameter,
            fits=fits,
        )

    def plot(self, ax: Axes | None = None) -> BiasVariance:
        """Draw squared bias, variance and their sum."""
        self.ax_, self.figure_ = start(ax, (4.7, 3.3))
        x = np.asarray(self.values, dtype=float)
        rows = (
            (self.bias, "bias²"),
            (self.variance, "variance"),
            (self.error, "sum"),
        )
        for (values, name), colour in zip(rows, COLOURS, strict=False):
            self.ax_.plot(x, values, color=colour, lw=1.8, label=name, marker="o", ms=3)
        log_across(self.ax_, x)
        self.ax_.set(xlabel=self.parameter, ylabel="squared error")
        caption(self.ax_)
        return self
