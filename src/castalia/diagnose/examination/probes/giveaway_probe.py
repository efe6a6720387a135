"""One column that alone gives the answer, while all the others together do not."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.tree import DecisionTreeClassifier

from castalia.diagnose.examination import effort
from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.table_models import Table, one_thread
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit

__all__ = ["giveaway"]

NAME = "telling-column"
LEAST_ROWS = 40
MOST_COLUMNS = 300


@one_thread()
def giveaway(subject: Subject) -> Outcome:
    """Try each column alone, and the rest without the best one."""
    X, y, task = subject.table, subject.labels, subject.task
    if y is None or y.ndim != 1 or task not in ("binary", "multiclass", "regression"):
        return saw(NAME, {})
    if len(y) < LEAST_ROWS or not 2 <= X.shape[1] <= MOST_COLUMNS or subject.tokens:
        return skipped(NAME, "columns one at a time need a table of some rows and columns.")
    X = Table(X)(X) if X.shape[1] <= effort.MOST_COLUMNS else np.nan_to_num(X)
    classes = task != "regression"
    if classes and len(np.unique(y)) < 2:
        return saw(NAME, {})
    score = _by_class if classes else _by_value
    alone = np.array([score(column, y) for column in X.T])
    best = int(alone.argmax())
    numbers = {"best column": best, "alone": float(alone[best])}
    if alone[best] < limit("examine.column_alone"):
        return saw(NAME, numbers)
    others = _others(np.delete(X, best, axis=1), y, classes, subject.seed)
    numbers["others"] = others
    if others >= limit("examine.column_others"):
        return saw(NAME, numbers)
    copy = _gap(X[:, best], y) >= limit("examine.column_gap") if classes else True
    return saw(NAME, numbers, [_giveaway(best, float(alone[best]), others, copy)])


def _by_class(column: np.ndarray, y: np.ndarray) -> float:
    """Return the balanced accuracy of a tree with one leaf a class, learned on every other row."""
    count = len(np.unique(y))
    tree = DecisionTreeClassifier(
        max_leaf_nodes=max(2, count), class_weight="balanced", random_state=0
    )
    order = np.random.default_rng(0).permutation(len(y))
    a, b = order[::2], order[1::2]
    wrong = tree.fit(column[a, None], y[a]).predict(column[b, None]) != y[b]
    return 1 - float(np.mean([wrong[y[b] == label].mean() for label in np.unique(y[b])]))


def _by_value(column: np.ndarray, y: np.ndarray) -> float:
    """Return the squared correlation."""
    if column.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.corrcoef(column, y)[0, 1] ** 2)


def _others(X: np.ndarray, y: np.ndarray, classes: bool, seed: int) -> float:
    """Return how well the rest does out of sample: accuracy or r^2 of bagged trees."""
    kind = ExtraTreesClassifier if classes else ExtraTreesRegressor
    model = kind(60, bootstrap=True, oob_score=True, random_state=seed, min_samples_leaf=2)
    return float(model.fit(X, y).oob_score_)


def _gap(column: np.ndarray, y: np.ndarray) -> float:
    """Return the smallest gap between classes along a column, as a share of its range."""
    order = np.argsort(column, kind="stable")
    change = np.flatnonzero(np.diff(y[order]) != 0)
    spread = float(np.ptp(column))
    if spread == 0 or len(change) == 0:
        return 0.0
    return float(np.min(column[order][change + 1] - column[order][change]) / spread)


def _giveaway(column: int, alone: float, others: float, copy: bool) -> Finding:
    how = "as a copy of it would" if copy else "though not as a plain copy"
    return finding(
        "CST206",
        "warning" if copy else "info",
        0.85 if copy else 0.4,
        f"Column {column} alone gives the target, {how}; the others together do not.",
        f"Drop column {column} unless it is known before the target is.",
        Evidence(f"score of column {column} alone", alone, limit("examine.column_alone")),
        Evidence("score of all others", others, limit("examine.column_others"), above=False),
        where=f"column {column}",
    )
