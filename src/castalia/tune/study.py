"""The record of a search: an Optuna study in a database, which survives the process.

Every finished fold is written down at once. When a search comes back, the trials that a dead
process left half done are taken up again with the folds they had finished.
"""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.tune.space import Choice, Domain, Whole
from castalia.utils.imports import require

__all__ = ["Study"]

FEW = 8  # scored trials below which nothing can be said about what mattered
FOLDS, REPORTS, WORKER, REASON = "folds", "reports", "worker", "reason"


class Study:
    """Asks for settings to try and keeps what came of them.

    Parameters
    ----------
    storage
        None keeps it in memory; a path makes an SQLite file; a database address (with ``://``)
        is shared by all that open it.
    name
        Name of the study inside the storage; the same name goes on where it stopped.
    space
        Domains by parameter.
    sampler
        ``"tpe"``, ``"gp"``, ``"random"`` or ``"grid"``.
    prune
        Whether trials that fall behind the median of the others are given up.
    seed
        Seed of the proposals. Each proposal depends on the seed and the finished trials only, so a
        search that was killed goes on as if it had not been.
    """

    def __init__(
        self,
        storage: str | os.PathLike[str] | None,
        name: str,
        space: Mapping[str, Domain],
        *,
        sampler: str,
        prune: bool,
        seed: int,
        owner: str,
    ) -> None:
        self.optuna: Any = require("optuna", caller=owner, extra="tune")
        self.space, self.kind, self.seed = dict(space), sampler, seed
        self.domains = {name: self._distribution(domain) for name, domain in space.items()}
        with _quiet():
            self.study = self._open(storage, name, prune=prune, owner=owner)
            self._take_up()
            if sampler == "grid" and not self.study.get_trials(deepcopy=False):
                for point in product(*(domain.choices for domain in self.domains.values())):
                    self.study.enqueue_trial(dict(zip(self.domains, point, strict=True)))

    def _open(self, storage: Any, name: str, *, prune: bool, owner: str) -> Any:
        from sqlalchemy.exc import SQLAlchemyError  # comes with Optuna

        pruners = self.optuna.pruners
        try:
            return self.optuna.create_study(
                storage=_address(storage, owner),
                study_name=name,
                direction="maximize",
                load_if_exists=True,
                pruner=pruners.MedianPruner(n_startup_trials=4) if prune else pruners.NopPruner(),
            )
        except SQLAlchemyError as error:
            raise InvalidParameter(
                f"{owner}: `study` must be an SQLite file or the address of a database; "
                f"'{storage}' cannot be opened: {str(error).splitlines()[0]}."
            ) from error

    def _distribution(self, domain: Domain) -> Any:
        kinds = self.optuna.distributions
        if isinstance(domain, Choice):  # by position: a database keeps no tuples
            return kinds.CategoricalDistribution(tuple(range(len(domain.values))))
        kind = kinds.IntDistribution if isinstance(domain, Whole) else kinds.FloatDistribution
        return kind(domain.low, domain.high, log=domain.log)

    def _take_up(self) -> None:
        """Queue the trials of dead processes again, with the folds they had finished."""
        states = self.optuna.trial.TrialState
        for trial in self.study.get_trials(deepcopy=False, states=(states.RUNNING,)):
            if _alive(trial.user_attrs.get(WORKER)):
                continue
            kept = trial.user_attrs.get(REPORTS, {})
            reports = {**kept, **{str(k): v for k, v in trial.intermediate_values.items()}}
            done = {FOLDS: trial.user_attrs.get(FOLDS, {}), REPORTS: reports}
            self.study.enqueue_trial(trial.params, user_attrs=done)
            self.study.tell(trial.number, state=states.FAIL)

    def finished(self) -> list[Any]:
        """Return the trials that ended, whole, given up or by an error, in order."""
        states = self.optuna.trial.TrialState
        trials = self.study.get_trials(deepcopy=False)
        ended = [t for t in trials if t.state in (states.COMPLETE, states.PRUNED)]
        return ended + [t for t in trials if t.state == states.FAIL and REASON in t.user_attrs]

    def complete(self) -> list[Any]:
        """Return the trials that were scored on every fold."""
        return [t for t in self.finished() if t.state == self.optuna.trial.TrialState.COMPLETE]

    def ask(self) -> Any:
        """Return the next trial; its user attributes may hold folds already done."""
        drawn = np.random.SeedSequence([self.seed, len(self.finished())]).generate_state(1)
        with _quiet():
            self.study.sampler = self._sampler(int(drawn[0]))
            trial = self.study.ask(self.domains)
        trial.set_user_attr(WORKER, f"{socket.gethostname()}:{os.getpid()}")
        return trial

    def _sampler(self, seed: int) -> Any:
        samplers = self.optuna.samplers
        if self.kind == "tpe":
            return samplers.TPESampler(seed=seed, multivariate=True)
        if self.kind == "gp":
            return samplers.GPSampler(seed=seed, deterministic_objective=False)
        return samplers.RandomSampler(seed=seed)  # a grid is queued, nothing is left to chance

    def settings(self, trial: Any) -> dict[str, Any]:
        """Return the parameters of a trial as the estimator wants them."""
        return {
            name: domain.values[trial.params[name]]
            if isinstance(domain, Choice)
            else trial.params[name]
            for name, domain in self.space.items()
        }

    def folds(self, trial: Any) -> dict[int, float]:
        """Return the scores of the folds a trial has finished."""
        return {int(fold): score for fold, score in trial.user_attrs.get(FOLDS, {}).items()}

    def replay(self, trial: Any, *, before: int) -> None:
        """Report again what a dead process had reported about the folds it finished."""
        for step, value in trial.user_attrs.get(REPORTS, {}).items():
            if int(step) < before:
                trial.report(value, int(step))

    def keep_fold(self, trial: Any, scores: Mapping[int, float]) -> None:
        """Write down the folds done so far."""
        trial.set_user_attr(FOLDS, {str(fold): score for fold, score in scores.items()})

    def tell(self, trial: Any, value: float) -> None:
        """Close a trial with its score."""
        self.study.tell(trial, value)

    def give_up(self, trial: Any) -> None:
        """Close a trial that fell behind."""
        self.study.tell(trial, state=self.optuna.trial.TrialState.PRUNED)

    def fail(self, trial: Any, reason: str) -> None:
        """Close a trial that ended by an error, and keep the sentence."""
        trial.set_user_attr(REASON, reason)
        self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)

    def latest(self) -> dict[str, Any]:
        """Return the trial that ended last, in plain values."""
        trial = max(self.finished(), key=lambda t: t.datetime_complete)
        score = float("nan") if trial.value is None else float(trial.value)
        state = trial.state.name.lower()
        return {
            "number": len(self.finished()),
            "params": self.settings(trial),
            "score": score,
            "state": state,
        }

    def importances(self) -> dict[str, float]:
        """Return the share of each setting in the spread of the scores, the largest first."""
        scored = self.complete()
        moved = [n for n in self.space if len({t.params[n] for t in scored}) > 1]
        if (
            len(scored) < max(FEW, len(moved) + 2)
            or not moved
            or len({t.value for t in scored}) < 2
        ):
            return {}
        judge = self.optuna.importance
        with _quiet():
            found = judge.get_param_importances(
                self.study,
                params=moved,
                evaluator=judge.FanovaImportanceEvaluator(seed=self.seed % 2**31),
            )
        return {name: float(share) for name, share in found.items()}

    def reason(self, trial: Any) -> str:
        """Return why a trial failed, or nothing."""
        return str(trial.user_attrs.get(REASON, ""))


def _address(storage: str | os.PathLike[str] | None, owner: str) -> str | None:
    if storage is None or "://" in str(storage):
        return None if storage is None else str(storage)
    path = Path(storage)
    if path.is_dir():
        raise InvalidParameter(f"{owner}: `study` must be a file; got the folder '{path}'.")
    path.parent.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{path.resolve()}"


def _alive(worker: str | None) -> bool:
    """Whether the process that runs a trial lives; of other machines one cannot know: it may."""
    if worker is None:
        return False
    host, _, pid = worker.rpartition(":")
    if host != socket.gethostname():
        return True
    if int(pid) == os.getpid():
        return False  # an earlier fit of this process, left by an error
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna's notes on every trial off the terminal."""
    logger = logging.getLogger("optuna")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="optuna")  # what is experimental there
            yield
    finally:
        logger.setLevel(level)
