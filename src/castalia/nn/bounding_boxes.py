"""Boxes: overlap, coordinates, and the removal of boxes that find the same thing twice.

IoU(A, B) = |A ∩ B| / |A ∪ B|.  A box is (x1, y1, x2, y2), its corners, unless said otherwise.
Shapes: N and M boxes; leading dimensions are batches.
References: 2019, Rezatofighi et al., Generalized intersection over union, arXiv 1902.09630;
2020, Zheng et al., Distance-IoU loss, arXiv 1911.08287.
"""

import math

import torch
from torch import Tensor

from castalia.errors import InvalidParameter, ShapeMismatch

__all__ = [
    "anchor_sizes",
    "box_iou",
    "from_corners",
    "iou_matrix",
    "non_maximum_suppression",
    "suppress",
    "to_corners",
]

_KINDS = ("plain", "generalised", "complete")


def to_corners(boxes: Tensor) -> Tensor:  # (…, 4)
    """Turn (cx, cy, w, h) into (x1, y1, x2, y2).

    >>> to_corners(torch.tensor([5.0, 5.0, 4.0, 2.0]))
    tensor([3., 4., 7., 6.])
    """
    centre, half = boxes[..., :2], boxes[..., 2:] / 2
    return torch.cat([centre - half, centre + half], dim=-1)


def from_corners(corners: Tensor) -> Tensor:  # (…, 4)
    """Turn (x1, y1, x2, y2) into (cx, cy, w, h).

    >>> from_corners(torch.tensor([3.0, 4.0, 7.0, 6.0]))
    tensor([5., 5., 4., 2.])
    """
    low, high = corners[..., :2], corners[..., 2:]
    return torch.cat([(low + high) / 2, high - low], dim=-1)


def box_iou(
    first: Tensor, second: Tensor, *, inclusive: bool = False, kind: str = "plain"
) -> Tensor:
    """Overlap of boxes pair by pair, (…, 4) and (…, 4) to (…); leading dimensions broadcast.

    Parameters
    ----------
    first, second
        Corners.
    inclusive
        Whether corners are pixels that belong to the box, as in PASCAL VOC's own measure: sides
        are then one longer.
    kind
        ``"plain"``; ``"generalised"`` subtracts the share of the enclosing box that neither
        covers, so that boxes apart still have a slope, down to -1; ``"complete"`` subtracts the
        squared distance of the centres over that of the enclosing corners, and the squared gap
        of the two aspect angles, weighted.

    Examples
    --------
    >>> a, b = torch.tensor([57.0, 133, 329, 265]), torch.tensor([153.0, 95, 396, 218])
    >>> box_iou(a, b), box_iou(a, b, inclusive=True)
    (tensor(0.2943), tensor(0.2965))
    """
    if kind not in _KINDS:
        raise InvalidParameter(f"box_iou: `kind` must be one of {_KINDS}; got {kind!r}.")
    extra = 1.0 if inclusive else 0.0
    low, high = (
        torch.maximum(first[..., :2], second[..., :2]),
        torch.minimum(first[..., 2:], second[..., 2:]),
    )
    shared = _area(high - low + extra)
    union = _areas(first, extra) + _areas(second, extra) - shared
    tiny = torch.finfo(union.dtype).tiny  # two boxes without area overlap by 0, not by 0 / 0
    iou = shared / union.clamp_min(tiny)
    if kind == "plain":
        return iou
    outer_low = torch.minimum(first[..., :2], second[..., :2])
    outer = torch.maximum(first[..., 2:], second[..., 2:]) - outer_low + extra  # (…, 2)
    if kind == "generalised":
        area = _area(outer).clamp_min(tiny)
        return iou - (area - union) / area
    return iou - _distance(first, second, outer) - _aspect(first, second, iou, extra)


def _areas(corners: Tensor, extra: float) -> Tensor:
    return _area(corners[..., 2:] - corners[..., :2] + extra)


def _area(sides: Tensor) -> Tensor:  # (…, 2)
    """Return width times height; the gradient of ``prod`` would wait for the device."""
    width, height = sides.clamp_min(0).unbind(dim=-1)
    return width * height


def _distance(first: Tensor, second: Tensor, outer: Tensor) -> Tensor:
    """Squared distance of the centres over the squared diagonal of the enclosing box."""
    gap = (first[..., :2] + first[..., 2:] - second[..., :2] - second[..., 2:]) / 2
    diagonal = outer.square().sum(dim=-1).clamp_min(torch.finfo(outer.dtype).eps ** 2)
    return gap.square().sum(dim=-1) / diagonal


def _aspect(first: Tensor, second: Tensor, iou: Tensor, extra: float) -> Tensor:
    """How far the aspect ratios are apart; the weight is a constant for the gradient."""
    angles = []
    for corners in (first, second):
        sides = corners[..., 2:] - corners[..., :2] + extra
        angles.append(torch.atan2(sides[..., 0], sides[..., 1].clamp_min(1e-9)))
    gap = 4 / math.pi**2 * (angles[0] - angles[1]).square()
    with torch.no_grad():
        weight = gap / (1 - iou + gap).clamp_min(torch.finfo(gap.dtype).eps)
    return weight * gap


def iou_matrix(
    first: Tensor, second: Tensor, *, inclusive: bool = False, kind: str = "plain"
) -> Tensor:
    """Overlap of every box with every other, (…, N, 4) and (…, M, 4) to (…, N, M).

    Examples
    --------
    >>> boxes = torch.tensor([[0.0, 0, 2, 2], [1.0, 0, 3, 2], [5.0, 5, 6, 6]])
    >>> iou_matrix(boxes, boxes[:1]).T
    tensor([[1.0000, 0.3333, 0.0000]])
    """
    return box_iou(first[..., :, None, :], second[..., None, :, :], inclusive=inclusive, kind=kind)


