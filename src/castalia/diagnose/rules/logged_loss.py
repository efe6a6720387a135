"""A loss written by hand, recognised by its values on outputs and targets that were logged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from castalia.diagnose.record import Activation, Head, Record
from castalia.diagnose.thresholds import limit

__all__ = ["by_values"]

LEAST_BATCHES = 3
Rows = tuple[np.ndarray, np.ndarray]
Batch = tuple[np.ndarray, np.ndarray, float]


def by_values(record: Record, head: Head) -> Head:
    """Return the head of a loss whose graph was not recognised, as far as logged rows show it.

    The loss is one whose formula gives the recorded losses; the last activation one whose range
    the outputs keep to.
    """
    kept = list(_logged(record))
    if len(kept) < LEAST_BATCHES:
        return head
    outputs, targets, _ = kept[-1]
    loss, reduction = _formula(kept)
    kind = _range([o for o, _, _ in kept])
    if kind == "sigmoid" and loss not in ("mse", "l1"):
        kind = ""  # logits may well lie between 0 and 1
    chain = head.chain or ((Activation(kind, outputs.shape),) if kind else ())
    head = replace(head, outputs=outputs.shape, targets=targets.shape)
    return replace(head, loss=loss, reduction=reduction, chain=chain)


def _formula(kept: list[Batch]) -> tuple[str, str]:
    """Name the formula, and its reduction, that gives every recorded loss."""
    for name, formula in FORMULAS.items():
        for reduction in ("mean", "sum"):
            if all(_equals(formula, reduction, o, t, loss) for o, t, loss in kept):
                return name, reduction
    return "unknown", "mean"


def _logged(record: Record) -> Iterator[Batch]:
    """Yield outputs, targets and loss of the kept batches, where all are known."""
    rows = record.train
    for step, o, t in zip(rows.steps, rows.outputs, rows.targets, strict=True):
        if o is None or t is None or not len(o) == len(t) > 1 or step >= record.steps:
            continue
        if np.isfinite(record.losses[step]) and np.isfinite(o).all():
            yield o.astype(float), t, record.losses[step]


def _equals(
    formula: Callable[[np.ndarray, np.ndarray], np.ndarray | None],
    reduction: str,
    outputs: np.ndarray,
    targets: np.ndarray,
    loss: float,
) -> bool:
    with np.errstate(all="ignore"):
        values = formula(outputs, targets)
    if values is None or not values.size:
        return False
    value = float(values.mean() if reduction == "mean" else values.sum())
    return abs(value - loss) <= limit("outputs.same_loss") * max(abs(loss), abs(value))


def _range(batches: list[np.ndarray]) -> str:
    """Name the activation whose range all outputs keep to; nothing where they are free."""
    low = min(float(o.min()) for o in batches)
    high = max(float(o.max()) for o in batches)
    if low < 0:
        return ""
    wide = [o for o in batches if o.ndim == 2 and o.shape[1] > 1]
    if wide and all(np.allclose(o.sum(axis=1), 1, atol=limit("rounding.row_sum")) for o in wide):
        return "softmax"
    zeros = float(np.mean([(o == 0).mean() for o in batches]))
    if zeros > limit("outputs.rectified"):
        return "relu"
    return "sigmoid" if low > 0 and high < 1 else ""


def _paired(o: np.ndarray, t: np.ndarray) -> Rows | None:
    return (o.reshape(-1), t.reshape(-1).astype(float)) if o.size == t.size else None


def _squares(o: np.ndarray, t: np.ndarray) -> np.ndarray | None:
    pair = _paired(o, t)
    return None if pair is None else (pair[0] - pair[1]) ** 2


def _distances(o: np.ndarray, t: np.ndarray) -> np.ndarray | None:
    pair = _paired(o, t)
    return None if pair is None else np.abs(pair[0] - pair[1])


def _binary(o: np.ndarray, t: np.ndarray) -> np.ndarray | None:
    pair = _paired(o, t)
    if pair is None or pair[0].min() < 0 or pair[0].max() > 1:
        return None
    p, y = np.clip(pair[0], 1e-12, 1 - 1e-12), pair[1]
    return -(y * np.log(p) + (1 - y) * np.log(1 - p))


def _logistic(o: np.ndarray, t: np.ndarray) -> np.ndarray | None:
    pair = _paired(o, t)
    return None if pair is None else np.logaddexp(0, pair[0]) - pair[0] * pair[1]


def _picked(o: np.ndarray, t: np.ndarray) -> np.ndarray | None:
    whole = o.ndim == 2 and t.ndim == 1 and t.dtype.kind in "iu" and o.shape[1] > 1
    if not whole or t.min() < 0 or t.max() >= o.shape[1]:
        return None
    return -o[np.arange(len(t)), t]


def _cross_entropy(o: np.ndarray, t: np.ndarray) -> np.ndarray | None:
    picked = _picked(o, t)
    return None if picked is None else picked + np.logaddexp.reduce(o, axis=1)


FORMULAS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray | None]] = {
    "mse": _squares,
    "l1": _distances,
    "bce": _binary,
    "bce_logits": _logistic,
    "cross_entropy": _cross_entropy,
    "nll": _picked,
}
