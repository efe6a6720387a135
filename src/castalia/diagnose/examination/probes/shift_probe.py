"""Whether a classifier can tell training rows from validation rows."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.probes.column_probe import some
from castalia.diagnose.examination.table_models import Table, one_thread
from castalia.diagnose.finding_record import Evidence, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["shift"]

NAME = "shift"
LEAST_ROWS = 20
MOST_ROWS = 800  # of each side


@one_thread()
def shift(subject: Subject) -> Outcome:
    """Tell the sides apart, out of sample, and name the columns that do it."""
    if subject.held_table is None:
        return skipped(NAME, "without validation data, a shift (CST208) cannot be found.")
    a, b = subject.table, subject.held_table
    if min(len(a), len(b)) < LEAST_ROWS:
        return skipped(NAME, "too few rows to tell a shift.")
    source = np.random.default_rng(subject.seed)
    n = min(MOST_ROWS, len(a), len(b))
    a, b = (rows[source.permutation(len(rows))[:n]] for rows in (a, b))
    X, side = np.concatenate([a, b]), np.repeat([0, 1], n)
    Z = Table(X, subject.seed)(X)
    auc = max(_linear(Z, side), _trees(Z, side, subject.seed))
    error = _standard_error(auc, n, n)
    numbers = {"AUC": auc, "standard error": error}
    if auc < limit("examine.shift_auc") or auc - limit("examine.sure") * error < limit(
        "examine.shift_sure"
    ):
        return saw(NAME, numbers)
    alone = _alone(X, side)
    tell = np.argsort(-alone)[:3]
    below = float(alone.max()) - limit("examine.shift_column_by")
    tell = tell[alone[tell] > max(limit("examine.shift_column"), below)]
    named = not subject.tokens and subject.x.ndim == 2 and len(tell) > 0
    verb = "differs" if len(tell) == 1 else "differ"
    moved = f"; {some(tell)} {verb} most" if named else ""
    found = finding(
        "CST208",
        "error" if auc > limit("examine.shift_error") else "warning",
        0.9 if auc > limit("examine.shift_clear") else 0.75,
        f"A classifier separates training rows from validation rows{moved}.",
        "Split at random, or inspect what differs"
        + (
            f" in {some(tell)} (means {_means(a, tell)} and {_means(b, tell)})."
            if named
            else " between the two."
        ),
        Evidence("AUC of a classifier of the two sides", auc, limit("examine.shift_auc")),
        Evidence("its standard error", error),
        where=some(tell) if named else None,
    )
    return saw(NAME, numbers, [found])


def _linear(Z: np.ndarray, side: np.ndarray) -> float:
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    model = LogisticRegression(C=0.1, max_iter=50, tol=1e-2)
    predicted = cross_val_predict(model, Z, side, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(side, predicted))


def _trees(Z: np.ndarray, side: np.ndarray, seed: int) -> float:
    """Bagged trees tell each row by those that have not seen it."""
    model = ExtraTreesClassifier(
        80, bootstrap=True, oob_score=True, min_samples_leaf=3, random_state=seed
    )
    predicted = model.fit(Z, side).oob_decision_function_[:, 1]
    return float(roc_auc_score(side, np.nan_to_num(predicted, nan=0.5)))


def _standard_error(auc: float, n: int, m: int) -> float:
    """Return the standard error of an AUC (1982, Hanley, McNeil, Radiology 143)."""
    a = auc / (2 - auc) - auc**2
    b = 2 * auc**2 / (1 + auc) - auc**2
    variance = (auc * (1 - auc) + (n - 1) * a + (m - 1) * b) / (n * m)
    return float(max(variance, 0.25 / (n + m) ** 2) ** 0.5)


def _alone(X: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Return how well each column alone separates the sides."""
    X = np.nan_to_num(X)
    found = np.array([roc_auc_score(side, column) for column in X.T])
    # A column whose spread has changed separates them by its distance from the middle.
    spread = np.abs(X - np.median(X, axis=0))
    other = np.array([roc_auc_score(side, column) for column in spread.T])
    return np.maximum.reduce([found, 1 - found, other, 1 - other])


def _means(X: np.ndarray, which: np.ndarray) -> str:
    return ", ".join(number(float(np.nanmean(X[:, i])), 3) for i in which)
