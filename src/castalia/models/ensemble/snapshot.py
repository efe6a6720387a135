"""Snapshot ensembles: several members for the price of one training."""

from __future__ import annotations

import copy
import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from castalia.base import Estimator, Interval
from castalia.errors import InvalidParameter
from castalia.models.ensemble.averaged import Averaged, default_member
from castalia.train import Callback, Training, TrainState

__all__ = ["SnapshotEnsemble"]

FIRST = 0.5  # share of the epochs that the first cycle has at least


@dataclass(kw_only=True, eq=False, repr=False)
class SnapshotEnsemble(Averaged):
    """One training whose rate falls and restarts; the weights at the end of each fall are a member.

    With M members the rate follows a cosine from ``lr`` to 0 in each of M cycles: a first one of
    half the epochs, so that no member is trained too little, and M - 1 equal ones. Each restart
    throws the weights out of the minimum they had settled in. Members cost nothing extra and are
    more alike than those of ``DeepEnsemble``, so they mend little of what one network overfits.

    Parameters
    ----------
    estimator
        An estimator of ours that is trained by gradients; its ``epochs`` are those of all cycles
        together. None takes a small perceptron.
    members
        Number of cycles.

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
    On tables it is about as good as one network whose rate falls once (``evidence/RESULTS.md``);
    where one overfits within its epochs, ``Training(patience=…)`` on the single network is better.

    References
    ----------
    2017, Huang et al., Snapshot ensembles: train 1, get M for free, arXiv 1704.00109. Departs from
    it: the first cycle is longer, as in 2018, Garipov et al., Loss surfaces, mode connectivity, and
    fast ensembling of DNNs, arXiv 1802.10026.

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
    [60, 90, 120]
    """

    members: Annotated[int, Interval(1, whole=True)] = 5

    def _default(self) -> Any:
        return default_member(self.task, epochs=120, lr=3e-2)

    def _fit_members(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int, codes: np.ndarray | None
    ) -> None:
        member = self._member(seed, 0)
        training = self._training(member)
        ends = cycle_ends(member.epochs, self.members)
        snapshots = _Snapshots(ends)
        callbacks = (*training.callbacks, snapshots)
        member.set_params(training=replace(training, schedule=_Restarts(ends), callbacks=callbacks))
        self._fit_member(member, X, y, weight)
        member.set_params(training=training)
        pairs = zip(snapshots.taken, ends, strict=True)
        self.estimators_ = [_as_of(member, weights, end) for weights, end in pairs]
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


def cycle_ends(epochs: int, members: int) -> tuple[int, ...]:
    """Return the epochs at which the cycles end: one of half the epochs or more, then equal ones.

    >>> cycle_ends(120, 5)
    (60, 75, 90, 105, 120)
    """
    later = max(1, int(epochs * (1 - FIRST)) // max(members - 1, 1))
    return tuple(epochs - later * (members - 1 - i) for i in range(members))


@dataclass(frozen=True)
class _Restarts:
    """Half a cosine from 1 to 0 in each cycle, by the epochs at which they end."""

    ends: tuple[int, ...]

    def __call__(self, k: int, total: int) -> float:
        done = k * self.ends[-1] / total
        cycle = bisect_right(self.ends, done)
        begin = self.ends[cycle - 1] if cycle else 0
        return 0.5 * (1 + math.cos(math.pi * (done - begin) / (self.ends[cycle] - begin)))


class _Snapshots(Callback):
    """Keeps the weights at the end of every cycle."""

    def __init__(self, ends: tuple[int, ...]) -> None:
        self.ends = ends
        self.taken: list[dict[str, Any]] = []

    def on_epoch_end(self, state: TrainState) -> None:
        """Copy the weights when a cycle ends."""
        if state.epoch in self.ends:
            weights = state.net.state_dict()
            self.taken.append({name: value.detach().clone() for name, value in weights.items()})


def _as_of(member: Any, weights: dict[str, Any], epochs: int) -> Any:
    """Return a copy of a fitted estimator as it was after some epochs."""
    made = copy.copy(member)
    made.module_ = copy.deepcopy(member.module_)
    made.module_.load_state_dict(weights)
    made.history_, made.n_iter_ = member.history_[:epochs], epochs
    return made
