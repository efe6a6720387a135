"""What the searches share: trials fold by fold, remembered, resumed and concluded."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit, check_cv
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from castalia.base import Interval, OneOf, RandomState, check_parameters
from castalia.base.input_checks import check_weight, split_target
from castalia.base.run_recorder import content, described
from castalia.errors import CastaliaWarning, InvalidData, InvalidParameter
from castalia.tune.epoch_pruner import PruneByEpoch, watched
from castalia.tune.search_rows import Rows, weighs, weight_name
from castalia.tune.search_space import read_space
from castalia.tune.study import Study
from castalia.utils.seeds import seed_from
from castalia.utils.text import did_you_mean, plural

__all__ = ["Search"]


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
        What is maximised, as in scikit-learn; None takes the estimator's own score.
    study
        Where to remember: a path makes an SQLite file, an address such as ``postgresql://…`` is
        shared by many workers; None forgets. The same search on the same data goes on where it
        stopped, and another one does not disturb it.
    prune
        Give up trials whose validation loss falls behind the median of the others, epoch by epoch
        (fold by fold for estimators without epochs). A Gaussian process learns nothing from trials
        that were given up.
    refit
        Fit the best settings on all rows at the end.
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
    refit: Annotated[bool, OneOf(True, False)] = True
    seconds: Annotated[float | None, Interval(0, closed="neither", optional=True)] = None
    callback: Any = None
    random_state: Annotated[Any, RandomState()] = None

    def _kind(self) -> str:
        """Name the sampler."""
        raise NotImplementedError

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
        owner = type(self).__name__
        X, y = split_target(X, y)
        space = read_space(self.space, self.estimator, owner)
        self._check_scoring()
        rows = Rows(X, y, _weights(self, X, sample_weight))
        folds, budget = self._folds(X, y), self._budget(space)
        seed = seed_from(0 if self.random_state is None and self.study else self.random_state)
        name = f"{type(self.estimator).__name__}-{self._fingerprint(rows, space, folds)}"
        study = Study(
            self.study,
            name,
            space,
            sampler=self._kind(),
            prune=self.prune,
            seed=seed,
            owner=owner,
        )
        begun = time.monotonic()
        while len(study.finished()) < budget and not self._late(study, begun):
            self._try(study, rows, folds)
            if self.callback is not None:
                self.callback(study.latest())
        self._conclude(study, rows, len(folds))
        return self

    def _late(self, study: Study, begun: float) -> bool:
        spent = time.monotonic() - begun
        return self.seconds is not None and spent >= self.seconds and bool(study.complete())

    def _check_scoring(self) -> None:
        """Find out before the first trial whether the score can be had."""
        owner, known = type(self).__name__, get_scorer_names()
        if isinstance(self.scoring, str) and self.scoring not in known:
            raise InvalidParameter(
                f"{owner}: `scoring` must be one of scikit-learn's names; got {self.scoring!r}."
                f"{did_you_mean(self.scoring, known)}"
            )
        if self.scoring is not None and not isinstance(self.scoring, str | Callable):
            raise InvalidParameter(
                f"{owner}: `scoring` must be a name, a callable or None: one score is maximised; "
                f"got {self.scoring!r}."
            )

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

    def _fingerprint(self, rows: Rows, space: Any, folds: Any) -> str:
        """Identify what is searched: another search in the same file gets another name."""
        own = self.estimator.get_params(deep=True)
        how = [space, self.scoring, self._kind(), self.prune, self.random_state]
        mark = hashlib.sha256(json.dumps([own, how], sort_keys=True, default=described).encode())
        y = None if rows.y is None else np.asarray(rows.y)
        split = [np.asarray(part) for fold in folds for part in fold]
        for part in (rows.X, y, *split, rows.weight):
            mark.update(b"" if part is None else content(part).encode())
        return mark.hexdigest()[:12]

    def _try(self, study: Study, rows: Rows, folds: list[Any]) -> None:
        """Run one trial, fold by fold, from where it stopped."""
        trial = study.ask()
        settings, scores = study.settings(trial), study.folds(trial)
        plain = clone(self.estimator).set_params(**settings)
        epochs = getattr(plain, "epochs", None) if hasattr(plain, "training") else None
        study.replay(trial, before=len(scores) * (epochs or 1))
        for number, (train, test) in enumerate(folds):
            if number in scores:
                continue
            model = clone(plain)
            callback = None if epochs is None else PruneByEpoch(trial, number * epochs)
            if callback is not None and self.prune:
                model = watched(model, callback)
            try:
                rows.take(train).fit(model)
                if callback is not None and callback.behind:
                    return study.give_up(trial)
                scores[number] = rows.take(test).score(model, self.scoring)
                if np.isnan(scores[number]):
                    return study.fail(trial, f"the score of fold {number} is not a number.")
            except (ValueError, ArithmeticError) as error:
                return study.fail(trial, str(error))
            study.keep_fold(trial, scores)
            if epochs is None and self._falls_behind(trial, number, scores, len(folds)):
                return study.give_up(trial)
        return study.tell(trial, float(np.mean([scores[i] for i in range(len(folds))])))

    def _falls_behind(self, trial: Any, number: int, scores: dict[int, float], folds: int) -> bool:
        """Report the mean score so far; the last fold ends the trial anyway."""
        trial.report(float(np.mean(list(scores.values()))), number)
        return self.prune and number + 1 < folds and bool(trial.should_prune())

    def _conclude(self, study: Study, rows: Rows, folds: int) -> None:
        trials, complete = study.finished(), study.complete()
        failed = [t for t in trials if study.reason(t)]
        if not complete:
            said = f" The last one said: {study.reason(failed[-1])}" if failed else ""
            raise InvalidData(f"{type(self).__name__}: no trial came to an end.{said}")
        if failed:
            warnings.warn(
                f"{type(self).__name__}: {len(failed)} of {len(trials)} trials failed; the last "
                f"one said: {study.reason(failed[-1])}",
                CastaliaWarning,
                stacklevel=4,
            )
        best = max(complete, key=lambda t: (t.value, -t.number))
        self.best_params_ = study.settings(best)
        self.best_score_ = float(best.value)
        self.cv_results_ = _results(study, trials, folds)
        self.best_index_ = trials.index(best)
        self.n_splits_ = folds
        self.pruned_ = sum(t.state.name == "PRUNED" for t in trials)
        self.importances_ = study.importances()
        if self.refit:
            model = clone(self.estimator).set_params(**self.best_params_)
            self.best_estimator_ = rows.fit(model)

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
        return Rows(X, y, sample_weight).score(self._best(), self.scoring)

    def plot(self, ax: Any = None) -> Any:
        """Draw the score of every trial and the best so far.

        Parameters
        ----------
        ax
            Axes to draw on; None makes a figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from matplotlib.figure import Figure

        check_is_fitted(self, "cv_results_")
        ax = ax if ax is not None else Figure((6, 3.5), layout="constrained").add_subplot()
        score = self.cv_results_["mean_test_score"]
        number = np.arange(1, len(score) + 1)
        ax.plot(number, score, "o", color="0.6", markersize=4, label="trial")
        ax.plot(number, np.fmax.accumulate(score), drawstyle="steps-post", label="best so far")
        ax.set(xlabel="trial", ylabel="score")
        ax.legend(frameon=False)
        return ax

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags, tags.input_tags = inner.target_tags, inner.input_tags
        return tags


