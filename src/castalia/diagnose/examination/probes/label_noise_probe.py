"""Wrong labels: confident disagreement out of sample.

In a hard but clean problem errors sit near the boundary, so the half of the rows about which a
model is most confident has far fewer of them. Wrong labels lie anywhere: their rate among the
confident half stays near the rate over all. The harder a clean problem is, the nearer the two
rates come (two normal classes: 0.2 of the rate at a third of the error of guessing, 0.5 at a half,
0.7 at 0.6), so the bar rises with the error. Of bagged trees and a linear model the better one
speaks.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.table_models import Table, one_thread
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["label_noise"]

NAME = "label-noise"
LEAST_ROWS = 100
SHOWN = 20


@one_thread()
def label_noise(subject: Subject) -> Outcome:
    """Compare errors among the confident half with those among all rows, out of sample."""
    y = subject.labels
    if y is None or subject.task not in ("binary", "multiclass"):
        return saw(NAME, {})
    classes, counts = np.unique(y, return_counts=True)
    if len(y) < LEAST_ROWS or len(classes) < 2:
        return skipped(NAME, "too few rows or classes to tell wrong labels (CST205).")
    kept = np.isin(y, classes[counts >= 5])
    X, y = subject.table[kept], y[kept]
    tables = _predictions(Table(X, subject.seed)(X), y, subject.seed)
    best = min(tables, key=lambda table: _rates(table, y)[0])
    overall, confident = _rates(best, y)
    guess = 1 - float(np.unique(y, return_counts=True)[1].max() / len(y))
    ratio = confident / max(overall, 1e-12)
    numbers = {"error": overall, "error of the confident half": confident, "ratio": ratio}
    bar = _ratio_bar(overall / max(guess, 1e-12), ratio, confident * (len(y) // 2))
    if (
        overall > limit("examine.noise_signal") * guess
        or confident < _bar(len(y) // 2)
        or ratio < bar
    ):
        return saw(NAME, numbers)
    rows = subject.rows.index[np.flatnonzero(kept)[_suspects(best, y)]]
    return saw(NAME, numbers | {"suspects": rows.tolist()}, [_noise(confident, ratio, bar, rows)])


def _predictions(X: np.ndarray, y: np.ndarray, seed: int) -> list[np.ndarray]:
    """Return class probabilities out of sample, from trees and from a linear model."""
    _, code = np.unique(y, return_inverse=True)
    trees = ExtraTreesClassifier(
        80, bootstrap=True, oob_score=True, min_samples_leaf=2, random_state=seed
    ).fit(X, code)
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    line = cross_val_predict(
        LogisticRegression(C=0.3, max_iter=60, tol=1e-2), X, code, cv=folds, method="predict_proba"
    )
    return [np.nan_to_num(trees.oob_decision_function_), line]


def _rates(table: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the error rates over all rows and over the confident half."""
    _, code = np.unique(y, return_inverse=True)
    wrong = table.argmax(1) != code
    half = np.argsort(-table.max(1), kind="stable")[: len(y) // 2]
    return float(wrong.mean()), float(wrong[half].mean())


def _bar(n: int) -> float:
    """Return the rate that must be exceeded, for a few rows higher by their sampling error."""
    p = limit("examine.noise_rate")
    return p + limit("examine.sure") * (p * (1 - p) / max(n, 1)) ** 0.5


def _ratio_bar(hardness: float, ratio: float, count: float) -> float:
    """Return the ratio that a clean problem of this hardness stays below, seen on so many errors.

    >>> round(_ratio_bar(0.1, 0.8, 100), 2), round(_ratio_bar(0.6, 0.8, 100), 2)
    (0.55, 0.8)
    """
    chance = 1.25 * ratio / max(count, 1.0) ** 0.5
    return max(limit("examine.noise_ratio"), hardness + limit("examine.noise_margin") + chance)


def _suspects(table: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return rows whose label is least believed where another is believed most."""
    _, code = np.unique(y, return_inverse=True)
    doubt = table.max(1) - table[np.arange(len(y)), code]
    order = np.argsort(-doubt, kind="stable")
    return order[doubt[order] > limit("examine.doubt")]


def _noise(rate: float, ratio: float, bar: float, rows: np.ndarray) -> Finding:
    shown = ", ".join(str(int(i)) for i in rows[:SHOWN])
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return finding(
        "CST205",
        "warning",
        0.85 if rate > limit("examine.noise_clear") else 0.75,
        f"About {number(100 * rate, 2)} % of the labels are contradicted out of sample, as often "
        "where models are confident as elsewhere.",
        f"Inspect training rows {shown}{more}.",
        Evidence("error rate of the confident half", rate, limit("examine.noise_rate")),
        Evidence("that rate over the rate of all rows", ratio, bar),
    )
