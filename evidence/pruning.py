"""Does giving trials up early cost anything? Random searches over ten data sets and ten seeds.

What a random search tries does not depend on what it gives up. So every trial is run whole once,
with the seconds and the learning curve of each fold, and each rule is then replayed on the record:
which trials it would have given up, when, and what would have been the best of the rest. The
trials of each record are taken in several orders.

CASTALIA_JOBS is the number of processes; each has one thread, and seconds are those of its core.
CASTALIA_RECORD names a file that keeps the searches, so that a run goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn import datasets
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from castalia import MLPClassifier, MLPRegressor
from castalia.tune import Choice, SearchSpace
from castalia.tune.pruning import STARTUP, falls_behind
from evidence.rows import print_table

ROWS, TRIALS, FOLDS, EPOCHS, ORDERS = 150, 40, 5, 16, 10
SPREADS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)


def _loaded(name: str) -> tuple[Any, Any]:
    return getattr(datasets, f"load_{name}")(return_X_y=True)


DATA: dict[str, Callable[[], tuple[Any, Any]]] = {
    "iris": lambda: _loaded("iris"),
    "wine": lambda: _loaded("wine"),
    "breast cancer": lambda: _loaded("breast_cancer"),
    "digits": lambda: _loaded("digits"),
    "moons": lambda: datasets.make_moons(1500, noise=0.3, random_state=0),
    "5 of 20 columns": lambda: datasets.make_classification(
        1500, n_informative=5, flip_y=0.1, random_state=0
    ),
    "diabetes": lambda: _loaded("diabetes"),
    "Friedman 1": lambda: datasets.make_friedman1(1500, noise=1.0, random_state=0),
    "Friedman 2": lambda: datasets.make_friedman2(1500, noise=125.0, random_state=0),
    "Friedman 3": lambda: datasets.make_friedman3(1500, noise=0.1, random_state=0),
}


class Fold(NamedTuple):
    """What one training gave: score, seconds, and minus the loss by epoch (of held-out rows)."""

    score: float
    seconds: float
    curve: np.ndarray


Trials = list[list[Fold]]  # of each trial, its folds
Rule = Callable[[list[Fold], Trials], tuple[float, bool]]  # seconds spent, whether it was given up


def _network(y: np.ndarray, seed: int) -> Any:
    kind = MLPRegressor if y.dtype.kind == "f" else MLPClassifier
    return kind(epochs=EPOCHS, random_state=seed)


def _draw(space: SearchSpace, rng: np.random.Generator) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, domain in space.items():
        if isinstance(domain, Choice):
            found[name] = domain.values[rng.integers(len(domain.values))]
        else:
            low, high = (np.log(b) if domain.log else b for b in (domain.low, domain.high))
            value = rng.uniform(low, high)
            found[name] = float(np.exp(value) if domain.log else value)
    return found


def _trained(model: Any, X: np.ndarray, y: np.ndarray, fold: Any) -> Fold:
    train, test = fold
    begun = time.process_time()
    fitted = clone(model).fit(X[train], y[train])
    seconds = time.process_time() - begun
    losses = [line.get("val_loss", line["loss"]) for line in fitted.history_]
    return Fold(fitted.score(X[test], y[test]), seconds, -np.array(losses, dtype=float))


# ---- rules ----


def _never(folds: list[Fold], whole: Trials) -> tuple[float, bool]:
    return sum(fold.seconds for fold in folds), False


def _by_folds(spread: float) -> Rule:
    """Ours: after each fold, by how far the trial is behind the best on the same folds."""

    def rule(folds: list[Fold], whole: Trials) -> tuple[float, bool]:
        rivals, spent = [[fold.score for fold in trial] for trial in whole], 0.0
        for done, fold in enumerate(folds, 1):
            spent += fold.seconds
            if falls_behind([f.score for f in folds[:done]], rivals, spread):
                return spent, True
        return spent, False

    return rule


def _by_median(warm_up: int) -> Rule:
    """Ours until 0.4: below the median of the others' validation losses at the same epoch."""

    def rule(folds: list[Fold], whole: Trials) -> tuple[float, bool]:
        spent, best = 0.0, -np.inf
        for number, fold in enumerate(folds):
            for epoch, value in enumerate(fold.curve if len(whole) >= STARTUP else ()):
                best = max(best, value)
                others = [t[number].curve[epoch] for t in whole if epoch < len(t[number].curve)]
                late = number > 0 or epoch >= warm_up
                if late and others and best < np.median(others):
                    return spent + fold.seconds * (epoch + 1) / len(fold.curve), True
            spent += fold.seconds
        return spent, False

    return rule


