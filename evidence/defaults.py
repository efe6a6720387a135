"""Which defaults to train with: recipes of ours and others' models over many tables.

A recipe is a name of ``RECIPES``, with settings of its own after a colon if wanted:
``tabular:lr=0.01;hidden=128,128``. Every seed draws the rows to test, a fifth of them, and the
weights; of tables below 1,000 rows every third is tested in turn. Classes are scored by accuracy,
numbers by R², at least 0. Every third table by name served to develop the recipe, the others did
not.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier as SklearnClassifier
from sklearn.neural_network import MLPRegressor as SklearnRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from castalia.data import read
from castalia.method.model_settings import apply_settings, parse_settings
from castalia.models.dense import (
    MLPClassifier,
    MLPRegressor,
    TabularClassifier,
    TabularRegressor,
)
from castalia.train import Training
from evidence.rows import print_table
from evidence.table_collection import Table, collect, load, save

SEEDS = 5
SMALL = 1_000  # rows below which all are tested in turn
BEFORE = "mlp-before"  # the measure of time
THEIRS, BOOSTING = "sklearn-mlp", "boosting"
USUAL = ("mlp-before", "cli-before", "mlp", "tabular", THEIRS, BOOSTING, "skorch")


class Result(NamedTuple):
    """One recipe on one table with one seed: its mean score and the seconds of a core."""

    table: str
    seed: int
    recipe: str
    score: float
    seconds: float
    rows: int


# -- recipes ------------------------------------------------------------------------------------


def ours(classifier: type, regressor: type, **settings: Any) -> Callable[..., Any]:
    """Return what makes an estimator of ours; ``training`` None takes its own."""

    def make(table: Table, seed: int) -> Any:
        kind = classifier if table.classes else regressor
        training = settings.get("training") or kind.usual_training
        own = {name: value for name, value in settings.items() if name != "training"}
        training = replace(training, device="cpu", verbose=False, watch=False)
        return kind(**own, training=training, random_state=seed)

    return make


def cli_before(table: Table, seed: int) -> Any:
    """What `castalia fit` trained before one recipe served both."""
    rows = len(table.y)
    hidden, batch = ((64, 64), 32) if rows <= 2_000 else ((128, 128), 128)
    steps = -(-int(rows * 0.8 * 0.85) // batch)
    settings = {
        "hidden": hidden,
        "dropout": 0.1,
        "batch_size": batch,
        "lr": 3e-3 if batch == 32 else 1e-3,
        "epochs": int(np.clip(20_000 // steps, 20, 300)),
    }
    training = Training(
        optimizer="adamw", weight_decay=0.01, validation=0.15, average="ema", patience=20
    )
    return ours(MLPClassifier, MLPRegressor, training=training, **settings)(table, seed)


def sklearn_mlp(table: Table, seed: int) -> Any:
    """scikit-learn's own perceptron, with its defaults, after the usual preparation."""
    kind = SklearnClassifier if table.classes else SklearnRegressor
    return make_pipeline(prepared(table), ScaledTarget.around(kind(random_state=seed), table))


def boosting(table: Table, seed: int) -> Any:
    """Histogram gradient boosting with its defaults; it knows missing values and categories."""
    kind = HistGradientBoostingClassifier if table.classes else HistGradientBoostingRegressor
    words = list(range(table.words.shape[1]))
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=200
    )
    prepare = make_column_transformer((codes, words), remainder=to_numbers())
    return make_pipeline(prepare, kind(random_state=seed, categorical_features=words or None))


def skorch(table: Table, seed: int) -> Any:
    """The same shape of network by skorch with its own defaults."""
    from skorch import NeuralNetClassifier, NeuralNetRegressor
    from torch import nn

    torch.manual_seed(seed)
    outputs = len(np.unique(table.y)) if table.classes else 1
    net = nn.Sequential(
        nn.LazyLinear(64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs)
    )
    kind = NeuralNetClassifier if table.classes else NeuralNetRegressor
    own = {"criterion": nn.CrossEntropyLoss} if table.classes else {}
    return make_pipeline(
        prepared(table), ScaledTarget.around(kind(net, verbose=0, **own), table, matrix=True)
    )


