"""A search over the settings of a model, then a fit of the best of them.

The settings are judged on the training rows only: by folds of them, or by the latest of them, or by
groups kept apart. The test rows see the best model, once. Trials are kept in the run's folder, so
an interrupted search continues where it stopped, and so does one with more trials.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from castalia.data.table_adapter import TableAdapter
from castalia.errors import CastaliaWarning, InvalidData, InvalidParameter
from castalia.evaluate import higher_is_better
from castalia.method.answer_scores import answers_of, measure, stacked
from castalia.method.fit_result import FitResult
from castalia.method.flow import announce, complete
from castalia.method.kinds import open_data
from castalia.method.model_settings import find_setting, fitting_value
from castalia.method.narrator import Narrator
from castalia.method.problem import Problem, digest, pose_problem
from castalia.method.report.score_formats import score
from castalia.method.run_context import opened_run
from castalia.method.train_test_split import same_rows
from castalia.method.tune_plan import SEARCHES, TunePlan, TuneResult, settings_words
from castalia.tune import Choice, SearchSpace
from castalia.tune.search_record import SearchRecord
from castalia.tune.space import as_domain
from castalia.utils.text import plural

__all__ = ["Search", "folds", "pose_search", "tune"]

SCORERS = {
    "rmse": "neg_root_mean_squared_error",
    "mae": "neg_mean_absolute_error",
    "f1": "f1_macro",
    "roc_auc": "roc_auc_ovr",
    "log_loss": "neg_log_loss",
}
HELD = 0.2  # share of the training rows that judges, where they are split by group or time
STUDY = "study.sqlite"
SHOWN = 5  # best trials in the table


@dataclass(frozen=True)
class Search:
    """What is searched.

    Attributes
    ----------
    plan
        What was asked for.
    problem
        The fit whose training rows judge.
    model
        Unfitted.
    space
        Domains by the names that reach them from the model.
    """

    plan: TunePlan
    problem: Problem
    model: Any
    space: dict[str, Any]

    @property
    def train(self) -> np.ndarray:
        """Numbers of the training rows."""
        return self.problem.parts[0].train

    @property
    def fingerprint(self) -> str:
        """What decides the trials: more of them, or more time, belong to the same search."""
        return digest(["tune", _config(self.plan), self.problem.kind.fingerprint()])

    def signed(self, found: float) -> float:
        """Return a score of the search in the sign of the metric."""
        return found if higher_is_better(self.problem.metric) else -found


def tune(plan: TunePlan, narrator: Narrator | None = None) -> TuneResult:
    """Carry out a search, or the rest of it when it was begun before, and fit the best settings.

    Returns
    -------
    TuneResult
        The best settings; the run's folder holds model, report and results as after ``fit``.
    """
    narrator = narrator or Narrator()
    data = open_data(plan.fit, narrator)
    if not data.searched:
        raise InvalidParameter(
            "tune: a search takes tables, images, tables of texts, sequences and series; got "
            f"{plan.fit.name}, for {data.task.kind}. Use `castalia fit` with --set."
        )
    data.parts = same_rows(data.parts[0], plan.fit.seeds or 1)  # other test rows would have judged
    search = pose_search(plan, pose_problem(data))
    with opened_run(plan.fit.folder, search.fingerprint, _config(plan)) as record:
        record.resume()
        announce(search.problem, record.folder, narrator)
        found = _run_trials(search, record.folder, narrator)
        settings = {**plan.fit.settings, **found.best_params_}
        best = pose_problem(data.planned(replace(plan.fit, settings=settings)))
        return _result(search, found, complete(best, record, narrator))


def _config(plan: TunePlan) -> dict[str, Any]:
    own = {"search": plan.search, "folds": plan.folds, "space": plan.space}
    return {**plan.fit.deciding(), **own}


def pose_search(plan: TunePlan, problem: Problem) -> Search:
    """Return the search that a plan asks for; a wrong setting is refused here."""
    model = problem.kind.build(len(problem.parts[0].train), plan.fit.seed)
    space = _given_space(plan, model) or _usual_space(plan, model)
    if not space:
        raise InvalidParameter(
            f"tune: {type(model).__name__} has no setting left to search. Name some with "
            "`--try`, such as --try lr=0.001..0.1."
        )
    space = dict(SearchSpace(space).grid(plan.trials)) if plan.search == "grid" else space
    return Search(plan, problem, model, space)


def _given_space(plan: TunePlan, model: Any) -> dict[str, Any]:
    found = {}
    for given, domain in plan.space.items():
        place, name = find_setting(model, given)
        default = getattr(place.owner, name)
        if isinstance(domain, Choice):
            domain = Choice(*(fitting_value(value, default) for value in domain.values))
        found[place.prefix + name] = domain
    return found


def _usual_space(plan: TunePlan, model: Any) -> dict[str, Any]:
    """Return what is worth searching of this model, less the settings that stay fixed."""
    fixed = {find_setting(model, given)[1] for given in plan.fit.settings}
    usual = SearchSpace.default(model).items()
    return {name: domain for name, domain in usual if name.split("__")[-1] not in fixed}


def _run_trials(search: Search, folder: Path, narrator: Narrator) -> Any:
    """Run the trials that are not done yet and return the search of ``castalia.tune``."""
    plan, problem = search.plan, search.problem
    space = {name: as_domain("tune", name, domain) for name, domain in search.space.items()}
    SearchRecord(problem.metric, higher_is_better(problem.metric), space).write(folder)
    X, y = problem.kind.rows(search.train)
    rows: Any = (
        X if problem.network or problem.kind.direct is None else TableAdapter().fit(X).matrix(X)
    )

    def report(trial: Mapping[str, Any]) -> None:
        narrator.trial(trial["number"], plan.trials, _trial_words(search, trial))

    searcher = SEARCHES[plan.search](
        search.model,
        search.space,
        trials=plan.trials,
        seconds=plan.seconds,
        cv=folds(search),
        scoring=_scoring(problem),
        study=folder / STUDY,
        refit=False,
        callback=report,
        random_state=plan.fit.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CastaliaWarning)  # of the data, reported already
        return searcher.fit(rows, y)


def _scoring(problem: Problem) -> Any:
    """Return what judges a trial, larger being better: a scorer's name, or a function."""
    task, metric = problem.task, problem.metric
    if task.kind != "forecasting":
        return SCORERS.get(metric, metric)

    def score(model: Any, X: Any, y: np.ndarray) -> float:  # errors: smaller is better
        return -measure(metric)(y, stacked(y, [answers_of(model, X, task, 0.0)]))

    return score


