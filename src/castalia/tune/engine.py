"""What the searches share: trials fold by fold, remembered, resumed and concluded."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit, check_cv
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from castalia.base import Interval, OneOf, RandomState, check_parameters
from castalia.base.input_checks import check_weight, split_target
from castalia.base.run_recorder import content, described
from castalia.errors import CastaliaWarning, InvalidData, InvalidParameter
from castalia.tune.proposals import Proposals
from castalia.tune.search_figure import draw_search
from castalia.tune.search_metrics import read_metrics
from castalia.tune.search_results import cv_results
from castalia.tune.search_rows import Rows, weighs, weight_name
from castalia.tune.search_space import SearchSpace, read_space
from castalia.tune.study import Study
from castalia.tune.trial_record import COMPLETE, PRUNED, Trial
from castalia.tune.trial_runner import TrialRunner
from castalia.tune.trial_table import TrialTable
from castalia.utils.joblib_backend import runs_elsewhere
from castalia.utils.seeds import seed_from
from castalia.utils.text import plural
from castalia.utils.worker_cluster import held

__all__ = ["Search"]

MANY = (list, tuple, set, Mapping)  # kinds of several scores
POLL = 0.2  # seconds between two questions whether another worker's trials have ended


def _best_has(name: str) -> Any:
    """Offer a method when the estimator has it."""

    def check(search: Any) -> bool:
        return hasattr(getattr(search, "best_estimator_", search.estimator), name)

    return available_if(check)


@dataclass(kw_only=True, eq=False, repr=False)
class Search(MetaEstimatorMixin, BaseEstimator):
    """What the searches share.

    Parameters
    ----------
    estimator
        What is tuned; it is cloned, never changed.
    space
        A dict from parameter to ``Uniform``, ``Whole``, ``Choice``, a list or a distribution of
        scipy; None takes ``SearchSpace.default(estimator)``.
    trials
        Settings to try, those of earlier sittings included.
    cv
        Number of folds, a splitter of scikit-learn, or a share below 1 to hold out once.
    scoring
        What is maximised, as in scikit-learn; None takes the estimator's own score. A list of names
        or a dict from name to scorer gives several; ``refit`` names the one that is maximised.
    study
        Where to remember: a path makes an SQLite file, an address such as ``postgresql://…`` is
        shared by many workers; None forgets. The same search on the same data goes on where it
        stopped, and another one does not disturb it. Trials of a process that is gone are taken
        over: at once on the same machine, after a minute on another.
    prune
        Give up trials that fall behind the best one on the folds they have done, by more than the
        usual difference from fold to fold (``castalia.tune.pruning``); with one fold, none. A
        Gaussian process learns nothing from trials that were given up.
    refit
        Fit the best settings on all rows at the end; of several scores, the name of the one that
        is maximised (the first one, if True or False).
    n_jobs
        Trials that run at the same time, in processes of their own; -1 takes all cores, None those
        of ``castalia.cluster`` where it is open, else one. Samplers that learn propose this many
        settings at once, so their proposals depend on it.
    seconds
        Time of one sitting, after which no further trial is begun; one at least comes to an end.
    callback
        Called after every finished trial with a dict of its ``number``, ``params``, ``score``
        and ``state``.
    random_state
        Seed of the proposals and the folds.
    """

    estimator: Any = field(kw_only=False)
    space: Any = field(default=None, kw_only=False)
    trials: Annotated[int | None, Interval(1, whole=True, optional=True)] = 50
    cv: Any = 5
    scoring: Any = None
    study: str | os.PathLike[str] | None = None
    prune: Annotated[bool, OneOf(True, False)] = True
    refit: bool | str = True
    n_jobs: int | None = None
    seconds: Annotated[float | None, Interval(0, closed="neither", optional=True)] = None
    callback: Any = None
    random_state: Annotated[Any, RandomState()] = None

    def _kind(self) -> str:
        """Name the sampler."""
        raise NotImplementedError

    def _space(self) -> SearchSpace:
        return read_space(self.space, self.estimator, type(self).__name__)

    def _budget(self, space: Mapping[str, Any]) -> int:
        return int(self.trials or 50)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Search:
        """Try settings, remember what came of them, and fit the best.

        Parameters
        ----------
        X, y
            Rows and targets.
        sample_weight
            How much each row counts in the fits and, where the score can be weighted, in the
            scores; the folds count alike, as in scikit-learn.

        Returns
        -------
        self
        """
        check_parameters(self)
        X, y = split_target(X, y)
        space = self._space()
        metrics, metric = read_metrics(self.scoring, self.refit, type(self).__name__)
        rows = Rows(X, y, _weights(self, metrics, X, sample_weight))
        folds, budget = self._folds(X, y), self._budget(space)
        runner = TrialRunner(self.estimator, rows, folds, metrics, metric, self.prune)
        with ExitStack() as stack:
            study = self._study(stack, runner, space)
            stack.enter_context(study.at_work())
            self._run_trials(study, runner, budget)
        self._conclude(study, runner)
        return self

    def _study(self, stack: ExitStack, runner: TrialRunner, space: SearchSpace) -> Study:
        owner, storage = type(self).__name__, self.study
        seed = seed_from(0 if self.random_state is None and storage else self.random_state)
        jobs = effective_n_jobs(self.n_jobs)
        apart = runs_elsewhere() and "://" not in str(storage)
        if storage is None and jobs > 1 and not apart:  # the workers need a common record
            storage = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "study.sqlite"
        name = f"{type(self.estimator).__name__}-{self._fingerprint(runner, space)}"
        table = None if storage is None else TrialTable(storage, name, owner)
        proposals = Proposals(
            space, sampler=self._kind(), seed=seed, metric=runner.metric, owner=owner
        )
        return Study(proposals, table, together=jobs, apart=apart)

    def _run_trials(self, study: Study, runner: TrialRunner, budget: int) -> None:
        """Run what is left, and wait for what others run."""
        begun, shared = time.monotonic(), held(runner)
        with Parallel(n_jobs=study.together, return_as="generator_unordered") as pool:
            while study.waits(budget) and not self._late(study, begun):
                taken = self._taken(study, budget)
                if study.together > 1:
                    found = pool(delayed(_run)(shared, study, trial) for trial in taken)
                    study.receive(found)
                elif taken:
                    runner.run(study, taken[0])
                self._report(study, taken)
                if not taken:
                    time.sleep(POLL)

    def _taken(self, study: Study, budget: int) -> list[Trial]:
        """Take a round of trials; where nothing is learnt from one to the next, a longer one."""
        free = not (study.proposals.learns or self.prune or self.seconds)
        most = study.together * (4 if free and study.together > 1 else 1)
        return list(islice(iter(lambda: study.take(budget), None), most))

    def _report(self, study: Study, taken: list[Trial]) -> None:
        count = len(study.ended()) - len(taken)
        for number, trial in enumerate((study.known[t.number] for t in taken), count + 1):
            if self.callback is not None and trial.ended:
                self.callback(_plain(study, trial, number))

    def _late(self, study: Study, begun: float) -> bool:
        spent = time.monotonic() - begun
        return self.seconds is not None and spent >= self.seconds and bool(study.complete())

    def _folds(self, X: Any, y: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        cv, classify = self.cv, is_classifier(self.estimator)
        if isinstance(cv, float):
            if not 0 < cv < 1:
                raise InvalidParameter(
                    f"{type(self).__name__}: a share `cv` must be between 0 and 1; got {cv}."
                )
            kind = StratifiedShuffleSplit if classify else ShuffleSplit
            cv = kind(1, test_size=cv, random_state=0)
        rows = np.empty((_length(X), 0))
        try:
            return list(check_cv(cv, y, classifier=classify).split(rows, y))
        except ValueError as error:
            raise InvalidData(
                f"{type(self).__name__}: the rows cannot be split: {error}"
            ) from error

    def _fingerprint(self, runner: TrialRunner, space: SearchSpace) -> str:
        """Identify what is searched: another search in the same file gets another name."""
        own, rows = self.estimator.get_params(deep=True), runner.rows
        how = [space, runner.metrics, runner.metric, self._kind(), self.prune, self.random_state]
        mark = hashlib.sha256(json.dumps([own, how], sort_keys=True, default=described).encode())
        y = None if rows.y is None else np.asarray(rows.y)
        split = [np.asarray(part) for fold in runner.folds for part in fold]
        for part in (rows.X, y, *split, rows.weight):
            mark.update(b"" if part is None else content(part).encode())
        return mark.hexdigest()[:12]

    def _conclude(self, study: Study, runner: TrialRunner) -> None:
        trials, complete = study.ended(), study.complete()
        failed = [trial.reason for trial in trials if trial.reason]
        if not complete:
            said = f" The last one said: {failed[-1]}" if failed else ""
            raise InvalidData(f"{type(self).__name__}: no trial came to an end.{said}")
        if failed:
            warnings.warn(
                f"{type(self).__name__}: {len(failed)} of {len(trials)} trials failed; the last "
                f"one said: {failed[-1]}",
                CastaliaWarning,
                stacklevel=3,
            )
        best = max(complete, key=lambda t: (t.mean(runner.metric), -t.number))
        settings = [study.settings(trial) for trial in trials]
        self.n_splits_, self.multimetric_ = len(runner.folds), isinstance(self.scoring, MANY)
        self.cv_results_ = cv_results(trials, settings, self.n_splits_, list(runner.metrics))
        self.best_index_ = trials.index(best)
        self.best_params_, self.best_score_ = study.settings(best), best.mean(runner.metric)
        self.pruned_ = sum(trial.state == PRUNED for trial in trials)
        self._trials, self._searched = trials, (study.proposals.space, runner.metric)
        if self.refit:
            model = clone(self.estimator).set_params(**self.best_params_)
            self.best_estimator_ = runner.rows.fit(model)

    @property
    def importances_(self) -> dict[str, float]:
        """Share of each setting in how much the scores differ, the largest first."""
        check_is_fitted(self, "cv_results_")
        space, metric = self._searched
        judge = Proposals(space, sampler="random", seed=0, metric=metric, owner="importances_")
        return judge.importances(self._trials)

    def _best(self) -> Any:
        said = "This %(name)s has no best estimator: call `fit`, with refit=True."
        check_is_fitted(self, "best_estimator_", msg=said)
        return self.best_estimator_

    @property
    def classes_(self) -> np.ndarray:
        """Classes of the best estimator."""
        return self._best().classes_

    @property
    def n_features_in_(self) -> int:
        """Number of columns the best estimator was fitted on."""
        return int(self._best().n_features_in_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns the best estimator was fitted on, where they had names."""
        return self._best().feature_names_in_

    @_best_has("predict")
    def predict(self, X: Any) -> np.ndarray:
        """Predict with the best estimator."""
        return self._best().predict(X)

    @_best_has("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Give probabilities by the best estimator."""
        return self._best().predict_proba(X)

    @_best_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Give logarithms of probabilities by the best estimator."""
        return self._best().predict_log_proba(X)

    @_best_has("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Give scores of the classes by the best estimator."""
        return self._best().decision_function(X)

    @_best_has("transform")
    def transform(self, X: Any) -> np.ndarray:
        """Transform with the best estimator."""
        return self._best().transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Score the best estimator by what was searched for, weighted where that score can be."""
        metrics, metric = read_metrics(self.scoring, self.refit, type(self).__name__)
        return Rows(X, y, sample_weight).score(self._best(), metrics[metric])

    def plot(self, ax: Any = None) -> Any:
        """Draw the score of every trial, the best so far, and the trials that were given up.

        Parameters
        ----------
        ax
            Axes to draw on; None makes a figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        check_is_fitted(self, "cv_results_")
        _, metric = read_metrics(self.scoring, self.refit, type(self).__name__)
        return draw_search(self.cv_results_, metric, self.n_splits_, ax)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags, tags.input_tags = inner.target_tags, inner.input_tags
        return tags


def _run(runner: Callable[[], TrialRunner], study: Study, trial: Trial) -> Trial | None:
    """Run a trial in a worker, and return what came of it."""
    return runner().run(study, trial)


def _plain(study: Study, trial: Trial, number: int) -> dict[str, Any]:
    """Return a trial in plain values, for callbacks."""
    mean = trial.mean(study.proposals.metric) if trial.state == COMPLETE else float("nan")
    params = study.settings(trial)
    return {"number": number, "params": params, "score": mean, "state": trial.state}


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _weights(search: Search, metrics: Mapping[str, Any], X: Any, weight: Any) -> np.ndarray | None:
    """Check the weights of the rows, and that what is tuned can use them, before the first fit."""
    if weight is None:
        return None
    owner, name = type(search).__name__, type(search.estimator).__name__
    if weight_name(search.estimator) is None:
        raise InvalidParameter(
            f"{owner}: `sample_weight` must be None for {name}, whose fit takes no weights; got "
            f"{plural(_length(weight), 'weight')}."
        )
    for scoring in metrics.values():
        if weighs(check_scoring(search.estimator, scoring)):
            continue
        warnings.warn(
            f"{owner}: the score {scoring!r} takes no weights, so the fits are weighted and "
            "the scores are not.",
            CastaliaWarning,
            stacklevel=4,
        )
    return check_weight(search, X, weight)
