"""Searching the settings of a model for a table, and fitting the best of them.

The settings are judged on the training rows only: by folds of them, or by the latest of them, or by
groups kept apart. The test rows see the best model, once. Trials are kept in the run's folder, so
an interrupted search goes on where it stopped, and one with more trials goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from castalia import __version__
from castalia.data.table_adapter import TableAdapter
from castalia.errors import CastaliaWarning, InvalidData, InvalidParameter
from castalia.evaluate import higher_is_better
from castalia.method.fit_plan import FitPlan
from castalia.method.fit_result import FitResult
from castalia.method.flow import Fit
from castalia.method.kinds import open_data
from castalia.method.model_settings import find_setting, fitting_value, parse_value
from castalia.method.narrator import Narrator
from castalia.method.report.score_formats import score
from castalia.train.runs import Run, RunStore
from castalia.tune import (
    BayesianSearch,
    Choice,
    GridSearch,
    RandomSearch,
    SearchSpace,
    Uniform,
    Whole,
)
from castalia.utils.text import did_you_mean, listing, plural

__all__ = ["SEARCHES", "TunePlan", "TuneResult", "parse_space", "tune"]

SEARCHES: dict[str, type] = {
    "bayesian": BayesianSearch,
    "random": RandomSearch,
    "grid": GridSearch,
}
SCORERS = {"rmse": "neg_root_mean_squared_error", "mae": "neg_mean_absolute_error"}
HELD = 0.2  # share of the training rows that judges, where they are split by group or time
STUDY = "study.sqlite"
SHOWN = 5  # best trials in the table


@dataclass(frozen=True, kw_only=True)
class TunePlan:
    """Settings of a search: what the command line takes, by the same names.

    Parameters
    ----------
    fit
        The table, the model and the settings that stay fixed; ``fit.cv`` must be None.
    search
        ``"bayesian"``, ``"random"`` or ``"grid"``.
    trials
        Settings to try, those of earlier sittings included.
    seconds
        Time of one sitting, after which no further trial is begun.
    folds
        Folds of the training rows that judge each setting.
    space
        Domains by setting; empty: those worth searching of this model.

    Examples
    --------
    >>> TunePlan(fit=FitPlan(data="penguins.csv", target="species"), trials=5).trials
    5
    """

    fit: FitPlan
    search: str = "bayesian"
    trials: int = 20
    seconds: float | None = None
    folds: int = 3
    space: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.search not in SEARCHES:
            raise InvalidParameter(
                f"tune: `search` must be {listing(SEARCHES)}; got "
                f"{self.search!r}.{did_you_mean(self.search, SEARCHES)}"
            )
        for name, least in (("trials", 1), ("folds", 2)):
            if getattr(self, name) < least:
                raise InvalidParameter(
                    f"tune: `{name}` must be a whole number of at least {least}; got "
                    f"{getattr(self, name)!r}."
                )
        if self.seconds is not None and not self.seconds > 0:
            raise InvalidParameter(f"tune: `seconds` must be above 0; got {self.seconds!r}.")
        if self.fit.cv is not None:
            raise InvalidParameter(
                "tune: `cv` of the fit must be None; `folds` judge the settings."
            )


@dataclass
class TuneResult:
    """A finished search.

    Attributes
    ----------
    fit
        The fit of the best settings: model, report, verdict.
    best
        Those settings.
    score
        Their score on the training rows' own folds.
    metric
        What was scored.
    trials
        The best trials, best first: ``rank``, ``score``, ``spread`` and ``params``.
    counts
        How many trials were ``complete``, ``pruned`` (given up) and ``fail``.
    importances
        Share of each setting in how much the scores differ, the largest first.
    """

    fit: FitResult
    best: dict[str, Any]
    score: float
    metric: str
    trials: list[dict[str, Any]]
    counts: dict[str, int]
    importances: dict[str, float]


def parse_space(words: Iterable[str]) -> dict[str, Any]:
    """Turn words into domains: ``lr=1e-4..1e-1`` is a range, ``hidden=32|64,64`` a choice.

    A range of positive numbers that spans a factor of ten or more is searched on a log scale.

    Examples
    --------
    >>> parse_space(["lr=1e-4..1e-1", "hidden=32|64,64"])
    {'lr': Uniform(low=0.0001, high=0.1, log=True), 'hidden': Choice(values=(32, (64, 64)))}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise InvalidParameter(
                f"tune: `--try` must be NAME=LOW..HIGH or NAME=VALUE|VALUE|…; got {word!r}."
            )
        found[name.strip()] = _domain(word, value.strip())
    return found


def _domain(word: str, text: str) -> Any:
    if ".." not in text:
        return Choice(*(parse_value(part.strip()) for part in text.split("|")))
    low, high = (parse_value(part.strip()) for part in text.split("..", 1))
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (low, high))
    if not numbers or not low < high:
        raise InvalidParameter(f"tune: a range of `--try` must be LOW..HIGH; got {word!r}.")
    kind = Whole if isinstance(low, int) and isinstance(high, int) else Uniform
    return kind(low, high, log=low > 0 and high >= 10 * low)


