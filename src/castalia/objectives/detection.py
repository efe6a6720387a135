"""What detectors minimise: boxes, confidence and classes at once.

A network answers N boxes an image, (B, N, 5 + C): cx, cy, w, h in shares of the image, confidence,
class scores, and says by ``cells(x)`` where they were asked for, (N, 4), and with anchors by
``priors(x)`` which boxes they start from. Targets are (B, M, 5):
class, cx, cy, w, h; rows of class -1 are padding. Every choice is a mask, so shapes never depend on
the data.  Shapes: B batch, N boxes of the network, M boxes of the target, C classes.
References: 2016, Redmon et al., You only look once, arXiv 1506.02640, equation 3; 2018, Redmon,
Farhadi, YOLOv3, arXiv 1804.02767; 2020, Zhang et al., ATSS, arXiv 1912.02424 (the nearest priors).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn.bounding_boxes import box_iou, iou_matrix, to_corners
from castalia.objectives.objective import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["AnchorYOLOLoss", "YOLOLoss"]

FAIR = 0.5  # share of the best prior's overlap that a prior must have to learn a target
EDGE = 1 - 1e-6  # a centre on the right or lower edge belongs to the last cell


class Claims(NamedTuple):
    """Which target each box of the network learns."""

    learns: Tensor  # (B, N), whether it has one
    target: Tensor  # (B, N, 5), its class, cx, cy, w, h; arbitrary where it has none


class Detection(Objective):
    """The common part: who learns what, and the three terms."""

    def claims(self, net: Any, x: Tensor, outputs: Tensor, targets: Tensor) -> Claims:
        """Say which target each box of the network learns."""
        raise NotImplementedError

    def parts(self, net: Any, x: Tensor, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Return box, confidence and classes of each image, (B,) each, weighted."""
        raise NotImplementedError

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss, and the means over images of its three parts."""
        outputs = net(batch.x)
        _check_targets(self, outputs, batch.y)
        parts = self.parts(net, batch.x, outputs, batch.y.to(outputs.dtype))
        means = {name: weighted_mean(rows, batch.weight) for name, rows in parts.items()}
        return {"loss": means["box"] + means["confidence"] + means["classes"], **means}


class YOLOLoss(Detection):
    """The loss of the paper: squared errors of boxes, confidences and classes.

    The cell that holds the centre of a target learns it, by the one of its boxes that overlaps the
    target most. That box's confidence is to be the overlap itself, every other one's is to be 0::

        coordinates * sum_learns [(x - x')^2 + (y - y')^2 + (√w - √w')^2 + (√h - √h')^2]
        + sum_learns (c - IoU)^2 + empty * sum_others c^2 + sum_learns sum_k (p_k - p'_k)^2

    x and y count in cells. Roots of sizes: a pixel matters more to a small box.

    Parameters
    ----------
    coordinates
        Weight of places and sizes.
    empty
        Weight of boxes that hold nothing, of which there are many.

    Notes
    -----
    Two targets in one cell are learnt by two of its boxes if they overlap different ones most;
    otherwise the target that is overlapped more is learnt and the other is not.

    Examples
    --------
    >>> from castalia.protocols import Batch
    >>> class Two(nn.Module):  # two cells side by side, one box each, one class
    ...     def forward(self, x):
    ...         return torch.cat([self.cells(x), torch.tensor([[0.9, 1.0], [0.2, 0.0]])], 1)[None]
    ...     def cells(self, x):
    ...         return torch.tensor([[0.25, 0.5, 0.5, 1.0], [0.75, 0.5, 0.5, 1.0]])
    >>> y = torch.tensor([[[0, 0.25, 0.5, 0.5, 1.0], [-1, 0, 0, 0, 0]]])
    >>> terms = YOLOLoss().terms(Two(), Batch(torch.zeros(1), y), "train")
    >>> {name: round(float(value), 4) for name, value in terms.items()}
    {'loss': 0.03, 'box': 0.0, 'confidence': 0.03, 'classes': 0.0}
    """

    def __init__(self, *, coordinates: float = 5.0, empty: float = 0.5) -> None:
        _check_weights(self, coordinates=coordinates, empty=empty)
        self.coordinates, self.empty = coordinates, empty

    def claims(self, net: Any, x: Tensor, outputs: Tensor, targets: Tensor) -> Claims:
        """Give each target to the box of its cell that overlaps it most."""
        with torch.no_grad():
            inside = _in_cell(net.cells(x), targets)  # (B, N, M)
            overlap = iou_matrix(to_corners(outputs[..., :4]), to_corners(targets[..., 1:]))
            best = overlap.masked_fill(~inside, -1).argmax(dim=1, keepdim=True)  # (B, 1, M)
            claimed = torch.zeros_like(inside).scatter(1, best, _real(targets)[:, None])
            return _owners(claimed, overlap, targets)

    def parts(self, net: Any, x: Tensor, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Return the three sums of each image."""
        learns, target = self.claims(net, x, outputs, targets)
        place = (outputs[..., :2] - target[..., 1:3]) / net.cells(x)[:, 2:]
        size = _root(outputs[..., 2:4]) - _root(target[..., 3:])
        squares = (place.square() + size.square()).sum(dim=-1)
        wrong = (outputs[..., 5:] - _one_hot(target, outputs)).square().sum(dim=-1)
        gap = (outputs[..., 4] - _overlap(outputs, target) * learns).square()
        return {
            "box": self.coordinates * (learns * squares).sum(dim=1),
            "confidence": torch.where(learns, gap, self.empty * gap).sum(dim=1),
            "classes": (learns * wrong).sum(dim=1),
        }


class AnchorYOLOLoss(Detection):
    """The loss for anchors: overlap of boxes, cross-entropy of confidence and classes.

    A target is learnt by the boxes whose priors overlap it most, at least half as much as the best
    one does, among those whose centre can reach it (one cell each way). Confidence is to be the
    overlap reached; boxes that overlap a target well without having been asked to are neither
    rewarded nor punished. Sums over the boxes of an image are divided by the number L that learn,
    so that images count alike::

        1/L [box * sum_learns (1 - IoU*) + sum_asked H(IoU, c) + sum_learns sum_k H(p_k, p'_k)]

    Parameters
    ----------
    box
        Weight of the overlap.
    positives
        Most boxes that learn each target; 1 is YOLOv2's and v3's rule, more learn sooner.
    ignore
        Overlap with a target above which a box that does not learn it is left in peace.
    overlap
        Which IoU* is maximised: ``"plain"``, ``"generalised"`` or ``"complete"``.

    Notes
    -----
    B N M overlaps are held in memory twice: 73 MB for 16 images, 18,900 boxes and 30 targets.
    """

    def __init__(
        self,
        *,
        box: float = 5.0,
        positives: int = 9,
        ignore: float = 0.7,
        overlap: str = "complete",
    ) -> None:
        _check_weights(self, box=box, ignore=ignore)
        if positives < 1:
            raise InvalidParameter(
                f"AnchorYOLOLoss: `positives` must be at least 1; got {positives!r}."
            )
        self.box, self.positives, self.ignore, self.overlap = box, positives, ignore, overlap

    def claims(self, net: Any, x: Tensor, outputs: Tensor, targets: Tensor) -> Claims:
        """Give each target to the boxes whose priors overlap it most, within reach."""
        with torch.no_grad():
            cells, priors = net.cells(x), net.priors(x)
            gap = (targets[:, None, :, 1:3] - cells[:, None, :2]).abs()  # (B, N, M, 2)
            near = (gap < cells[:, None, 2:]).all(dim=-1) & _real(targets)[:, None]
            overlap = iou_matrix(to_corners(priors), to_corners(targets[..., 1:]))
            overlap = overlap.masked_fill(~near, -1)  # (B, N, M)
            best = overlap.topk(min(self.positives, overlap.shape[1]), dim=1)
            good = best.values >= FAIR * best.values[:, :1].clamp_min(0)  # (B, positives, M)
            claimed = torch.zeros_like(near).scatter(1, best.indices, good)
            return _owners(claimed, overlap, targets)

    def parts(self, net: Any, x: Tensor, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Return the three sums of each image, over the number of its boxes that learn."""
        learns, target = self.claims(net, x, outputs, targets)
        found, truth = to_corners(outputs[..., :4]), to_corners(target[..., 1:])
        # Targets of boxes that learn nothing are replaced: their slopes must be finite zeros.
        apart = 1 - box_iou(
            found, torch.where(learns[..., None], truth, found.detach()), kind=self.overlap
        )
        aim = _overlap(outputs, target) * learns
        doubt = F.binary_cross_entropy_with_logits(outputs[..., 4], aim, reduction="none")
        with torch.no_grad():
            real = _real(targets)[:, None]
            seen = (iou_matrix(found, to_corners(targets[..., 1:])) * real).amax(dim=-1)
            asked = learns | (seen < self.ignore)
        wrong = F.binary_cross_entropy_with_logits(
            outputs[..., 5:], _one_hot(target, outputs), reduction="none"
        ).sum(dim=-1)
        share = 1 / learns.sum(dim=1).clamp_min(1)
        return {
            "box": self.box * (learns * apart).sum(dim=1) * share,
            "confidence": (asked * doubt).sum(dim=1) * share,
            "classes": (learns * wrong).sum(dim=1) * share,
        }


def _real(targets: Tensor) -> Tensor:
    """Say which targets are no padding, (B, M)."""
    return targets[..., 0] >= 0


def _in_cell(cells: Tensor, targets: Tensor) -> Tensor:  # (N, 4), (B, M, 5)
    """Say which cells hold the centres of which targets, (B, N, M)."""
    numbers = (cells[:, :2] / cells[:, 2:]).floor()  # column and row of each cell
    centre = targets[:, None, :, 1:3].clamp(0, EDGE)
    return ((centre / cells[:, None, 2:]).floor() == numbers[:, None]).all(dim=-1)


def _owners(claimed: Tensor, preference: Tensor, targets: Tensor) -> Claims:  # (B, N, M), …
    """Let a box that several targets claim learn the one it prefers."""
    owner = preference.masked_fill(~claimed, -2).argmax(dim=-1)  # (B, N)
    target = targets.take_along_dim(owner[..., None], dim=1)
    return Claims(claimed.any(dim=-1), target)


def _overlap(outputs: Tensor, target: Tensor) -> Tensor:
    """Return the overlap of each box with its target, (B, N), a constant for the gradient."""
    return box_iou(to_corners(outputs[..., :4].detach()), to_corners(target[..., 1:]))


def _one_hot(target: Tensor, outputs: Tensor) -> Tensor:
    """Return the class of each box's target as ones and zeros, (B, N, C)."""
    places = torch.arange(outputs.shape[-1] - 5, device=outputs.device)
    return (target[..., :1] == places).to(outputs.dtype)


def _root(sizes: Tensor) -> Tensor:
    """Return square roots with finite slopes."""
    return sizes.clamp_min(1e-12).sqrt()


def _check_weights(owner: object, **weights: float) -> None:
    for name, value in weights.items():
        if not value >= 0:
            raise InvalidParameter(
                f"{type(owner).__name__}: `{name}` must be 0 or more; got {value!r}."
            )


def _check_targets(owner: object, outputs: Tensor, targets: Tensor) -> None:
    if outputs.ndim != 3 or targets.ndim != 3 or targets.shape[2] != 5:
        raise ShapeMismatch(
            f"{type(owner).__name__}: outputs must be (B, N, 5 + C) and targets (B, M, 5), class "
            f"cx cy w h; got {tuple(outputs.shape)} and {tuple(targets.shape)}."
        )