class ScaledTarget(BaseEstimator):
    """A model whose classes are numbered, or whose numbers are standardised, as ours are.

    Parameters
    ----------
    model
        What is fitted.
    classes
        The classes, or None for numbers.
    matrix
        Whether the model wants float32 and targets of two dimensions.
    """

    def __init__(self, model: Any, classes: np.ndarray | None, matrix: bool) -> None:
        self.model, self.classes, self.matrix = model, classes, matrix

    @classmethod
    def around(cls, model: Any, table: Table, matrix: bool = False) -> Any:
        """Wrap a model for a table."""
        return cls(model, np.unique(table.y) if table.classes else None, matrix)

    def fit(self, X: Any, y: Any) -> ScaledTarget:
        """Fit on encoded targets."""
        if self.classes is not None:
            target: Any = np.searchsorted(self.classes, y)
        else:
            self.mean, self.scale = y.mean(), y.std() or 1.0
            target = (y - self.mean) / self.scale
            target = target.astype(np.float32)[:, None] if self.matrix else target
        self.model_ = self.model.fit(self._inputs(X), target)
        return self

    def predict(self, X: Any) -> Any:
        """Return classes or numbers as they were given."""
        found = self.model_.predict(self._inputs(X))
        if self.classes is not None:
            return self.classes[found]
        return found.reshape(len(found)) * self.scale + self.mean

    def _inputs(self, X: Any) -> Any:
        return X.astype(np.float32) if self.matrix else X


def prepared(table: Table) -> Any:
    """Numbers imputed and standardised, words as columns of 0 and 1."""
    words = list(range(table.words.shape[1]))
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words),
        remainder=make_pipeline(to_numbers(), SimpleImputer(), StandardScaler()),
    )


def to_numbers() -> Any:
    """From the mixed matrix back to numbers."""
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer(_floats)


def _floats(X: Any) -> Any:
    return X.astype(float)


RECIPES: dict[str, Callable[[Table, int], Any]] = {
    BEFORE: ours(MLPClassifier, MLPRegressor, training=Training()),
    "mlp": ours(MLPClassifier, MLPRegressor),
    "tabular": ours(TabularClassifier, TabularRegressor),
    "cli-before": cli_before,
    THEIRS: sklearn_mlp,
    BOOSTING: boosting,
    "skorch": skorch,
}
OURS = (BEFORE, "mlp", "tabular", "cli-before")


def build(recipe: str, table: Table, seed: int) -> Any:
    """Return an unfitted model by a recipe's name and settings."""
    name, _, settings = recipe.partition(":")
    model = RECIPES[name](table, seed)
    return apply_settings(model, parse_settings(settings.split(";"))) if settings else model


# -- one measurement ----------------------------------------------------------------------------


def measure(table: Table, seed: int, recipe: str) -> Result:
    """Fit a recipe on the rows kept, and score it on those tested."""
    scores, seconds = [], 0.0
    known = recipe.partition(":")[0] in OURS
    for kept, held in folds(table, seed):
        model = build(recipe, table, seed)
        train, test = rows_of(table, kept, known), rows_of(table, held, known)
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(train, table.y[kept])
            seconds += time.process_time() - begin
            found = model.predict(test)
        scores.append(score(table, table.y[held], found))
    return Result(table.name, seed, recipe, float(np.mean(scores)), seconds, len(table.y))


