"""How far each step moves the weights, relative to their size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.base import Estimator
from castalia.errors import InvalidParameter
from castalia.evaluate.displays.depth import check_table, from_mapping, lines_by_depth
from castalia.evaluate.displays.display import Display
from castalia.evaluate.layer_gradient_norms import layer_names
from castalia.train import ParameterNorms
from castalia.utils.figure_style import COLOURS, INK, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["UpdateRatios"]

GUIDE, LOW, HIGH = 1e-3, 1e-4, 1e-2


@dataclass
class UpdateRatios(Display):
    """Update-to-weight ratio |step| / |weights| of every weight matrix, over a training.

    About a thousandth a step is healthy. Far above a hundredth the learning rate is too large, far
    below a ten-thousandth too small, or the layer does not learn.

    Parameters
    ----------
    ratios
        One row a step, one column a layer, (S, L).
    names
        The layers, first to last.
    steps
        Numbers of the steps, (S,).

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    See Also
    --------
    castalia.train.ParameterNorms : keeps the ratios of a training.

    Examples
    --------
    >>> shown = UpdateRatios.from_record({"slow": [1e-6, 1e-6], "fine": [2e-3, 1e-3]})
    >>> {name: round(ratio, 7) for name, ratio in shown.typical.items()}
    {'slow': 1e-06, 'fine': 0.0015}
    """

    ratios: np.ndarray
    names: list[str]
    steps: np.ndarray

    def __post_init__(self) -> None:
        check_table("UpdateRatios", self.ratios, self.names, self.steps)

    @classmethod
    def from_record(
        cls,
        record: ParameterNorms | Mapping[str, Sequence[float]],
        steps: Sequence[int] | None = None,
    ) -> UpdateRatios:
        """Show what was kept during a training.

        Parameters
        ----------
        record
            A ``ParameterNorms``, or a mapping from names to equally many ratios.
        steps
            Numbers of the steps of a mapping; None counts from 0.
        """
        if isinstance(record, Mapping):
            return cls(*from_mapping("UpdateRatios", record, steps))
        return cls(record.ratios, layer_names(record.names), np.asarray(record.steps))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, every: int = 1
    ) -> UpdateRatios:
        """Train a copy of the estimator on rows X and targets y, and watch it.

        A fitted estimator's training is repeated, with the seed it had; no run folder is written.

        Parameters
        ----------
        estimator
            One of ours that is trained by gradients, fitted or not.
        X, y
            Rows and targets.
        every
            Steps from one sample to the next.
        """
        from sklearn.base import clone

        if not isinstance(estimator, Estimator):
            raise InvalidParameter(
                "UpdateRatios: `estimator` must be one of ours that is trained by gradients; got "
                f"{type(estimator).__name__}. Follow its optimizer with "
                "castalia.train.ParameterNorms and use from_record."
            )
        kept = ParameterNorms(every)
        copy = clone(estimator)
        training = copy.training if copy.training is not None else replace(copy.usual_training)
        copy.set_params(training=training)
        copy.set_params(training__callbacks=[*training.callbacks, kept])
        copy.set_params(training__run=None, training__checkpoint_every=None)
        if hasattr(estimator, "settings_"):
            copy.set_params(random_state=estimator.settings_["seed"])
        copy.fit(X, y)
        return cls.from_record(kept)

    @property
    def typical(self) -> dict[str, float]:
        """Median ratio of each layer; NaN for one that was all zeros throughout."""
        found = {}
        for name, column in zip(self.names, self.ratios.T, strict=True):
            known = column[~np.isnan(column)]
            found[name] = float(np.median(known)) if len(known) else float("nan")
        return found

    def plot(self, ax: Axes | None = None) -> UpdateRatios:
        """Draw one line a layer, over the range that is healthy for most trainings."""
        self.ax_, self.figure_ = start(ax, (5.2, 3.3))
        self.ax_.axhspan(LOW, HIGH, color=COLOURS[2], alpha=0.09, lw=0)
        self.ax_.axhline(GUIDE, color=INK, lw=1, ls=(0, (3, 3)))
        lines_by_depth(self.ax_, self.steps, self.ratios, self.names)
        self.ax_.set_ylabel("update / weight")
        return self