def tune(plan: TunePlan, narrator: Narrator | None = None) -> TuneResult:
    """Carry out a search, or the rest of it when it was begun before, and fit the best settings.

    Parameters
    ----------
    plan
        What to do.
    narrator
        Who is told about it.

    Returns
    -------
    TuneResult
        The best settings; the run's folder holds model, report and results as after ``fit``.
    """
    narrator = narrator or Narrator()
    data = open_data(plan.fit, narrator)
    if not data.searched:
        raise InvalidParameter(
            "tune: a search takes tables, images and tables of texts; got "
            f"{plan.fit.name}, for {data.task.kind}. Use `castalia fit` with --set."
        )
    first = Fit(data, narrator)
    work = Tuning(plan, first)
    folder = plan.fit.folder
    with RunStore(folder.parent) as store:
        record = store.open_run(folder.name, work.fingerprint, _config(plan))
        record.resume()
        try:
            first.announce(record)
            found = work.search(record)
            settings = {**plan.fit.settings, **found.best_params_}
            best = Fit(data.planned(replace(plan.fit, settings=settings)), narrator)
            return work.result(found, best.complete(record))
        except BaseException as error:
            record.finish("interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
            raise


def _config(plan: TunePlan) -> dict[str, Any]:
    own = {"search": plan.search, "folds": plan.folds, "space": plan.space}
    return {**plan.fit.deciding(), **own}


class Tuning:
    """One search on its way: the model, the space, the rows that judge."""

    def __init__(self, plan: TunePlan, fit: Fit) -> None:
        self.plan, self.fit = plan, fit
        self.train = fit.parts[0].train
        self.model = fit.kind.build(len(self.train), plan.fit.seed)
        self.space = self._space()

    @property
    def fingerprint(self) -> str:
        """What decides the trials: more of them, or more time, belong to the same search."""
        text = json.dumps(
            [__version__, "tune", _config(self.plan), self.fit.kind.fingerprint()],
            sort_keys=True,
            default=repr,
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def _space(self) -> dict[str, Any]:
        """Return the domains by the names that reach them from the model."""
        plan, model = self.plan, self.model
        found = {}
        for given, domain in plan.space.items():
            place, name = find_setting(model, given)
            default = getattr(place.owner, name)
            if isinstance(domain, Choice):
                domain = Choice(*(fitting_value(value, default) for value in domain.values))
            found[place.prefix + name] = domain
        fixed = {find_setting(model, given)[1] for given in plan.fit.settings}
        found = found or {
            name: domain
            for name, domain in SearchSpace.default(model).items()
            if name.split("__")[-1] not in fixed
        }
        if not found:
            raise InvalidParameter(
                f"tune: {type(model).__name__} has no setting left to search. Name some with "
                "`--try`, such as --try lr=0.001..0.1."
            )
        return dict(SearchSpace(found).grid(plan.trials)) if plan.search == "grid" else found

    def search(self, record: Run) -> Any:
        """Run the trials that are not done yet and return the search."""
        fit, plan = self.fit, self.plan
        X, y = fit.kind.rows(self.train)
        rows: Any = X if fit.network else TableAdapter().fit(X).matrix(X)
        search = SEARCHES[plan.search](
            self.model,
            self.space,
            trials=plan.trials,
            seconds=plan.seconds,
            cv=self._folds(y),
            scoring=SCORERS.get(fit.metric, fit.metric),
            study=record.folder / STUDY,
            refit=False,
            callback=self._tell,
            random_state=plan.fit.seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CastaliaWarning)  # of the data, told already
            return search.fit(rows, y)

    def _folds(self, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Cut the training rows as positions among them: by group or time, or by chance."""
        plan, place = self.plan, np.arange(len(y))
        cut = self.fit.kind.hold_validation(self.train, HELD)
        if cut is not None:
            held = np.isin(self.train, cut[1])
            return [(place[~held], place[held])]
        classify = self.fit.task.kind == "classification"
        kind = StratifiedKFold if classify else KFold
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of classes with few rows
                cutter = kind(plan.folds, shuffle=True, random_state=plan.fit.seed)
                return list(cutter.split(place, y))
        except ValueError as error:
            raise InvalidData(
                f"tune: {plural(len(y), 'training row')} must suffice for {plan.folds} folds: "
                f"{error} Lower --folds."
            ) from error

    def _tell(self, trial: Mapping[str, Any]) -> None:
        words = {"pruned": "given up", "fail": "failed"}.get(trial["state"])
        words = words or score(self._signed(trial["score"]), self.fit.metric)
        settings = settings_words(trial["params"])
        self.fit.narrator.trial(trial["number"], self.plan.trials, f"{words:<9} {settings}")

    def _signed(self, found: float) -> float:
        return found if higher_is_better(self.fit.metric) else -found

    def result(self, search: Any, fitted: FitResult) -> TuneResult:
        """Return what the search found, beside the fit of its best settings."""
        found = search.cv_results_
        order = [i for i in np.argsort(found["rank_test_score"]) if not _lost(found, i)]
        trials = [
            {
                "rank": rank,
                "score": self._signed(float(found["mean_test_score"][i])),
                "spread": float(found["std_test_score"][i]),
                "params": found["params"][i],
            }
            for rank, i in enumerate(order[:SHOWN], start=1)
        ]
        states = list(found["state"])
        return TuneResult(
            fit=fitted,
            best=search.best_params_,
            score=self._signed(search.best_score_),
            metric=self.fit.metric,
            trials=trials,
            counts={state: states.count(state) for state in ("complete", "pruned", "fail")},
            importances=search.importances_,
        )


def _lost(found: Mapping[str, Any], i: int) -> bool:
    return isnan(found["mean_test_score"][i])


def settings_words(params: Mapping[str, Any]) -> str:
    """Write settings as one would type them.

    >>> settings_words({"lr": 0.00123456, "hidden": (64, 64)})
    'lr=0.00123 hidden=64,64'
    """
    return " ".join(f"{short_name(name)}={_written(value)}" for name, value in params.items())


def short_name(name: str) -> str:
    """Return the name of a setting without the way to it."""
    return name.removeprefix("estimator__").removeprefix("training__")


def _written(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
