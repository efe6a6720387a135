"""What a training is for, read from its loss, its outputs and its targets.

The loss is recognised by the nodes that it leaves in the autograd graph, so that a function, a
module and a lambda are all understood.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from castalia.diagnose.thresholds import limit

__all__ = ["TASKS", "graph_nodes", "infer_task", "is_next_token", "loss_kind"]

TASKS = ("binary", "multiclass", "multilabel", "regression", "lm", "seq", "vae")
KINDS = {
    "NllLossBackward": "nll",
    "NllLoss2DBackward": "nll",
    "NllLossNdBackward": "nll",
    "BinaryCrossEntropyWithLogitsBackward": "bce-logits",
    "BinaryCrossEntropyBackward": "bce",
    "MseLossBackward": "squared",
    "L1LossBackward": "absolute",
    "SmoothL1LossBackward": "absolute",
    "HuberLossBackward": "absolute",
}
MOST_NODES = 5000


def graph_nodes(loss: Tensor, most: int = MOST_NODES) -> Iterator[Any]:
    """Yield the nodes of a graph, those nearest to the loss first."""
    queue, seen = [loss.grad_fn], {loss.grad_fn}
    while queue and len(seen) < most:
        node = queue.pop(0)
        if node is None:
            continue
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)


def loss_kind(loss: Tensor) -> str | None:
    """Name the loss by its first telling node; None for one that torch has no node for."""
    for node in graph_nodes(loss, 40):
        kind = KINDS.get(node.name().rstrip("0123456789"))
        if kind is not None:
            return kind
    return None


def is_next_token(x: Tensor, y: Tensor) -> bool:
    """Whether the targets are the inputs shifted by one place.

    >>> x = torch.tensor([[5, 3, 8, 1]])
    >>> is_next_token(x, torch.tensor([[3, 8, 1, 7]])), is_next_token(x, x)
    (True, False)
    """
    if x.is_floating_point() or y.is_floating_point() or x.ndim != 2 or x.shape != y.shape:
        return False
    if x.shape[1] < 3:
        return False
    ahead, here = y[:, :-1], x[:, 1:]
    kept = ahead >= 0  # -100 marks positions that do not count
    return bool(kept.any()) and float((ahead == here)[kept].float().mean()) >= limit(
        "examine.shifted"
    )


def infer_task(kind: str | None, x: Tensor, y: Tensor, outputs: Any) -> str | None:
    """Name the task, or None where nothing fits."""
    first = outputs if isinstance(outputs, Tensor) else None
    if is_next_token(x, y):
        return "lm"
    if x.shape == y.shape and x.is_floating_point() and bool((x == y).all()):
        return "vae"
    if not y.is_floating_point() and y.dtype != torch.bool and y.ndim >= 2 and y[0].numel() > 1:
        return "multilabel" if kind in ("bce", "bce-logits") else "seq"
    if kind in ("bce", "bce-logits"):
        return "multilabel" if y[0].numel() > 1 else "binary"
    if kind in ("squared", "absolute"):
        return "multiclass" if _one_hot(y) else "regression"
    if kind == "nll":
        return "multiclass" if first is None or first.ndim <= 2 or y.is_floating_point() else "seq"
    return _by_targets(y, first)


def _by_targets(y: Tensor, outputs: Tensor | None) -> str | None:
    if _one_hot(y):
        return "multiclass"
    zero_one = bool(((y == 0) | (y == 1)).all())
    if y.is_floating_point() and not zero_one:
        return "regression"
    if y[0].numel() > 1:
        return "multilabel" if zero_one else None
    wide = outputs is not None and outputs.ndim > 1 and outputs.shape[1] > 1
    return "binary" if zero_one and not wide else "multiclass"


def _one_hot(y: Tensor) -> bool:
    if y.ndim != 2 or y.shape[1] < 2:
        return False
    return bool(((y == 0) | (y == 1)).all()) and bool((y.sum(1) == 1).all())
