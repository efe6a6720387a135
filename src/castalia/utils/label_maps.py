"""Counting agreement of label maps without ever holding more than a chunk of them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from castalia.errors import InvalidData, ShapeMismatch

__all__ = ["Maps", "as_maps", "confusion", "iou_from", "map_values"]

CHUNK = 1 << 22  # pixels

Maps = np.ndarray | list[np.ndarray]  # (N, H, W), or (H, W) each where sizes differ


def as_maps(maps: Any) -> Maps:
    """Return label maps as an array (N, H, W), or a list of arrays where sizes differ."""
    if hasattr(maps, "detach"):
        maps = maps.detach().cpu().numpy()
    if isinstance(maps, np.ndarray) and maps.dtype.kind != "O":
        return maps
    found = [np.asarray(one.detach().cpu() if hasattr(one, "detach") else one) for one in maps]
    return np.stack(found) if len({one.shape for one in found}) == 1 else found


def _chunks(maps: Maps) -> Iterator[np.ndarray]:
    """Yield all labels, flat, a chunk at a time."""
    for whole in [maps] if isinstance(maps, np.ndarray) else maps:
        flat = whole.reshape(-1)
        for start in range(0, flat.size, CHUNK):
            yield flat[start : start + CHUNK]


def map_values(*all_maps: Any) -> np.ndarray:
    """Return the sorted values that occur in any of the maps."""
    found = [np.unique(chunk) for maps in all_maps for chunk in _chunks(as_maps(maps))]
    return np.unique(np.concatenate(found)) if found else np.array([], dtype=int)


def confusion(
    owner: str,
    y_true: Any,
    y_pred: Any,
    labels: Sequence[Any] | np.ndarray | None = None,
    void: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Count pixels by true and predicted label.

    Returns
    -------
    labels : ndarray, (K,)
    counts : ndarray, (K, K + 1)
        True label by predicted label; the last column counts predictions of no label.
    """
    true, predicted = as_maps(y_true), as_maps(y_pred)
    _same_shapes(owner, true, predicted)
    if labels is None:
        labels = map_values(true, predicted)
        labels = labels if void is None else labels[labels != void]
    labels = np.asarray(labels)
    k = len(labels)
    order = np.argsort(labels)
    counts = np.zeros(k * (k + 1), dtype=np.int64)
    for t, p in zip(_chunks(true), _chunks(predicted), strict=True):
        counted = slice(None) if void is None else t != void
        t, p = t[counted], p[counted]
        rows, columns = _codes(t, labels, order), _codes(p, labels, order)
        if (rows == k).any():
            raise InvalidData(
                f"{owner}: true labels must be among {labels.tolist()[:12]}; got "
                f"{t[rows == k][0].item()!r}. Give it as `void` if it should not count."
            )
        counts += np.bincount(rows * (k + 1) + columns, minlength=len(counts))
    return labels, counts.reshape(k, k + 1)


def _codes(values: np.ndarray, labels: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the position of each value among the labels, K for those that are none."""
    if not len(labels):
        return np.zeros(len(values), dtype=np.int64)
    place = np.searchsorted(labels, values, sorter=order).clip(max=len(labels) - 1)
    return np.where(labels[order][place] == values, order[place], len(labels))


def _same_shapes(owner: str, true: Any, predicted: Any) -> None:
    if len(true) != len(predicted):
        raise ShapeMismatch(
            f"{owner}: `y_pred` must have one map for each of the {len(true):,} of `y_true`; got "
            f"{len(predicted):,}."
        )
    both_arrays = isinstance(true, np.ndarray) and isinstance(predicted, np.ndarray)
    if both_arrays and true.shape == predicted.shape:
        return
    for i, (t, p) in enumerate(zip(true, predicted, strict=True)):
        if np.shape(t) != np.shape(p):
            raise ShapeMismatch(
                f"{owner}: maps of `y_true` and `y_pred` must have the same size; number {i} has "
                f"{np.shape(t)} and {np.shape(p)}. Enlarge predictions to the size of the labels."
            )


def iou_from(counts: np.ndarray) -> np.ndarray:  # (K, K + 1)
    """Return intersection over union of every class, NaN where a class occurs nowhere."""
    k = len(counts)
    hits = np.diagonal(counts).astype(float)
    union = counts.sum(axis=1) + counts[:, :k].sum(axis=0) - hits
    return np.divide(hits, union, out=np.full(k, np.nan), where=union > 0)