def _trial_words(search: Search, trial: Mapping[str, Any]) -> str:
    words = {"pruned": "given up", "fail": "failed"}.get(trial["state"])
    words = words or score(search.signed(trial["score"]), search.problem.metric)
    return f"{words:<9} {settings_words(trial['params'])}"


def folds(search: Search) -> list[tuple[np.ndarray, np.ndarray]]:
    """Cut the training rows as positions among them: by group or time, or by chance."""
    problem, number = search.problem, search.plan.folds
    y, place = problem.task.y[search.train], np.arange(len(search.train))
    cut = problem.kind.hold_validation(search.train, HELD)
    if cut is not None:
        kept, held = (place[np.isin(search.train, rows)] for rows in cut)
        return [(kept, held)]
    kind = StratifiedKFold if problem.task.kind == "classification" else KFold
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of classes with few rows
            cutter = kind(number, shuffle=True, random_state=search.plan.fit.seed)
            return list(cutter.split(place, y))
    except ValueError as error:
        raise InvalidData(
            f"tune: {plural(len(y), 'training row')} must suffice for {number} folds: "
            f"{error} Lower --folds."
        ) from error


def _result(search: Search, found: Any, fitted: FitResult) -> TuneResult:
    """Return what the search found, beside the fit of its best settings."""
    table = found.cv_results_
    order = [i for i in np.argsort(table["rank_test_score"]) if not _lost(table, i)]
    trials = [
        {
            "rank": rank,
            "score": search.signed(float(table["mean_test_score"][i])),
            "spread": float(table["std_test_score"][i]),
            "params": table["params"][i],
        }
        for rank, i in enumerate(order[:SHOWN], start=1)
    ]
    states = list(table["state"])
    return TuneResult(
        fit=fitted,
        best=found.best_params_,
        score=search.signed(found.best_score_),
        metric=search.problem.metric,
        trials=trials,
        counts={state: states.count(state) for state in ("complete", "pruned", "fail")},
        importances=found.importances_,
    )


def _lost(table: Mapping[str, Any], i: int) -> bool:
    return isnan(table["mean_test_score"][i])
