"""Forgetting: digits learnt two at a time, and what is left of the first ones."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.dense import MLPClassifier
from castalia.models.strategies import ContinualLearning
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, caption, whole_ticks

__all__ = ["run"]

METHODS = {"naive": "nothing kept", "ewc": "elastic weights", "replay": "kept rows"}


def run(*, quick: bool = False) -> Outcome:
    """Learn the tasks one after the other in three ways."""
    X, y = load_digits(return_X_y=True)
    kept = y < (6 if quick else 10)
    X, y = X[kept] / 16, y[kept]
    net = MLPClassifier(
        hidden=(64,), epochs=8 if quick else 20, lr=0.01, training=Training(validation=0)
    )
    tables = {}
    for method in METHODS:
        model = ContinualLearning(net, method=method, random_state=0).fit(X, y, groups=y // 2)
        tables[method] = np.asarray(model.table_)
    figure, (left, right) = panels(2, (9, 3.6))
    for (method, table), colour in zip(tables.items(), COLOURS, strict=False):
        tasks = np.arange(1, len(table) + 1)
        left.plot(tasks, table[:, 0], "o-", ms=4, color=colour, label=METHODS[method])
        mean = [table[t, : t + 1].mean() for t in range(len(table))]
        right.plot(tasks, mean, "o-", ms=4, color=colour, label=METHODS[method])
    left.set(xlabel="tasks learnt", ylabel="right on the first task", ylim=(-0.03, 1.03))
    right.set(xlabel="tasks learnt", ylabel="right on all tasks so far", ylim=(-0.03, 1.03))
    caption(left)
    whole_ticks(left.xaxis)
    whole_ticks(right.xaxis)
    numbers = {f"first task, {METHODS[m]}": float(table[-1, 0]) for m, table in tables.items()}
    numbers |= {f"all tasks, {METHODS[m]}": float(table[-1].mean()) for m, table in tables.items()}
    lost, kept_well = (100 * numbers[f"first task, {METHODS[m]}"] for m in ("naive", "replay"))
    said = (
        f"At the end the first two digits are known to {lost:.0f} % where nothing was kept and to "
        f"{kept_well:.0f} % with kept rows."
    )
    return Outcome(figure, numbers, said)
