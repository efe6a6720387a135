"""How large the gradient is at each layer: where it vanishes, and where it explodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.evaluate.displays.depth import check_table, from_mapping, lines_by_depth
from castalia.evaluate.displays.display import Display
from castalia.evaluate.layer_gradient_norms import gradient_norms, layer_names
from castalia.evaluate.network_probe import as_objective, problem
from castalia.protocols import Batch, Objective
from castalia.train import ParameterNorms
from castalia.utils.figure_style import COLOURS, INK, by_depth, labels, log_scale, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from torch import Tensor, nn

__all__ = ["GradientNorms"]

MOST_TICKS = 14


@dataclass
class GradientNorms(Display):
    """Norm of the gradient by each layer's weights, from the first layer to the last.

    A chain of layers multiplies the gradient by the same sort of factor again and again on its way
    to the input. On a log scale that is a straight line: rising to the right where the gradient
    vanishes, falling where it explodes. Level is healthy.

    Parameters
    ----------
    norms
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
    castalia.train.ParameterNorms : keeps the norms of a training.

    Examples
    --------
    >>> shown = GradientNorms.from_record({"first": [1e-4], "second": [1e-2], "third": [1.0]})
    >>> round(shown.factor, 4)
    0.01
    """

    norms: np.ndarray
    names: list[str]
    steps: np.ndarray

    def __post_init__(self) -> None:
        check_table("GradientNorms", self.norms, self.names, self.steps)

    @classmethod
    def from_network(
        cls,
        net: nn.Module,
        objective: Objective | Callable[[Any, Any], Tensor],
        x: Any,
        y: Any = None,
        *,
        weight: Tensor | None = None,
    ) -> GradientNorms:
        """Measure one batch in the network's present mode; the network is left as it was.

        Parameters
        ----------
        net
            Any module.
        objective
            What it minimises: an objective, or a plain function of outputs and targets such as
            ``nn.CrossEntropyLoss()``.
        x, y, weight
            Inputs (several as a tuple), targets and row weights, on the network's device.
        """
        found = gradient_norms(net, as_objective(objective), Batch(x, y, weight))
        table = np.array([list(found.values())])
        return cls(table, layer_names(list(found)), np.zeros(1, dtype=int))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None) -> GradientNorms:
        """Measure the network of a fitted estimator on rows X and targets y, all in one batch.

        Parameters
        ----------
        estimator
            A fitted estimator with a network; of several stages the last one's objective is taken.
        X, y
            Rows and targets as for ``fit``.
        """
        net, objective, batch = problem("GradientNorms", estimator, X, y)
        return cls.from_network(net, objective, batch.x, batch.y, weight=batch.weight)

    @classmethod
    def from_record(
        cls,
        record: ParameterNorms | Mapping[str, Sequence[float]],
        steps: Sequence[int] | None = None,
    ) -> GradientNorms:
        """Show what was kept during a training.

        Parameters
        ----------
        record
            A ``ParameterNorms``, or a mapping from names to equally many norms.
        steps
            Numbers of the steps of a mapping; None counts from 0.
        """
        if isinstance(record, Mapping):
            return cls(*from_mapping("GradientNorms", record, steps))
        return cls(record.gradients, layer_names(record.names), np.asarray(record.steps))

    @property
    def factor(self) -> float:
        """By what the norm is multiplied from a layer to the one before it, typically.

        Below 1 the gradient vanishes towards the input, above 1 it explodes. Least squares on the
        logs of the positive norms, the median over the steps; NaN where no step has two.
        """
        found = [_slope(row) for row in self.norms]
        known = [slope for slope in found if np.isfinite(slope)]
        return float(np.exp(-np.median(known))) if known else float("nan")

    def plot(self, ax: Axes | None = None) -> GradientNorms:
        """Draw one step over the layers, or several steps as one line a layer."""
        several = len(self.steps) > 1
        wide = 5.2 if several else min(7.0, 3.0 + 0.28 * len(self.names))
        self.ax_, self.figure_ = start(ax, (wide, 3.3))
        if several:
            lines_by_depth(self.ax_, self.steps, self.norms, self.names)
        else:
            self._layers(self.norms[0])
        self.ax_.set_ylabel("norm of the gradient")
        return self

    def _layers(self, norms: np.ndarray) -> None:
        place = np.arange(len(norms))
        given = np.isfinite(norms) & (norms > 0)
        self.ax_.plot(place[given], norms[given], color=INK, lw=1, alpha=0.6, zorder=1)
        colours = by_depth(len(norms))
        self.ax_.scatter(
            place[given], norms[given], c=[colours[i] for i in place[given]], s=34, zorder=2
        )
        if given.any():
            log_scale(self.ax_)
            low, high = norms[given].min(), norms[given].max()
            if high < 100 * low:  # two decades at least, or a level line looks steep
                middle = np.sqrt(low * high)
                self.ax_.set_ylim(middle / 12, middle * 12)
        for i in place[~given]:
            words = "none" if norms[i] == 0 else "not finite"
            self.ax_.axvline(i, color=COLOURS[4], lw=1, ls=(0, (2, 2)))
            self.ax_.annotate(
                words,
                (i, 0.02),
                xycoords=("data", "axes fraction"),
                color=COLOURS[4],
                size=8,
                rotation=90,
                ha="right",
            )
        self._ticks(place)

    def _ticks(self, place: np.ndarray) -> None:
        shown = place[:: -(-len(place) // MOST_TICKS)]
        names = labels((self.names[i] for i in shown), 18)
        slant = 0 if sum(map(len, names)) < 40 else 40
        self.ax_.set_xticks(shown, names, rotation=slant, ha="right" if slant else "center")
        self.ax_.set(xlabel="layer, first to last", xlim=(-0.5, len(place) - 0.5))


def _slope(norms: np.ndarray) -> float:
    """Rise of the log norm a layer, by least squares."""
    place = np.flatnonzero(np.isfinite(norms) & (norms > 0))
    return float(np.polyfit(place, np.log(norms[place]), 1)[0]) if len(place) > 1 else np.nan
