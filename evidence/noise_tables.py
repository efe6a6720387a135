"""Tables of noise: how often the method recommends a model where nothing can be predicted."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from castalia.method import FitPlan, Narrator
from castalia.method.fit_outcome import FitOutcome
from castalia.method.flow import contest
from castalia.method.kinds import open_data
from castalia.method.problem import Problem, pose_problem
from castalia.method.run_context import RunContext
from castalia.method.run_stages import Stages
from evidence.rows import folder, print_table

TABLES, QUICK = 500, 20
LEAST, MOST = 24, 800  # rows
SETTINGS = {"hidden": (16,), "epochs": 15, "lr": 0.01, "batch_size": 32, "watch": False}
REAL = {  # file of the data folder, target: what can be predicted must still be recommended
    "penguins": ("tables/penguins.csv", "species"),
    "titanic": ("tables/titanic.csv", "Survived"),
    "red wine": ("tables/winequality-red.csv", "column_12"),
    "white wine": ("tables/winequality-white.csv", "column_12"),
}


def run(quick: bool = False, words: list[str] | None = None) -> None:
    """Count false recommendations by task and size, then what becomes of real tables."""
    asked = arguments(words)
    found = Counter[tuple[str, str, bool]]()
    for task, size, key in recommendations(QUICK if quick else asked.tables, Path(asked.out)):
        found[task, size, key != "guess"] += 1
    print_table("Tables of noise", ["task", "rows", "tables", "recommended"], rates(found))
    if asked.real:
        rows = [[name, recommended_model(name)] for name in ("iris", *REAL)]
        print_table("Real tables", ["table", "recommended"], rows)


def arguments(words: list[str] | None) -> argparse.Namespace:
    """Read the options of this script."""
    parser = argparse.ArgumentParser(prog="python -m evidence noise_tables", description=__doc__)
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--out", default="noise_tables.json", help="one table a line; resumed")
    parser.add_argument("--no-real", dest="real", action="store_false", help="noise alone")
    return parser.parse_args(words or [])


def recommendations(tables: int, path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield task, size and recommended contender of each table; the file keeps them."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    done = {found["seed"]: found for found in map(json.loads, lines)}
    for seed in range(tables):
        if seed not in done:
            table, task, size = noise(seed)
            done[seed] = {"seed": seed, "task": task, "size": size, "rows": len(table)}
            done[seed]["key"] = recommended(table, seed)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(done[seed]) + "\n")
        yield done[seed]["task"], done[seed]["size"], done[seed]["key"]


def noise(seed: int) -> tuple[pa.Table, str, str]:
    """Columns of several kinds and a target that none of them has anything to do with."""
    rng = np.random.default_rng(seed)
    rows = int(np.exp(rng.uniform(np.log(LEAST), np.log(MOST))))
    columns = {f"x{i}": column(rng, rows) for i in range(rng.integers(1, 13))}
    task, y = target(rng, rows)
    size = "below 100" if rows < 100 else "100 and more"
    return pa.table(columns | {"y": y}), task, size


def column(rng: np.random.Generator, rows: int) -> pa.Array:
    """Numbers, skewed numbers, words, yes and no, each perhaps with gaps."""
    values: Any = [
        lambda: rng.normal(size=rows),
        lambda: rng.lognormal(0, 2, rows),
        lambda: rng.integers(0, 10, rows),
        lambda: rng.choice(list("abcdefg")[: rng.integers(2, 8)], rows),
        lambda: rng.random(rows) < rng.uniform(0.1, 0.9),
    ][rng.integers(5)]()
    gaps = rng.random(rows) < (0.15 if rng.random() < 0.3 else 0.0)
    return pa.array([None if gap else v for v, gap in zip(values.tolist(), gaps, strict=True)])


def target(rng: np.random.Generator, rows: int) -> tuple[str, pa.Array]:
    """Even or uneven classes, or numbers with light, skewed or heavy tails."""
    if rng.random() < 0.6:
        classes = int(rng.integers(2, 5 if rows >= 60 else 3))
        shares = (
            np.full(classes, 1 / classes) if rng.random() < 0.5 else rng.dirichlet([4] * classes)
        )
        least = np.repeat(np.arange(classes), 3)  # every class is there
        codes = rng.permutation(np.append(least, rng.choice(classes, rows - len(least), p=shares)))
        return "classification", pa.array([f"class {c}" for c in codes])
    drawn = [rng.normal(size=rows), rng.lognormal(0, 1, rows), rng.standard_t(2.5, rows)]
    return "regression", pa.array(drawn[rng.integers(3)])


def outcome_of(data: Any, target_column: str, **settings: Any) -> tuple[Problem, FitOutcome]:
    """Carry out the method, but for its report."""
    with tempfile.TemporaryDirectory() as place:
        run_folder = Path(place)
        quick = {"boosting_rounds": 30, "preflight_seconds": 0, "run": run_folder / "run"}
        plan = FitPlan(data=data, target=target_column, **(quick | settings))
        problem = pose_problem(open_data(plan))
        stages = Stages(run_folder, problem.fingerprint)
        return problem, contest(problem, RunContext(run_folder, stages, Narrator()))


def recommended(table: pa.Table, seed: int) -> str:
    """Key of the contender that is recommended."""
    found = outcome_of(table, "y", seed=seed, model="mlp", settings=SETTINGS)[1]
    return found.verdict.recommended


def recommended_model(name: str) -> str:
    """Name of the contender that is recommended for a real table, and its score."""
    if name == "iris":
        from sklearn.datasets import load_iris

        iris = load_iris()
        columns = {f"x{i}": iris.data[:, i] for i in range(4)}
        table = pa.table(columns | {"y": iris.target_names[iris.target].tolist()})
        problem, outcome = outcome_of(table, "y")
    else:
        file, column_name = REAL[name]
        header = not column_name.startswith("column_")
        problem, outcome = outcome_of(folder() / file, column_name, header=header)
    metric, shown = problem.metric, outcome.recommended.shown
    low, high = shown.interval or (float("nan"), float("nan"))
    return f"{shown.name}, {metric} {shown.scores[metric]:.3f} ({low:.3f} to {high:.3f})"


def rates(found: Counter[tuple[str, str, bool]]) -> list[list[str]]:
    """Rows of the table: each task and size, and all together."""
    kinds = sorted({(task, size) for task, size, _ in found})
    rows = [[*kind, found[*kind, False] + found[*kind, True], found[*kind, True]] for kind in kinds]
    rows.append(["all", "", sum(r[2] for r in rows), sum(r[3] for r in rows)])
    return [[t, s, str(n), f"{wrong} ({100 * wrong / max(n, 1):.1f} %)"] for t, s, n, wrong in rows]
