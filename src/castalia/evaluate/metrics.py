"""The scores the library reports, by name, from scikit-learn's functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.evaluate.label_columns import columns, positions, probabilities
from castalia.evaluate.scorers import scorer_names
from castalia.utils.renamed_arguments import renamed
from castalia.utils.text import did_you_mean, listing

__all__ = [
    "METRICS",
    "Metric",
    "calibration_error",
    "coverage_accuracy",
    "higher_is_better",
    "metric",
    "primary_metric",
    "scores",
    "top_calibration_error",
]


@dataclass(frozen=True)
class Metric:
    """What one needs to show a score: its name for people, its direction and its unit."""

    name: str
    label: str
    higher: bool
    fraction: bool = True  # lies between 0 and 1 in ordinary cases; shown with three decimals
    decimals: int | None = None  # shown of others; None: four digits in all


METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        Metric("accuracy", "Accuracy", True),
        Metric("balanced_accuracy", "Balanced accuracy", True),
        Metric("f1", "F1 (macro)", True),
        Metric("roc_auc", "ROC AUC", True),
        Metric("log_loss", "Log loss", False),
        Metric("calibration_error", "Calibration error", False),
        Metric("r2", "R²", True),
        Metric("rmse", "RMSE", False, fraction=False),
        Metric("mae", "MAE", False, fraction=False),
        Metric("mse", "MSE", False, fraction=False),
        Metric("mase", "MASE", False, fraction=False, decimals=3),
        Metric("bits_per_character", "Bits per character", False, fraction=False, decimals=3),
        Metric("perplexity", "Perplexity", False, fraction=False),
        Metric("bleu", "BLEU", True, fraction=False, decimals=1),
    )
}

_PRIMARY = {"classification": "accuracy", "regression": "r2"}


def metric(name: str) -> Metric:
    """Look up a metric by name; scorers of scikit-learn are known too, and higher is better.

    Examples
    --------
    >>> metric("roc_auc").label
    'ROC AUC'
    >>> metric("average_precision").higher
    True
    """
    if name in METRICS:
        return METRICS[name]
    known = {scorer for task in _PRIMARY for scorer in scorer_names(task)}
    if name not in known:
        raise InvalidParameter(
            f"evaluate: metric must be {listing(METRICS, most=20)}, or a scorer of scikit-learn; "
            f"got {name!r}.{did_you_mean(str(name), [*METRICS, *known])}"
        )
    share = not name.startswith(("neg_", "d2_", "matthews", "explained", "max_error"))
    return Metric(name, name.replace("_", " "), True, fraction=share)


def primary_metric(task: str) -> str:
    """Name the metric that decides comparisons for a task.

    Examples
    --------
    >>> primary_metric("classification"), primary_metric("regression")
    ('accuracy', 'r2')
    """
    if task not in _PRIMARY:
        raise InvalidParameter(
            f"evaluate: `task` must be {listing(_PRIMARY)}; got {task!r}."
            f"{did_you_mean(str(task), _PRIMARY)}"
        )
    return _PRIMARY[task]


def higher_is_better(name: str) -> bool:
    """Say whether a larger value of the metric is the better one.

    Examples
    --------
    >>> higher_is_better("accuracy"), higher_is_better("rmse")
    (True, False)
    """
    return metric(name).higher


@renamed(prediction="y_pred")
def scores(
    task: str,
    y_true: Any,
    y_pred: Any,
    probability: Any = None,
    classes: Sequence[Any] | None = None,
) -> dict[str, float]:
    """Score predictions on every metric of the task that is defined for them.

    Parameters
    ----------
    task
        ``"classification"`` or ``"regression"``.
    y_true, y_pred
        One label or number per row.
    probability
        Class probabilities, (n, K), or (n,) for the second of two classes. Adds ``log_loss``,
        ``roc_auc`` (one class against the rest, averaged over the classes present; left out when
        only one is) and ``calibration_error``.
    classes
        Labels in column order; the sorted labels of ``y_true`` by default.

    Examples
    --------
    >>> scores("classification", [0, 1, 1, 0], [0, 1, 0, 0])["accuracy"]
    0.75
    >>> scores("regression", [1.0, 2.0, 3.0], [1.0, 2.0, 4.0])["r2"]
    0.5
    """
    primary_metric(task)  # refuses unknown tasks
    if len(y_true) != len(y_pred):
        raise ShapeMismatch(
            f"scores: `y_pred` must have one entry per row of `y_true` ({len(y_true)}); "
            f"got {len(y_pred)}."
        )
    if task == "regression":
        return _regression(np.asarray(y_true, dtype=float), np.asarray(y_pred, dtype=float))
    found = _decisions(np.asarray(y_true), np.asarray(y_pred))
    if probability is not None:
        table = probabilities(probability, "scores")
        labels = columns(y_true, table.shape[1], classes, "scores")
        found |= _beliefs(positions(y_true, labels, "scores"), table)
    return found


def _regression(y: np.ndarray, prediction: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    return {
        "r2": float(r2_score(y, prediction)) if len(y) > 1 else float("nan"),
        "rmse": float(root_mean_squared_error(y, prediction)),
        "mae": float(mean_absolute_error(y, prediction)),
    }


def _decisions(y: np.ndarray, prediction: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import accuracy_score, f1_score, recall_score

    present = np.unique(y)  # averaging recall over these is balanced accuracy, without its warning
    return {
        "accuracy": float(accuracy_score(y, prediction)),
        "balanced_accuracy": float(
            recall_score(y, prediction, labels=present, average="macro", zero_division=0)
        ),
        "f1": float(f1_score(y, prediction, average="macro", zero_division=0)),
    }


def _beliefs(code: np.ndarray, table: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import log_loss, roc_auc_score

    found = {"log_loss": float(log_loss(code, table, labels=np.arange(table.shape[1])))}
    present = np.unique(code)
    if len(present) > 1:
        # Both one-against-rest areas of two classes are equal, so binary needs no case of its own.
        areas = [roc_auc_score(code == k, table[:, k]) for k in present]
        found["roc_auc"] = float(np.mean(areas))
    found["calibration_error"] = top_calibration_error(code, table)
    return found


def calibration_error(
    y_true: Any, probability: Any, bins: int = 15, classes: Sequence[Any] | None = None
) -> float:
    """Return the expected calibration error of the top class.

    Rows are put into equal bins by the probability of the predicted class; the error is the mean
    over rows of |accuracy in the bin - mean confidence in the bin|.

    Parameters
    ----------
    y_true
        One label per row.
    probability
        Class probabilities, (n, K), or (n,) for the second of two classes.
    bins
        Number of equal bins between 0 and 1.
    classes
        Labels in column order; the sorted labels of ``y_true`` by default.

    References
    ----------
    2017, Guo, Pleiss, Sun, Weinberger, On calibration of modern neural networks, arXiv 1706.04599.

    Examples
    --------
    >>> round(calibration_error([0, 1, 1, 1], [0.25, 0.75, 0.75, 0.75]), 3)
    0.25
    """
    if bins < 1:
        raise InvalidParameter(f"calibration_error: `bins` must be at least 1; got {bins!r}.")
    table = probabilities(probability, "calibration_error")
    labels = columns(y_true, table.shape[1], classes, "calibration_error")
    return top_calibration_error(positions(y_true, labels, "calibration_error"), table, bins)


def top_calibration_error(code: np.ndarray, table: np.ndarray, bins: int = 15) -> float:
    """Return the calibration error of the top class, from class numbers and (n, K)."""
    confidence = table.max(axis=1)
    hit = (table.argmax(axis=1) == code).astype(float)
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    # |sum of hits - sum of confidence| per bin already carries the bin's weight.
    gap = np.bincount(place, weights=hit - confidence, minlength=bins)
    return float(np.abs(gap).sum() / len(code))


@renamed(prediction="y_pred")
def coverage_accuracy(y_true: Any, y_pred: Any, confidence: Any) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy on the rows the model is surest of, for every share of rows it could answer.

    Rows of equal confidence are answered together or not at all, so there is one point per
    distinct confidence and the order of ties does not matter.

    Parameters
    ----------
    y_true, y_pred
        One label per row.
    confidence
        One number per row; larger is surer.

    Returns
    -------
    coverage, accuracy
        Arrays of equal length, coverage rising to 1.

    Examples
    --------
    >>> coverage, accuracy = coverage_accuracy([0, 0, 1, 1], [0, 0, 1, 0], [0.9, 0.9, 0.8, 0.6])
    >>> coverage.tolist(), accuracy.tolist()
    ([0.5, 0.75, 1.0], [1.0, 1.0, 0.75])
    """
    sure = np.asarray(confidence, dtype=float)
    hit = np.asarray(y_true) == np.asarray(y_pred)
    if np.shape(hit) != sure.shape or sure.ndim != 1:
        raise ShapeMismatch(
            f"coverage_accuracy: `y_true`, `y_pred` and `confidence` must have one entry per "
            f"row; got shapes {np.shape(y_true)}, {np.shape(y_pred)} and {sure.shape}."
        )
    if len(sure) == 0 or np.isnan(sure).any():
        raise InvalidData("coverage_accuracy: `confidence` must hold numbers, at least one.")
    order = np.argsort(-sure, kind="stable")
    ordered = sure[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # ends of tied groups
    answered = last + 1
    return answered / len(sure), np.cumsum(hit[order])[last] / answered
