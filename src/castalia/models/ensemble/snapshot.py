"""Snapshot ensembles: several members for the price of one training."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from castalia.base import Estimator, Interval
from castalia.errors import InvalidParameter
from castalia.models.ensemble.averaged import Averaged, default_member
from castalia.train import Callback, Training, TrainState

__all__ = ["SnapshotEnsemble"]


@dataclass(kw_only=True, eq=False, repr=False)
class SnapshotEnsemble(Averaged):
    """One training whose rate falls and restarts; the weights at the end of each fall are a member.

    With M members and E epochs the rate follows a cosine from ``lr`` to 0 in each of M cycles of
    E / M epochs. Each restart throws the weights out of the minimum they had settled in. Members
    cost nothing extra and are more alike than those of ``DeepEnsemble``.

    Parameters
    ----------
    estimator
        An estimator of ours that is trained by gradients; its ``epochs`` are those of all cycles
        together. None takes a small ``MLPClassifier``.
    members
        Number of cycles; the epochs are cut into as many equal parts.

    Attributes
    ----------
    estimators_ : list
        The members, in the order of their cycles.
    classes_ : ndarray (K,)
        The classes, of a classifier.

    Shapes
    ------
    As those of the wrapped estimator.

    Notes
    -----
    The last epochs are left out where the members do not divide them.

    References
    ----------
    2017, Huang et al., Snapshot ensembles: train 1, get M for free, arXiv 1704.00109.

    See Also
    --------
    DeepEnsemble : members trained apart: better, and M times as dear.
    WeightAverage : averages weights instead of predictions.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> model = SnapshotEnsemble(members=3, random_state=0).fit(X, y)
    >>> [member.n_iter_ for member in model.estimators_]
    [40, 80, 120]
    """

    members: Annotated[int, Interval(1, whole=True)] = 5

    def _default(self) -> Any:
        return default_member(epochs=120, lr=3e-2)

    def _fit_members(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int, codes: np.ndarray | None
    ) -> None:
        member = self._member(seed, 0)
        training = self._training(member)
        cycle = member.epochs // self.members
        snapshots = _Snapshots(cycle)
        member.set_params(
            epochs=cycle * self.members,
            training=replace(
                training,
                schedule=_Restarts(self.members),
                callbacks=(*training.callbacks, snapshots),
            ),
        )
        self._fit_member(member, X, y, weight)
        member.set_params(training=training)
        self.estimators_ = [
            _as_of(member, weights, (i + 1) * cycle) for i, weights in enumerate(snapshots.taken)
        ]
        self.together_ = False

    def _training(self, member: Any) -> Training:
        if not isinstance(member, Estimator):
            raise InvalidParameter(
                "SnapshotEnsemble: `estimator` must be one of ours that is trained by gradients; "
                f"got {type(member).__name__}."
            )
        training = member.training if member.training is not None else Training()
        taken = {"schedule": None, "patience": None, "average": None, "run": None}
        for name, free in taken.items():
            if getattr(training, name) is not free:
                raise InvalidParameter(
                    f"SnapshotEnsemble: `{name}` of the estimator's training must be None; got "
                    f"{getattr(training, name)!r}. The cycles set the rate and end the members."
                )
        if (member.epochs or 0) < self.members:  # None: by a recipe, which cycles do not follow
            raise InvalidParameter(
                f"SnapshotEnsemble: `epochs` of the estimator must be at least `members`, one for "
                f"each cycle; got {member.epochs} for {self.members}."
            )
        return training


@dataclass(frozen=True)
class _Restarts:
    """Half a cosine from 1 to 0 in each of several cycles."""

    cycles: int

    def __call__(self, k: int, total: int) -> float:
        length = total / self.cycles
        return 0.5 * (1 + math.cos(math.pi * (k % length) / length))


class _Snapshots(Callback):
    """Keeps the weights at the end of every cycle."""

    def __init__(self, cycle: int) -> None:
        self.cycle = cycle
        self.taken: list[dict[str, Any]] = []

    def on_epoch_end(self, state: TrainState) -> None:
        """Copy the weights when a cycle ends."""
        if state.epoch % self.cycle == 0:
            weights = state.net.state_dict()
            self.taken.append({name: value.detach().clone() for name, value in weights.items()})


def _as_of(member: Any, weights: dict[str, Any], epochs: int) -> Any:
    """Return a copy of a fitted estimator as it was after some epochs."""
    made = copy.copy(member)
    made.module_ = copy.deepcopy(member.module_)
    made.module_.load_state_dict(weights)
    made.history_, made.n_iter_ = member.history_[:epochs], epochs
    return made
