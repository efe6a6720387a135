"""Short trainings of copies, and what a copy does on rows."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from castalia.diagnose.examination.clock import Clock
from castalia.diagnose.examination.module_copies import Copy, scalar
from castalia.diagnose.thresholds import limit
from castalia.nn.network_modes import evaluating

__all__ = ["batch_losses", "forward", "levelled", "seconds_a_step", "train", "train_step"]

LEAST_STEPS = 100  # of a training that is judged
PIECE = 256  # rows sent through a network at once
PIECES = 40  # parts of the rows whose mean losses are compared


def train_step(copy: Copy, x: Tensor, y: Tensor) -> float:
    """Take one step of the copy's optimizer and return the loss before it."""
    seen: list[float] = []

    def closure() -> Tensor:
        copy.optimizer.zero_grad()
        loss = copy.loss(x, y)
        loss.backward()  # type: ignore[no-untyped-call]
        seen.append(float(loss.detach()))
        return loss

    copy.optimizer.step(closure)  # type: ignore[arg-type]
    return seen[0]


def train(
    copy: Copy, x: Tensor, y: Tensor, *, steps: int, batch_size: int, clock: Clock, seed: int = 0
) -> list[float]:
    """Train in training mode until the steps are made, the time is up or the loss is not finite."""
    copy.net.train()
    losses: list[float] = []
    for batch in _batches(len(x), batch_size, steps, seed):
        chosen = batch.to(x.device)
        losses.append(train_step(copy, x[chosen], y[chosen]))
        if clock.over or not math.isfinite(losses[-1]):
            break
    return losses


def _batches(rows: int, batch_size: int, steps: int, seed: int) -> Iterator[Tensor]:
    """Yield row numbers: epoch after epoch in a new order, without a smaller batch at the end."""
    source = torch.Generator().manual_seed(seed)
    size = min(batch_size, rows)
    order, at = torch.randperm(rows, generator=source), 0
    for _ in range(steps):
        if at + size > rows:
            order, at = torch.randperm(rows, generator=source), 0
        yield order[at : at + size]
        at += size


def levelled(losses: list[float]) -> bool:
    """Whether a training has come to rest: its last quarter is hardly better than the one before.

    >>> levelled([2.0 - 0.01 * step for step in range(200)]), levelled([1.0] * 200)
    (False, True)
    """
    quarter = len(losses) // 4
    if len(losses) < LEAST_STEPS or not np.isfinite(losses).all():
        return False
    last, before = np.mean(losses[-quarter:]), np.mean(losses[-2 * quarter : -quarter])
    return bool(before - last < (1 - limit("examine.levelled")) * abs(before))


def seconds_a_step(copy: Copy, x: Tensor, y: Tensor, batch_size: int, clock: Clock) -> float:
    """Measure one step, after one that warms up."""
    train(copy, x, y, steps=1, batch_size=batch_size, clock=clock)
    start = time.perf_counter()
    train(copy, x, y, steps=2, batch_size=batch_size, clock=clock)
    return (time.perf_counter() - start) / 2


@torch.no_grad()
def forward(net: nn.Module, x: Tensor) -> Any:
    """Return the outputs in evaluation mode: a tensor, or what the module returns for all rows."""
    with evaluating(net):
        parts = [net(x[i : i + PIECE].clone()) for i in range(0, len(x), PIECE)]
        if all(isinstance(part, Tensor) for part in parts):
            return torch.cat(parts)
        return net(x.clone())


@torch.no_grad()
def batch_losses(copy: Copy, x: Tensor, y: Tensor, pieces: int = PIECES) -> np.ndarray:
    """Return the losses of consecutive parts of the rows, in evaluation mode."""
    size = max(1, len(x) // pieces)
    found = []
    with evaluating(copy.net):
        for i in range(0, len(x) - size + 1, size):
            out = copy.net(x[i : i + size].clone())
            found.append(float(scalar(copy.loss_fn(out, y[i : i + size]))))
    return np.array(found)