def folds(table: Table, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows to train on and to test: thirds of small tables, one fifth of large ones."""
    kind = StratifiedKFold if table.classes else KFold
    small = len(table.y) < SMALL
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds
        pairs = list(
            kind(3 if small else 5, shuffle=True, random_state=seed).split(table.numbers, table.y)
        )
    yield from pairs if small else pairs[:1]


def rows_of(table: Table, rows: np.ndarray, known: bool) -> Any:
    """Return rows as a table for ours, or as one matrix with the words first."""
    numbers, words = table.numbers[rows], table.words[rows]
    if not words.shape[1]:
        return numbers
    if not known:
        return np.concatenate([words.astype(object), numbers], axis=1)
    columns: dict[str, Any] = {f"x{i}": pa.array(c) for i, c in enumerate(numbers.T)}
    for i, column in enumerate(words.T):
        columns[f"w{i}"] = pa.array([word or None for word in column.tolist()])
    return read(pa.table(columns))


def score(table: Table, y: np.ndarray, found: np.ndarray) -> float:
    """Accuracy, or R² of at least 0."""
    if table.classes:
        return float(accuracy_score(y, found))
    return max(0.0, float(r2_score(y, found)))


# -- all of them --------------------------------------------------------------------------------


def measure_all(tables: list[Table], asked: argparse.Namespace) -> list[Result]:
    """Measure what the file of results lacks, in several processes, and add it there."""
    path = Path(asked.out)
    done = read_results(path)
    have = {result[:3] for result in done}
    order = sorted(tables, key=lambda table: -len(table.y) * (1 + table.numbers.shape[1]))
    jobs = [
        (table, seed, recipe)
        for seed in range(asked.seeds)
        for table in order
        for recipe in asked.recipes
        if (table.name, seed, recipe) not in have
    ]
    if not jobs:
        return done
    until = time.monotonic() + 60 * asked.minutes
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for result in run_jobs(jobs, asked.jobs, until):
            done.append(result)
            file.write(json.dumps(result._asdict()) + "\n")
            file.flush()
    return done


def run_jobs(jobs: list[Any], processes: int, until: float) -> Iterator[Result]:
    """Yield results as they come; what is not begun in time is left out."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    os.environ.update(dict.fromkeys(names, "1"))  # read when a process begins
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, one_thread) as pool:
        waiting = [pool.submit(in_time, job, until) for job in jobs]
        for future in as_completed(waiting):
            found = future.result()
            if isinstance(found, str):
                print(found, flush=True)
            elif found is not None:
                yield found


def one_thread() -> None:
    """Keep a process to one core."""
    torch.set_num_threads(1)


def in_time(job: tuple[Table, int, str], until: float) -> Result | str | None:
    """Measure, unless time is up; a failure is reported and does not end the rest."""
    if time.monotonic() > until:
        return None
    try:
        return measure(*job)
    except Exception as error:
        return f"{job[0].name}, seed {job[1]}, {job[2]}: {type(error).__name__}: {error}"


