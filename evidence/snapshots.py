"""One training as several members: snapshots beside the single network and five trainings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from castalia.models.dense import MLPClassifier, MLPRegressor
from castalia.models.ensemble import DeepEnsemble, SnapshotEnsemble
from castalia.train import Training
from evidence.rows import print_table, spread

SEEDS, EPOCHS, MEMBERS = 5, 120, 5


def tables() -> Iterator[tuple[str, np.ndarray, np.ndarray, type]]:
    """Name, rows, target and kind of network of small tables."""
    for name in ("breast_cancer", "wine", "digits"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield name, X, y, MLPClassifier
    yield "moons", *datasets.make_moons(400, noise=0.3, random_state=0), MLPClassifier
    yield "diabetes", *datasets.load_diabetes(return_X_y=True), MLPRegressor
    yield "friedman", *datasets.make_friedman1(400, noise=1.0, random_state=0), MLPRegressor


def models(kind: type, seed: int) -> dict[str, Callable[[], Any]]:
    """What is compared: the same network, epochs and rate for all."""

    def net(schedule: str | None = None) -> Any:
        training = Training(validation=0, schedule=schedule, verbose=False, watch=False)
        own = {"hidden": (32,), "epochs": EPOCHS, "lr": 0.01, "random_state": seed}
        return kind(**own, training=training)

    return {
        "one network": net,
        "its rate falls once": lambda: net("cosine"),
        "SnapshotEnsemble": lambda: SnapshotEnsemble(net(), members=MEMBERS, random_state=seed),
        "DeepEnsemble": lambda: DeepEnsemble(net("cosine"), members=MEMBERS, random_state=seed),
    }


def run(quick: bool = False) -> None:
    """Accuracy, or R², on two fifths of the rows, mean ± std over splits and seeds."""
    seeds = 1 if quick else SEEDS
    rows = []
    for name, X, y, kind in tables():
        found: dict[str, list[float]] = {}
        for seed in range(seeds):
            labels = y if kind is MLPClassifier else None
            parts = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=labels)
            X_train, X_test, y_train, y_test = parts
            for title, make in models(kind, seed).items():
                score = make().fit(X_train, y_train).score(X_test, y_test)
                found.setdefault(title, []).append(score)
        rows.append([name, *(spread(scores, 3) for scores in found.values())])
    print_table("Snapshots", ["table", *found], rows)