def _by_rungs(keep: float) -> Rule:
    """Successive halving: in the first fold, after a quarter and half of the epochs, the best
    share of the trials that are whole goes on."""

    def rule(folds: list[Fold], whole: Trials) -> tuple[float, bool]:
        first = folds[0]
        for rung in (EPOCHS // 4, EPOCHS // 2):
            others = [max(trial[0].curve[:rung]) for trial in whole]
            if len(others) < STARTUP or rung >= len(first.curve):
                continue
            if np.mean(np.array(others) > max(first.curve[:rung])) > keep:
                return first.seconds * rung / len(first.curve), True
        return _never(folds, whole)

    return rule


RULES: dict[str, Rule] = {
    "every trial whole": _never,
    "median of the epochs, as until 0.4": _by_median(0),
    "the same after a quarter of the epochs": _by_median(EPOCHS // 4),
    "rungs at a quarter and half of the epochs, the better half": _by_rungs(0.5),
    "rungs at a quarter and half of the epochs, all but the last quarter": _by_rungs(0.75),
    **{f"folds, {spread:g} standard errors": _by_folds(spread) for spread in SPREADS},
}


# ---- searches ----


class Search(NamedTuple):
    """What a search under a rule came to."""

    score: float
    test: float
    seconds: float
    pruned: int


def _replay(rule: Rule, trials: Trials) -> tuple[int, float, int]:
    """Return the best trial, the seconds spent and the trials given up."""
    whole: Trials = []
    best, top, spent, pruned = -1, -np.inf, 0.0, 0
    for number, folds in enumerate(trials):
        seconds, given_up = rule(folds, whole)
        spent, pruned = spent + seconds, pruned + given_up
        mean = float(np.mean([fold.score for fold in folds]))
        if not given_up:
            whole.append(folds)
            best, top = (number, mean) if mean > top else (best, top)
    return best, spent, pruned


def _searches(name: str, seed: int, trials: int) -> dict[str, list[Search]]:
    """Run the trials of one data set and seed, and replay every rule on them."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    X, y = DATA[name]()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    train, test = np.split(order, [min(ROWS, 2 * len(X) // 3)])
    model = _network(y, seed)
    space = SearchSpace.default(model)
    models = [clone(model).set_params(**_draw(space, rng)) for _ in range(trials)]
    cutter = (StratifiedKFold if is_classifier(model) else KFold)(FOLDS)
    cuts = list(cutter.split(X[train], y[train]))
    table = [[_trained(m, X[train], y[train], cut) for cut in cuts] for m in models]
    tests: dict[int, float] = {}

    def search(play: Rule, order: np.ndarray) -> Search:
        place, spent, pruned = _replay(play, [table[i] for i in order])
        best = int(order[place])
        if best not in tests:
            fitted = clone(models[best]).fit(X[train], y[train])
            tests[best] = fitted.score(X[test], y[test])
        mean = float(np.mean([fold.score for fold in table[best]]))
        return Search(mean, tests[best], spent, pruned)

    orders = [rng.permutation(trials) for _ in range(ORDERS)]
    return {rule: [search(play, order) for order in orders] for rule, play in RULES.items()}


def _recorded(name: str, seed: int, trials: int) -> dict[str, list[Search]]:
    """Return what the record has of a search, or run it and write it down."""
    path = Path(os.environ.get("CASTALIA_RECORD", os.devnull))
    lines = path.read_text().splitlines() if path.is_file() else []
    for key, kept in map(json.loads, lines):
        if key == [name, seed, trials]:
            return {rule: [Search(*v) for v in values] for rule, values in kept.items()}
    found = _searches(name, seed, trials)
    with path.open("a") as file:
        file.write(json.dumps([[name, seed, trials], found]) + "\n")
    return found


def run(quick: bool = False) -> None:
    """Score of the best settings, on the folds and on other rows, and seconds, rule by rule."""
    names, trials = (list(DATA)[:2], 8) if quick else (list(DATA), TRIALS)
    seeds = 1 if quick else int(os.environ.get("CASTALIA_SEEDS", "10"))
    work = [(name, seed) for seed in range(seeds) for name in names]
    pool = Parallel(n_jobs=int(os.environ.get("CASTALIA_JOBS", "1")))
    found = pool(delayed(_recorded)(name, seed, trials) for name, seed in work)
    columns = ["given up by", "best score on the folds", "on other rows", "times as fast", "trials"]
    print_table("Pruning", columns, [_row(rule, found, len(names), trials) for rule in RULES])


def _row(rule: str, found: list[dict[str, list[Search]]], data: int, trials: int) -> list[str]:
    """Compare a rule with whole trials; the records come seed by seed."""
    pairs = [list(zip(r[rule], r["every trial whole"], strict=True)) for r in found]
    by_data = [_speed([pair for each in pairs[i::data] for pair in each]) for i in range(data)]
    speed = _speed([pair for each in pairs for pair in each])
    return [
        rule,
        _difference([np.mean([a.score - b.score for a, b in each]) for each in pairs]),
        _difference([np.mean([a.test - b.test for a, b in each]) for each in pairs]),
        f"{speed:.2f} ({min(by_data):.2f}–{max(by_data):.2f})",
        f"{np.mean([a.pruned for each in pairs for a, _ in each]):.1f} of {trials}",
    ]


def _difference(values: Sequence[Any]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):+.4f} ± {error:.4f}"


def _speed(pairs: list[tuple[Search, Search]]) -> float:
    return sum(b.seconds for _, b in pairs) / sum(a.seconds for a, _ in pairs)
