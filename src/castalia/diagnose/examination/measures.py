"""From outputs to predictions, and from predictions to the error of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "difference",
    "labels",
    "predictions",
    "probabilities",
    "row_errors",
    "standard_error",
]


def labels(task: str | None, y: Tensor) -> np.ndarray | None:
    """Return the targets as scikit-learn wants them; None for tasks it has no model for."""
    if task in ("binary", "multiclass"):
        if y.ndim == 2 and y.shape[1] > 1:  # one-hot, or probabilities of classes
            return y.argmax(1).cpu().numpy()
        flat = y.reshape(len(y), -1)
        if flat.shape[1] != 1:
            return None
        return flat[:, 0].cpu().numpy().astype(np.int64)
    if task == "multilabel":
        return y.reshape(len(y), -1).cpu().numpy().astype(np.int64)
    if task == "regression":
        found = y.reshape(len(y), -1).cpu().double().numpy()
        return found[:, 0] if found.shape[1] == 1 else found
    return None


def predictions(task: str | None, kind: str | None, outputs: Any, y: Tensor) -> np.ndarray | None:
    """Return predictions comparable with ``labels``; None where outputs are something else."""
    if not isinstance(outputs, Tensor) or len(outputs) != len(y):
        return None
    out = outputs.detach()
    if task in ("binary", "multiclass"):
        if out.ndim == 2 and out.shape[1] > 1:
            return out.argmax(1).cpu().numpy()
        flat = out.reshape(len(out), -1)
        if flat.shape[1] != 1:
            return None
        return (flat[:, 0] > _middle(kind, flat)).long().cpu().numpy()
    if task == "multilabel":
        flat = out.reshape(len(out), -1)
        return (flat > _middle(kind, flat)).long().cpu().numpy()
    if task == "regression":
        values: np.ndarray = out.reshape(len(out), -1).cpu().double().numpy()
        if values.shape[1] != y.reshape(len(y), -1).shape[1]:
            return None
        return values[:, 0] if values.shape[1] == 1 else values
    return None


def _middle(kind: str | None, out: Tensor) -> float:
    """Return the output that stands for even odds."""
    if kind == "bce-logits":
        return 0.0
    inside = bool(((out >= 0) & (out <= 1)).all())
    return 0.5 if kind in ("bce", "squared") or inside else 0.0


def probabilities(task: str | None, kind: str | None, outputs: Any) -> np.ndarray | None:
    """Return class probabilities (rows, classes), where the outputs are meant as such."""
    if not isinstance(outputs, Tensor) or task not in ("binary", "multiclass"):
        return None
    out = outputs.detach().cpu().double().reshape(len(outputs), -1)
    if out.shape[1] > 1 and kind == "nll":
        table = torch.softmax(out, 1)  # leaves the logarithms of probabilities as they are
    elif out.shape[1] == 1 and kind == "bce-logits":
        table = torch.cat([1 - out.sigmoid(), out.sigmoid()], 1)
    elif out.shape[1] == 1 and kind == "bce":
        table = torch.cat([1 - out, out], 1)
    else:
        return None
    return table.cpu().numpy()


def row_errors(
    task: str | None, truth: np.ndarray | None, predicted: np.ndarray | None
) -> np.ndarray | None:
    """Return the error of each row: wrong or not, or the squared distance."""
    if truth is None or predicted is None or truth.shape != predicted.shape:
        return None
    wrong = np.square(truth - predicted) if task == "regression" else truth != predicted
    return wrong.reshape(len(truth), -1).mean(axis=1).astype(np.float64)


def standard_error(values: np.ndarray) -> float:
    """Return the standard error of a mean; never below that of one row being different."""
    n = max(1, len(values))
    spread = float(np.std(values)) / n**0.5
    return max(spread, float(np.max(np.abs(values), initial=0.0)) / n)


def difference(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Return the mean of a - b over the same rows, in standard errors too."""
    gap = a - b
    error = standard_error(gap)
    mean = float(gap.mean())
    return mean, mean / error if error else 0.0