def read_results(path: Path) -> list[Result]:
    """Read the results of earlier calls, one a line."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Result(**json.loads(line)) for line in lines if line.strip()]


# -- the report ---------------------------------------------------------------------------------


def report(
    results: list[Result], recipes: list[str], title: str, part: Callable[[int], bool]
) -> None:
    """Print rank, score, worst gap, gap to boosting, and time, over the tables of a part."""
    scores, seconds = tabulate(results, recipes)
    names = [n for i, n in enumerate(sorted(scores)) if part(i)]
    grid = np.array([[scores[n][r] for r in recipes] for n in names])  # (tables, recipes)
    ranks = (grid[:, :, None] < grid[:, None, :]).sum(2) + 0.5 * (
        (grid[:, :, None] == grid[:, None, :]).sum(2) - 1
    )
    rows = []
    for i, recipe in enumerate(recipes):
        gap, worst = against(grid, recipes, i, THEIRS), ""
        if gap is not None:
            worst = f"{gap.min():+.3f} ({names[int(gap.argmin())]}), {(gap < -0.02).sum()}"
        behind = against(grid, recipes, i, BOOSTING)
        times = [seconds[n][recipe] / seconds[n].get(BEFORE, np.nan) for n in names]
        total = sum(seconds[n][recipe] for n in names)
        before = sum(seconds[n].get(BEFORE, np.nan) for n in names)
        rows.append(
            [
                recipe,
                f"{ranks[:, i].mean() + 1:.2f}",
                f"{grid[:, i].mean():.4f}",
                worst,
                "" if gap is None else f"{gap.mean():+.4f}",
                "" if behind is None else f"{behind.mean():+.4f}",
                f"{total / before:.2f}",
                f"{np.median(times):.2f}",
            ]
        )
    columns = [
        "recipe",
        "mean rank",
        "mean score",
        "worst gap to scikit-learn's MLP, tables below -0.02",
        "mean gap to it",
        "mean gap to boosting",
        "time, total",
        "time, median",
    ]
    print_table(f"{title}, {len(names)} tables", columns, rows)


def tabulate(
    results: list[Result], recipes: list[str]
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Return mean score and seconds by table and recipe, of tables that every recipe finished."""
    by: dict[str, dict[str, dict[int, Result]]] = defaultdict(lambda: defaultdict(dict))
    for result in results:
        by[result.table][result.recipe][result.seed] = result
    scores: dict[str, dict[str, float]] = {}
    seconds: dict[str, dict[str, float]] = {}
    for name, found in by.items():
        common = set.intersection(*(set(found[r]) for r in recipes))
        if common:
            scores[name] = {r: float(np.mean([found[r][s].score for s in common])) for r in recipes}
            seconds[name] = {
                r: float(np.mean([found[r][s].seconds for s in common])) for r in recipes
            }
    return scores, seconds


def against(grid: np.ndarray, recipes: list[str], i: int, other: str) -> np.ndarray | None:
    """Return how much better a recipe is than another on each table."""
    if other not in recipes or recipes[i] == other:
        return None
    return grid[:, i] - grid[:, recipes.index(other)]


def arguments(words: list[str] | None) -> argparse.Namespace:
    """Read the options of this script."""
    parser = argparse.ArgumentParser(
        prog="python -m evidence defaults", description=__doc__, fromfile_prefix_chars="@"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--tables", default="", help="words, one of which a table's name holds")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--recipes", nargs="+", default=None)
    parser.add_argument("--part", choices=("all", "tune", "test"), default="all")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin nothing later")
    parser.add_argument("--out", default="defaults.json", help="results, one a line; resumed")
    parser.add_argument("--from", dest="source", help="a collection that --export wrote")
    parser.add_argument("--export", help="write the collection there and end")
    return parser.parse_args(words or [])


def run(quick: bool = False, words: list[str] | None = None) -> None:
    """Measure and report."""
    asked = arguments(words)
    tables = load(asked.source) if asked.source else collect()
    if asked.export:
        save(tables, asked.export)
        return
    asked.seeds = min(asked.seeds, 2) if quick else asked.seeds
    asked.recipes = asked.recipes or [r for r in USUAL if r != "skorch" or has_skorch()]
    wanted = [w for w in asked.tables.split(",") if w]
    chosen = {"all": lambda i: True, "tune": is_tune, "test": lambda i: not is_tune(i)}[asked.part]
    tables = [
        t
        for i, t in enumerate(tables)
        if chosen(i) and (not wanted or any(w in t.name for w in wanted))
    ]
    results = measure_all(tables, asked)
    names = {t.name for t in tables}
    kept = [r for r in results if r.table in names]
    ended = [r for r in asked.recipes if any(found.recipe == r for found in kept)]
    if asked.part == "all" and not wanted:
        report(kept, ended, "Defaults, tables the recipe was developed on", is_tune)
        report(kept, ended, "Defaults, the other tables", lambda i: not is_tune(i))
    report(kept, ended, "Defaults, all", lambda i: True)


def is_tune(i: int) -> bool:
    """Whether a table, by its place among the names in order, serves to develop the recipe."""
    return i % 3 == 0


def has_skorch() -> bool:
    """Whether skorch can be imported."""
    from importlib.util import find_spec

    return find_spec("skorch") is not None