def suppress(
    corners: Tensor, scores: Tensor, labels: Tensor | None = None, *, iou: float = 0.5
) -> Tensor:  # (…, N, 4), (…, N), (…, N)
    """Say which boxes non-maximum suppression keeps, (…, N).

    A box is removed when a better kept one of its label overlaps it by more than ``iou``. In the
    order of the scores that is kept_j = not any_i (kept_i and S_ij), S_ij: i is better than j and
    overlaps it. Iterated from all kept, the first k boxes are right after k rounds at the latest,
    so the fixed point is what the greedy loop finds; crowds need a handful of rounds, each one
    product of matrices.

    Parameters
    ----------
    corners, scores
        Boxes and how good they are. Of equal scores, the earlier box is the better one.
    labels
        Boxes of different labels leave each other alone; None: all are of one.
    iou
        Overlap above which two boxes find the same thing.

    Examples
    --------
    >>> boxes = torch.tensor([[0.0, 0, 4, 4], [0.0, 0, 4, 5], [8.0, 8, 9, 9]])
    >>> suppress(boxes, torch.tensor([0.6, 0.9, 0.1]))
    tensor([False,  True,  True])
    """
    order = scores.argsort(dim=-1, descending=True, stable=True)
    ranked = corners.take_along_dim(order[..., None], dim=-2)
    beats = iou_matrix(ranked, ranked) > iou
    if labels is not None:
        ranks = labels.take_along_dim(order, dim=-1)
        beats &= ranks[..., :, None] == ranks[..., None, :]
    # Ones and zeros: a product of matrices counts the kept boxes that beat each one.
    above = beats.triu(diagonal=1).to(corners.dtype)
    kept = torch.ones_like(ranked[..., :1]).mT  # (…, 1, N)
    while True:
        again = (kept @ above == 0).to(kept.dtype)
        if torch.equal(again, kept):
            break
        kept = again
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, order, kept[..., 0, :] > 0)


def non_maximum_suppression(
    corners: Tensor, scores: Tensor, labels: Tensor | None = None, *, iou: float = 0.5
) -> Tensor:  # (N, 4), (N,), (N,)
    """Return the places of the boxes to keep, the best first.

    Parameters
    ----------
    corners, scores, labels, iou
        As of ``suppress``, which says the same as a mask and takes batches.

    Examples
    --------
    >>> boxes = torch.tensor([[0.0, 0, 4, 4], [0.0, 0, 4, 5], [8.0, 8, 9, 9]])
    >>> non_maximum_suppression(boxes, torch.tensor([0.6, 0.9, 0.1]))
    tensor([1, 2])
    """
    if corners.ndim != 2 or corners.shape[1:] != (4,) or scores.shape != corners.shape[:1]:
        raise ShapeMismatch(
            "non_maximum_suppression: corners must be (N, 4) and scores (N,); got "
            f"{tuple(corners.shape)} and {tuple(scores.shape)}."
        )
    kept = suppress(corners, scores, labels, iou=iou)
    order = scores.argsort(descending=True, stable=True)
    return order[kept[order]]


def anchor_sizes(sizes: Tensor, n: int, *, rounds: int = 100) -> Tensor:  # (N, 2)
    """Return typical sizes of boxes, smallest area first, (n, 2): k-means under 1 - IoU.

    Sizes are compared as boxes with one centre; a cluster's new size is the mean of its members.
    The start is spread evenly over the areas, so nothing is left to chance.

    Parameters
    ----------
    sizes
        Widths and heights.
    n
        How many. With fewer different sizes than that, some come more than once.
    rounds
        Most rounds of k-means.

    Notes
    -----
    Reference: 2016, Redmon, Farhadi, YOLO9000, arXiv 1612.08242, section 2.

    Examples
    --------
    >>> anchor_sizes(torch.tensor([[10.0, 10], [12, 10], [50, 20], [50, 24]]), 2)
    tensor([[11., 10.],
            [50., 22.]])
    """
    if sizes.ndim != 2 or not len(sizes):
        raise ShapeMismatch(
            f"anchor_sizes: sizes must be (N, 2) with N above 0; got {tuple(sizes.shape)}."
        )
    ranked = sizes[sizes.prod(dim=1).argsort(stable=True)]
    places = (torch.arange(n, device=sizes.device) + 0.5) * len(sizes) / n
    centres = ranked[places.long()]
    nearest = torch.full_like(ranked[:, 0], -1, dtype=torch.long)
    for _ in range(rounds):
        found = _shape_iou(ranked, centres).argmax(dim=1)
        if torch.equal(found, nearest):
            break
        nearest = found
        members = (nearest[:, None] == torch.arange(n, device=sizes.device)).to(sizes.dtype)
        count = members.sum(dim=0)[:, None]  # (n, 1)
        centres = torch.where(count > 0, members.T @ ranked / count.clamp_min(1), centres)
    return centres[centres.prod(dim=1).argsort(stable=True)]


def _shape_iou(first: Tensor, second: Tensor) -> Tensor:
    """Overlap of sizes put on one centre, (N, 2) and (M, 2) to (N, M)."""
    return iou_matrix(*(torch.cat([-sizes / 2, sizes / 2], dim=-1) for sizes in (first, second)))
