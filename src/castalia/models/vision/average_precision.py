"""Average precision of detections: how well boxes, ranked by their scores, find the true ones.

Of each class, predictions of all images are ranked. One that overlaps a true box enough finds it;
a true box is found once, further predictions of it are false. Precision over recall along the
ranking, made to fall (p(r) = max_{r' >= r} p(r')), has the area AP; mAP is its mean over classes.
Shapes: P predictions and M true boxes of one image, T overlaps asked for.
References: 2010, Everingham et al., The PASCAL visual object classes challenge, IJCV 88; 2014, Lin
et al., Microsoft COCO, arXiv 1405.0312, and its evaluation code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from castalia.data.images import Boxes
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.nn.bounding_boxes import iou_matrix
from castalia.utils.renamed_arguments import renamed
from castalia.utils.text import did_you_mean, listing

__all__ = [
    "ClassPrecision",
    "DetectionScores",
    "as_boxes",
    "average_precision",
    "detection_scores",
    "mean_average_precision",
]

KINDS = ("voc", "voc07", "coco")
COCO_OVERLAPS = tuple(np.linspace(0.5, 0.95, 10).tolist())
COCO_MOST = 100  # predictions of a class that COCO counts in an image


@dataclass(frozen=True)
class ClassPrecision:
    """How well one class was found.

    Attributes
    ----------
    label
        The class.
    precision
        Average precision; nan for a class without true boxes.
    recall
        Share of the true boxes that were found by any prediction, however low its score.
    true, predicted
        Number of true boxes (without the difficult ones) and of predictions.
    """

    label: Any
    precision: float
    recall: float
    true: int
    predicted: int


@dataclass(frozen=True)
class DetectionScores:
    """Average precision of every class, and their mean.

    Attributes
    ----------
    kind
        ``"voc"``, ``"voc07"`` or ``"coco"``.
    overlaps
        The overlaps over which precisions are averaged.
    classes
        One line a class.
    """

    kind: str
    overlaps: tuple[float, ...]
    classes: tuple[ClassPrecision, ...]

    @property
    def mean(self) -> float:
        """Mean over the classes that have true boxes; nan when none has."""
        found = [c.precision for c in self.classes if c.true]
        return float(np.mean(found)) if found else float("nan")

    def __str__(self) -> str:
        lines = [f"{'class':<16} {'AP':>6} {'recall':>7} {'true':>6} {'predicted':>10}"]
        lines += [
            f"{c.label!s:<16.16} {c.precision:>6.3f} {c.recall:>7.3f} {c.true:>6} {c.predicted:>10}"
            for c in self.classes
        ]
        return "\n".join([*lines, f"{'mean':<16} {self.mean:>6.3f}"])


@renamed(targets="y_true", predictions="y_pred")
def mean_average_precision(
    y_true: Sequence[Any], y_pred: Sequence[Any], *, iou: float = 0.5, kind: str = "voc"
) -> float:
    """Return the mean over classes of the average precision.

    Parameters
    ----------
    y_true
        True boxes of each image: ``castalia.data.Boxes``, or an array (M, 5) of class, x1, y1, x2,
        y2. Finding a difficult box counts neither for nor against.
    y_pred
        Boxes with scores of each image: ``Boxes``, or an array (P, 6) whose last column is the
        score.
    iou
        Overlap that finds a box; COCO's measure has its own.
    kind
        ``"voc"``: area under the curve, at one overlap. ``"voc07"``: mean of the precisions at the
        recalls 0, 0.1 … 1. ``"coco"``: mean of 101 precisions, averaged over the overlaps 0.5, 0.55
        … 0.95, of the 100 best predictions of a class in an image.

    Notes
    -----
    Of equal scores, the earlier image and the earlier box come first. VOC takes the true box
    that a prediction overlaps most, and counts it false if that one has been found; COCO gives it
    the best one that is still free.

    Examples
    --------
    >>> true = [Boxes(["cat"], [[0, 0, 10, 10]]), Boxes(["cat"], [[0, 0, 10, 10]])]
    >>> found = [
    ...     Boxes(["cat"], [[0, 0, 10, 9]], scores=[0.9]),
    ...     Boxes(["cat"], [[50, 0, 60, 10]], scores=[0.5]),
    ... ]
    >>> mean_average_precision(true, found)
    0.5
    """
    return detection_scores(y_true, y_pred, iou=iou, kind=kind).mean


@renamed(targets="y_true", predictions="y_pred")
def detection_scores(
    y_true: Sequence[Any], y_pred: Sequence[Any], *, iou: float = 0.5, kind: str = "voc"
) -> DetectionScores:
    """Return the average precision of every class; see ``mean_average_precision``.

    Examples
    --------
    >>> true = [Boxes(["cat", "dog"], [[0, 0, 10, 10], [20, 20, 30, 30]])]
    >>> print(detection_scores(true, [Boxes(["cat"], [[0, 0, 10, 9]], scores=[0.9])]))
    class                AP  recall   true  predicted
    cat               1.000   1.000      1          1
    dog               0.000   0.000      1          0
    mean              0.500
    """
    if kind not in KINDS:
        raise InvalidParameter(
            f"mean_average_precision: `kind` must be {listing(KINDS)}; got "
            f"{kind!r}.{did_you_mean(str(kind), KINDS)}"
        )
    if not 0 < iou <= 1:
        raise InvalidParameter(
            f"mean_average_precision: `iou` must be above 0 and at most 1; got {iou!r}."
        )
    if len(y_true) != len(y_pred):
        raise ShapeMismatch(
            "mean_average_precision: `y_pred` must hold one entry an image, "
            f"{len(y_true)} as `y_true` does; got {len(y_pred)}."
        )
    true = [as_boxes(item, "mean_average_precision") for item in y_true]
    found = [as_boxes(item, "mean_average_precision", scored=True) for item in y_pred]
    overlaps = COCO_OVERLAPS if kind == "coco" else (float(iou),)
    named = [boxes.labels for boxes in (*true, *found) if len(boxes)]
    labels = np.unique(np.concatenate(named)) if named else np.zeros(0)
    classes = [_class_precision(label, true, found, overlaps, kind) for label in labels.tolist()]
    return DetectionScores(kind, overlaps, tuple(classes))


def as_boxes(item: Any, owner: str, *, scored: bool = False) -> Boxes:
    """Read the boxes of one image: a ``Boxes``, or an array of class, x1, y1, x2, y2 and score."""
    width = 6 if scored else 5
    if not isinstance(item, Boxes):
        rows = np.asarray(item)
        rows = rows.reshape(0, width) if rows.size == 0 else rows
        if rows.ndim != 2 or rows.shape[1] != width:
            columns = "class, x1, y1, x2, y2" + (" and score" if scored else "")
            raise ShapeMismatch(
                f"{owner}: boxes of an image must be `Boxes` or an array (M, {width}) of "
                f"{columns}; got shape {rows.shape}."
            )
        labels = rows[:, 0]
        if labels.dtype.kind == "f" and (labels == labels.round()).all():
            labels = labels.astype(np.int64)  # numbers of classes came as floats beside corners
        scores = rows[:, 5].astype(np.float32) if scored else None
        item = Boxes(labels, rows[:, 1:5].astype(np.float32), scores=scores)
    if scored and item.scores is None:
        raise InvalidData(f"{owner}: predicted boxes must have `scores`; got boxes without.")
    return item


def _class_precision(
    label: Any, true: list[Boxes], found: list[Boxes], overlaps: tuple[float, ...], kind: str
) -> ClassPrecision:
    """Match the predictions of one class in every image and rank them over all images."""
    match = _match_coco if kind == "coco" else _match_voc
    scores, n_true = [np.zeros(0, np.float32)], 0
    hits, kept = [np.zeros((0, len(overlaps)), bool)], [np.zeros((0, len(overlaps)), bool)]
    for truth, guess in zip(true, found, strict=True):
        here, there = truth.labels == label, guess.labels == label
        if not (here.any() or there.any()):
            continue
        truth, guess = truth.take(here), guess.take(there)
        difficult = np.zeros(len(truth), bool) if truth.difficult is None else truth.difficult
        n_true += int((~difficult).sum())
        sure = np.asarray(guess.scores)
        ranked = np.argsort(-sure, kind="stable")[: COCO_MOST if kind == "coco" else None]
        guess = guess.take(ranked)
        overlap = iou_matrix(*(torch.from_numpy(b.corners).double() for b in (guess, truth)))
        hit, ignored = match(overlap.numpy(), difficult, np.array(overlaps))
        scores.append(sure[ranked])
        hits.append(hit)
        kept.append(~ignored)
    order = np.argsort(-np.concatenate(scores), kind="stable")
    hit, keep = np.concatenate(hits)[order], np.concatenate(kept)[order]  # (P, T)
    curves = [(hit[keep[:, t], t], n_true) for t in range(len(overlaps))]
    precision = [average_precision(*curve, kind=kind) for curve in curves]
    recall = [hits.sum() / n_true if n_true else float("nan") for hits, _ in curves]
    return ClassPrecision(
        label, float(np.mean(precision)), float(np.mean(recall)), n_true, len(order)
    )


def _match_voc(
    overlap: np.ndarray, difficult: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:  # (P, M), (M,), (T,)
    """Say which ranked predictions find their nearest true box, and which are to be ignored."""
    if not overlap.shape[1]:
        return _nothing(len(overlap), len(wanted))
    nearest = overlap.argmax(axis=1)  # (P,)
    enough = overlap.max(axis=1)[:, None] >= wanted  # (P, T)
    ignored = enough & difficult[nearest][:, None]
    # The first of those that find the same box finds it; the others come too late.
    same = np.tril(nearest[:, None] == nearest, k=-1)
    late = (same.astype(np.int64) @ enough.astype(np.int64)) > 0
    return enough & ~late & ~ignored, ignored


def _match_coco(
    overlap: np.ndarray, difficult: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:  # (P, M), (M,), (T,)
    """Give each ranked prediction the best true box still free, or failing that a difficult one."""
    hit, ignored = _nothing(len(overlap), len(wanted))
    if not overlap.shape[1]:
        return hit, ignored
    free = np.ones((len(wanted), overlap.shape[1]), bool) & ~difficult  # (T, M)
    steps = np.arange(len(wanted))
    for number, row in enumerate(overlap):
        usable = np.where(free & (row >= wanted[:, None]), row, -1.0)  # (T, M)
        best = usable.shape[1] - 1 - usable[:, ::-1].argmax(axis=1)  # of equals, the last
        hit[number] = usable[steps, best] >= 0
        free[steps[hit[number]], best[hit[number]]] = False
        ignored[number] = ~hit[number] & (difficult & (row >= wanted[:, None])).any(axis=1)
    return hit, ignored


def _nothing(n_predictions: int, n_overlaps: int) -> tuple[np.ndarray, np.ndarray]:
    shape = (n_predictions, n_overlaps)
    return np.zeros(shape, bool), np.zeros(shape, bool)


def average_precision(hits: np.ndarray, n_true: int, *, kind: str = "voc") -> float:
    """Return the area under the falling curve of precision over recall.

    Parameters
    ----------
    hits
        Whether each prediction is right, the best first.
    n_true
        How many there are to be found; nan is returned for none.
    kind
        ``"voc"``: the exact area; ``"voc07"``: mean over 11 recalls; ``"coco"``: over 101.

    Examples
    --------
    >>> average_precision(np.array([True, False, True]), 2)  # 1/2 * 1 + 1/2 * 2/3
    0.8333333333333333
    """
    if not n_true:
        return float("nan")
    found = np.cumsum(hits)
    recall = found / n_true
    precision = found / np.arange(1, len(hits) + 1)
    falling = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
    if kind == "voc":
        return float(np.sum(np.diff(recall, prepend=0.0) * falling[:-1]))
    points = np.linspace(0, 1, 11 if kind == "voc07" else 101) - 1e-9  # 3/10 of them is 0.3
    return float(falling[np.searchsorted(recall, points, side="left")].mean())
