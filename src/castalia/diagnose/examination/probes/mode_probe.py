"""Training mode against evaluation mode on the same rows: statistics of batch normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.measures import (
    difference,
    labels,
    predictions,
    row_errors,
)
from castalia.diagnose.examination.module_copies import Copy, scalar, without_dropout
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.nn.network_modes import evaluating
from castalia.utils.text import number

__all__ = ["modes"]

NAME = "modes"
BATCH = 64  # rows whose statistics are compared with the running ones
LEAST_STEPS = 150  # of a short training, until running averages have caught up
Norm = nn.modules.batchnorm._NormBase


def modes(subject: Subject) -> Outcome:
    """Compare losses with running and with batch statistics, everything else being equal."""
    norms = [
        name
        for name, part in subject.module.named_modules()
        if isinstance(part, Norm) and part.track_running_stats
    ]
    if not norms:
        return saw(NAME, {})
    if not subject.trainable and not subject.trained:
        return skipped(NAME, "the module cannot be run or has nothing to train.")
    findings = [_small_batches(subject, norms[0])]
    learned = subject.learned
    if len(subject.x) < BATCH or not (learned.own or len(learned.losses) >= LEAST_STEPS):
        return saw(NAME, {}, findings)
    running, batch = (_look(learned.copy, subject, batch)[0] for batch in (False, True))
    numbers = {"loss, running": float(running.mean()), "loss, batch": float(batch.mean())}
    _, sure = difference(running, batch)
    ratio = float(running.mean()) / max(float(batch.mean()), 1e-12)
    if not np.isfinite(running).all():
        ratio, sure = float("inf"), float("inf")
    if (
        ratio > limit("examine.norm_loss")
        and sure > limit("examine.sure")
        and _matters(subject, learned.copy)
    ):
        findings.append(_far(subject, learned.copy, numbers, ratio))
    return saw(NAME, numbers, findings)


def _matters(subject: Subject, copy: Copy) -> bool:
    """Whether predictions change for the worse, where there are some: losses alone are touchy."""
    running, batch = (_look(copy, subject, batch)[1] for batch in (False, True))
    if running is None or batch is None:
        return True
    gap, sure = difference(running, batch)
    return not gap < limit("examine.norm_error") and not sure < limit("examine.sure")


@torch.no_grad()
def _look(copy: Copy, subject: Subject, batch: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Return losses of batches and errors of rows, normalised by the batch or by the past."""
    other = subject.copy()
    other.net.load_state_dict(copy.net.state_dict())
    without_dropout(other.net)
    found, outputs = [], []
    with evaluating(other.net, awake=(Norm,) if batch else ()):
        for i in range(0, len(subject.x) - BATCH + 1, BATCH):
            x, y = subject.x[i : i + BATCH].clone(), subject.y[i : i + BATCH]
            outputs.append(other.net(x))
            found.append(float(scalar(other.loss_fn(outputs[-1], y))))
    if not all(isinstance(out, Tensor) for out in outputs):
        return np.array(found), None
    y = subject.y[: BATCH * len(outputs)]
    predicted = predictions(subject.task, subject.kind, torch.cat(outputs), y)
    errors = row_errors(subject.task, labels(subject.task, y), predicted)
    return np.array(found), None if errors is None else errors / subject.unit


def _far(subject: Subject, copy: Copy, numbers: dict[str, float], ratio: float) -> Finding:
    name, momentum = _worst(subject, copy)
    low = momentum is not None and momentum < limit("examine.norm_momentum")
    cure = (
        f"momentum={number(float(momentum or 0), 2)} → 0.1 in `{name}`"
        if low
        else "Larger batches, group or layer normalisation, or a pass over the training rows in "
        "training mode before evaluating."
    )
    return finding(
        "CST115",
        "error" if ratio > 4 else "warning",
        0.9,
        f"With the running statistics of batch normalisation the loss is "
        f"{number(numbers['loss, running'], 3)}, with those of the batch "
        f"{number(numbers['loss, batch'], 3)}: the running ones are far off.",
        cure,
        Evidence(
            "loss in evaluation mode over that with batch statistics",
            ratio,
            limit("examine.norm_loss"),
        ),
        where=name,
    )


@torch.no_grad()
def _worst(subject: Subject, copy: Copy) -> tuple[str | None, float | None]:
    """Return the layer whose running variance is farthest from that of a batch."""
    far: dict[str, tuple[float, float | None]] = {}

    def watcher(name: str) -> Any:
        def look(part: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            x = inputs[0].detach().movedim(1, 0).flatten(1)
            norm: Any = part
            off = (x.var(1) + 1e-5).log() - (norm.running_var + 1e-5).log()
            far[name] = (float(off.abs().mean()), norm.momentum)

        return look

    handles = [
        part.register_forward_pre_hook(watcher(name))
        for name, part in copy.net.named_modules()
        if isinstance(part, Norm) and part.track_running_stats
    ]
    with evaluating(copy.net):
        copy.net(subject.x[: 4 * BATCH].clone())
    for handle in handles:
        handle.remove()
    if not far:
        return None, None
    name = max(far, key=lambda n: far[n][0])
    return name, far[name][1]


def _small_batches(subject: Subject, name: str) -> Finding | None:
    size = subject.rows.batch_size
    if size is None or size > limit("examine.norm_batch"):
        return None
    return finding(
        "CST115",
        "warning",
        0.8,
        f"Batch normalisation estimates its statistics from batches of {size}.",
        f"batch_size={size} → 32, or group or layer normalisation.",
        Evidence("rows in a batch", size, limit("examine.norm_batch") + 1, above=False),
        where=name,
    )
