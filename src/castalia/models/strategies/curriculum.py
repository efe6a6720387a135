"""Curriculum learning: easy rows first, all of them in the end.

Epoch e of E trains on the easiest share s_e = min(1, s_0 + (1 - s_0) e / (r E)) of the rows.
Reference: 2009, Bengio, Louradour, Collobert, Weston, Curriculum learning, ICML.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import clone

from castalia.base import Interval, OneOf
from castalia.base.input_checks import n_rows, take_rows
from castalia.errors import InvalidParameter
from castalia.models.strategies.strategy_base import Grouped, Strategy
from castalia.models.strategies.training_changes import require_rows
from castalia.models.strategies.untrained import untrained

__all__ = ["Curriculum", "row_losses"]


def row_losses(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Return a fitted network's loss on each row, (n,)."""
    loss = require_rows("Curriculum", model._objective(model.spec_))
    weight = next(model.module_.parameters())
    samples = model._samples(X, model.codec.encode(model, y), weight.dtype)
    found = []
    model.module_.eval()
    with torch.inference_mode():
        for index in torch.arange(len(samples)).split(1024):
            batch = samples.batch(index).to(weight.device)
            found.append(loss.rows(model.module_(batch.x), batch.y).double().cpu())
    return torch.cat(found).numpy()


@dataclass(kw_only=True, eq=False, repr=False)
class Curriculum(Grouped, Strategy):
    """A network that meets its rows from easy to hard.

    Easy rows show what the task is; hard ones refine it. Pays where rows differ much in
    difficulty, as long sequences and short ones do, and a random order learns nothing at first.

    Parameters
    ----------
    order
        What is easy: ``"loss"``, rows on which a first network of the same kind has a small loss;
        ``"given"``, rows with a small number in ``groups``; ``"random"``, the baseline.
    begin
        Share of the rows in the first epoch.
    ramp
        Share of the epochs after which all rows are trained on.

    Attributes
    ----------
    estimator_ : object
        The trained estimator.
    difficulty_ : ndarray (n,)
        What the rows were ordered by.

    Shapes
    ------
    As those of the wrapped estimator; ``groups``: (n,), the difficulty of each row.

    Notes
    -----
    The rate is constant, and epochs are shorter while rows are left out. ``"loss"`` costs a second
    training.

    References
    ----------
    2009, Bengio, Louradour, Collobert, Weston, Curriculum learning, ICML.

    See Also
    --------
    SelfTraining : begins with what it is sure of.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> Curriculum(random_state=0).fit(X, y).score(X, y) > 0.85
    True
    """

    order: Annotated[str, OneOf("loss", "given", "random")] = "loss"
    begin: Annotated[float, Interval(0, 1, closed="right")] = 0.3
    ramp: Annotated[float, Interval(0, 1, closed="right")] = 0.5

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        self.difficulty_ = self._difficulty(member, X, y, weight)
        easy = np.argsort(self.difficulty_, kind="stable")
        untrained(member, X, y, weight)
        for epoch in range(member.epochs):
            rows = np.sort(easy[: self._rows(epoch, member.epochs, len(y))])
            own = None if weight is None else weight[rows]
            member.partial_fit(take_rows(X, rows), y[rows], sample_weight=own)
        return member

    def _rows(self, epoch: int, epochs: int, n: int) -> int:
        """Return how many rows an epoch has."""
        share = self.begin + (1 - self.begin) * epoch / max(1.0, self.ramp * epochs)
        return max(1, round(min(1.0, share) * n))

    def _difficulty(
        self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray:
        if self.order == "random":
            return np.random.default_rng(member.random_state).random(n_rows(X))
        if self.order == "loss":
            return row_losses(self._fit_member(clone(member), X, y, weight), X, y)
        if self._groups is None:
            raise InvalidParameter(
                "Curriculum: order='given' needs the difficulty of each row; give "
                "fit(X, y, groups=…)."
            )
        return np.asarray(self._groups, dtype=np.float64)
