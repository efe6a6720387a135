"""Searches killed at random instants, until they end: is every point there once, and the result the
one of a search that nobody disturbed?

Each search runs in a process forked from this one, which has loaded everything, so that a kill may
fall on any moment of a search and not on its imports. Four kinds take turns: a grid, a random and
a Bayesian search, and a grid that two processes share, both of which are killed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from castalia import MLPClassifier
from castalia.tune import BayesianSearch, GridSearch, RandomSearch, Uniform, Whole
from castalia.tune.engine import Search

__all__ = ["kill_searches", "run"]

X = np.random.default_rng(0).normal(size=(24, 2))
Y = X[:, 0] - 0.5 * X[:, 1]
FOLDS = 3
MOST = 400  # kills of one search


@dataclass
class Slope(RegressorMixin, BaseEstimator):
    """Predicts a times the first column plus b times the second, and notes that it was fitted."""

    a: float = 0.0
    b: int = 0
    diary: str = ""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Slope:
        line = f"{self.a!r} {self.b!r} {float(X[:, 0].sum())!r}\n"
        descriptor = os.open(self.diary, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, line.encode())
        os.close(descriptor)
        self.fitted_ = True
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.a * X[:, 0] + self.b * X[:, 1]


def _grid(study: str, diary: str) -> Search:
    space = {"a": [0.0, 0.5, 1.0, 1.5], "b": [-2, -1, 0]}
    return GridSearch(Slope(diary=diary), space, cv=FOLDS, study=study)


def _random(study: str, diary: str) -> Search:
    model = MLPClassifier(hidden=(2,), epochs=1, random_state=0)
    space = {"lr": Uniform(1e-3, 1e-1, log=True), "batch_size": Whole(4, 16)}
    return RandomSearch(model, space, trials=6, cv=FOLDS, study=study, random_state=1)


def _bayesian(study: str, diary: str) -> Search:
    space = {"a": Uniform(-2, 2), "b": Whole(-3, 3)}
    model = Slope(diary=diary)
    return BayesianSearch(
        model, space, trials=14, cv=FOLDS, prune=True, study=study, random_state=2
    )


KINDS: dict[str, tuple[Callable[[str, str], Search], int]] = {
    "grid": (_grid, 1),
    "random": (_random, 1),
    "bayesian": (_bayesian, 1),
    "shared grid": (_grid, 2),
}


def _fork(make: Callable[[str, str], Search], folder: Path, number: int) -> int:
    """Search in a process of its own, which leaves ``result-NUMBER.json`` when it comes to it."""
    if child := os.fork():
        return child
    code = 1
    try:
        search = _searched(make(str(folder / "study.sqlite"), str(folder / "diary")))
        part = folder / f"part-{number}"
        part.write_text(json.dumps(_outcome(search)))
        part.rename(folder / f"result-{number}.json")
        code = 0
    finally:
        os._exit(code)


def _searched(search: Search) -> Search:
    network = isinstance(search.estimator, MLPClassifier)
    return search.set_params(refit=False).fit(X, (Y > 0).astype(int) if network else Y)


def _outcome(search: Search) -> dict[str, Any]:
    table = search.cv_results_
    columns = [f"split{i}_test_score" for i in range(FOLDS)] + ["mean_test_score"]
    return {
        "params": [{k: v for k, v in p.items() if k != "diary"} for p in table["params"]],
        "state": list(table["state"]),
        "scores": [[repr(float(v)) for v in table[column]] for column in columns],
        "rank": [int(v) for v in table["rank_test_score"]],
        "best": search.best_index_,
    }


def _undisturbed(kind: str, folder: Path) -> tuple[dict[str, Any], float]:
    """Return what a search gives alone, and its seconds."""
    folder.mkdir()
    _searched(KINDS[kind][0](str(folder / "warm-up.sqlite"), str(folder / "warm-up")))
    begun = time.perf_counter()
    os.waitpid(_fork(KINDS[kind][0], folder, 0), 0)
    seconds = time.perf_counter() - begun
    return json.loads((folder / "result-0.json").read_text()), seconds


def _disturbed(
    kind: str, folder: Path, seconds: float, rng: np.random.Generator, most: int
) -> tuple[list[dict[str, Any]], int]:
    """Kill a search again and again until it ends; return its results and the number of kills."""
    make, workers = KINDS[kind]
    folder.mkdir()
    kills = 0
    while True:
        children = [_fork(make, folder, n) for n in range(workers)]
        if kills < most:
            for child in rng.permutation(children):
                time.sleep(rng.uniform(0, 0.4 * seconds))
                kills += _kill(int(child))
        else:
            for child in children:
                os.waitpid(child, 0)
        results = [folder / f"result-{n}.json" for n in range(workers)]
        if all(path.exists() for path in results):
            return [json.loads(path.read_text()) for path in results], kills


def _kill(child: int) -> int:
    """Kill a process that may have ended by itself; return whether it had not."""
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return int(os.WIFSIGNALED(status))


def _repeated(folder: Path) -> int:
    """Return how many folds were fitted more than once."""
    diary = folder / "diary"
    lines = Counter(diary.read_text().splitlines() if diary.exists() else [])
    return sum(lines.values()) - len(lines)


def kill_searches(
    seed: int, *, kills: int | None = None, minutes: float | None = None, each: int = MOST
) -> dict[str, int]:
    """Kill searches until there are enough kills or the time is over, and count what went wrong.

    A search that was killed ``each`` times ends in peace.

    Returns
    -------
    dict
        ``kills`` and ``searches``; ``lost``: points that are missing; ``twice``: points that are
        there more than once; ``different``: searches with another result than the undisturbed one;
        ``repeated``: folds fitted again, at most one a kill.
    """
    rng = np.random.default_rng(seed)
    counts = dict.fromkeys(("kills", "searches", "lost", "twice", "different", "repeated"), 0)
    until = time.monotonic() + 60 * minutes if minutes is not None else float("inf")
    with tempfile.TemporaryDirectory() as place:
        whole = {kind: _undisturbed(kind, Path(place) / kind) for kind in KINDS}
        while counts["kills"] < (kills or 10**9) and time.monotonic() < until:
            kind = list(KINDS)[counts["searches"] % len(KINDS)]
            folder = Path(place) / f"search-{counts['searches']}"
            left = min(each, (kills or 10**9) - counts["kills"])
            found, killed = _disturbed(kind, folder, whole[kind][1], rng, left)
            _judge(counts, found, whole[kind][0])
            counts["kills"] += killed
            counts["searches"] += 1
            counts["repeated"] += _repeated(folder)
    return counts


def _judge(counts: dict[str, int], found: list[dict[str, Any]], whole: dict[str, Any]) -> None:
    expected = Counter(json.dumps(p, sort_keys=True) for p in whole["params"])
    for result in found:
        points = Counter(json.dumps(p, sort_keys=True) for p in result["params"])
        counts["lost"] += (expected - points).total()
        counts["twice"] += (points - expected).total()
        counts["different"] += result != whole


def run(minutes: float, seed: int) -> dict[str, int]:
    """Kill searches for some minutes; see ``kill_searches``."""
    return kill_searches(seed, minutes=minutes)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    begun = time.perf_counter()
    counts = kill_searches(asked.seed, kills=asked.kills)
    words = ", ".join(f"{number} {name}" for name, number in counts.items())
    print(f"{words}; {time.perf_counter() - begun:.0f} s")
    raise SystemExit(int(any(counts[name] for name in ("lost", "twice", "different"))))


if __name__ == "__main__":
    main()