def _results(study: Study, trials: list[Any], folds: int) -> dict[str, Any]:
    scores = np.array(
        [[study.folds(t).get(i, np.nan) for i in range(folds)] for t in trials], dtype=float
    )
    settings = [study.settings(t) for t in trials]
    mean = scores.mean(axis=1)  # NaN where a fold is missing: given up or failed
    rank = np.full(len(mean), len(mean), dtype=int)
    order = np.argsort(-mean[~np.isnan(mean)], kind="stable")
    rank[np.flatnonzero(~np.isnan(mean))[order]] = np.arange(1, len(order) + 1)
    return {
        "params": settings,
        **{f"param_{name}": [s[name] for s in settings] for name in study.space},
        **{f"split{i}_test_score": scores[:, i] for i in range(folds)},
        "mean_test_score": mean,
        "std_test_score": _std(scores),
        "rank_test_score": rank,
        "state": [t.state.name.lower() for t in trials],
    }


def _std(scores: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # NaN where a score is infinite
        return np.asarray(scores.std(axis=1))


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _weights(search: Search, X: Any, weight: Any) -> np.ndarray | None:
    """Check the weights of the rows, and that what is tuned can use them, before the first fit."""
    if weight is None:
        return None
    owner, name = type(search).__name__, type(search.estimator).__name__
    if weight_name(search.estimator) is None:
        raise InvalidParameter(
            f"{owner}: `sample_weight` must be None for {name}, whose fit takes no weights; got "
            f"{plural(_length(weight), 'weight')}."
        )
    if not weighs(check_scoring(search.estimator, search.scoring)):
        warnings.warn(
            f"{owner}: the score {search.scoring!r} takes no weights, so the fits are weighted and "
            "the scores are not.",
            CastaliaWarning,
            stacklevel=4,
        )
    return check_weight(search, X, weight)
