"""Whether the network uses its input: outputs over rows, and the loss on mixed-up rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.diagnose.examination.baseline_errors import baselines
from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.measures import difference
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.trials import batch_losses, forward
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit

__all__ = ["input_blind"]

NAME = "input-blind"
LEAST_STEPS = 60


def input_blind(subject: Subject) -> Outcome:
    """Give each row the input of another; a network that looks must do worse."""
    if subject.problem is not None or len(subject.x) < 16:
        return skipped(NAME, "needs a module that can be run and some rows.")
    if not subject.trainable and not subject.trained:
        return saw(NAME, {}, [_same(subject, subject.copy().net)])
    learned = subject.learned
    if not learned.own and len(learned.losses) < LEAST_STEPS:
        return skipped(NAME, "the time was too short to train a copy.")
    constant = _same(subject, learned.copy.net)
    order = torch.from_numpy(np.random.default_rng(subject.seed).permutation(len(subject.x)))
    honest = batch_losses(learned.copy, subject.x, subject.y)
    mixed = batch_losses(learned.copy, subject.x[order.to(subject.device)], subject.y)
    if not np.isfinite(honest).all() or not np.isfinite(mixed).all():
        return saw(NAME, {"loss": float(honest.mean())}, [constant])
    gap, sure = difference(mixed, honest)
    rise = gap / max(abs(float(honest.mean())), 1e-12)
    numbers = {"loss": float(honest.mean()), "loss on mixed-up inputs": float(mixed.mean())}
    if (
        constant is not None
        or rise > limit("examine.input_matters")
        or sure > limit("examine.sure")
    ):
        return saw(NAME, numbers, [constant])
    known: Any = subject.once(baselines)
    if known is None or not known.signal:
        return saw(NAME, numbers)  # perhaps the input says nothing about the target
    return saw(NAME, numbers, [_as_well(rise)])


def _same(subject: Subject, net: torch.nn.Module) -> Finding | None:
    outputs = forward(net, subject.x)
    if isinstance(outputs, tuple | list) and outputs:
        outputs = outputs[0]
    if not isinstance(outputs, Tensor) or len(outputs) != len(subject.x):
        return None
    out = outputs.detach().cpu().double()
    if not out.is_floating_point() or not bool(torch.isfinite(out).all()):
        return None
    spread = float(out.std(0).mean() / out.square().mean().sqrt().clamp_min(1e-12))
    if spread >= limit("examine.blind"):
        return None
    return finding(
        "CST406",
        "error",
        0.93,
        "The network gives the same output for every input.",
        "Look for dead units, a layer that is multiplied by 0, or a forward that does not use its "
        "argument.",
        Evidence(
            "spread of the outputs over rows, over their size",
            spread,
            limit("examine.blind"),
            False,
        ),
    )


def _as_well(rise: float) -> Finding:
    return finding(
        "CST406",
        "warning",
        0.85,
        "The network does as well when every row is given the input of another, though simpler "
        "models learn from these inputs.",
        "See the other findings; check that inputs and targets are in the same order, and that the "
        "input reaches the output.",
        Evidence(
            "relative rise of the loss on mixed-up inputs",
            rise,
            limit("examine.input_matters"),
            False,
        ),
    )
