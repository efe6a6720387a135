"""A language model must not see what it has to predict: change the future, watch the past."""

from __future__ import annotations

import torch
from torch import Tensor

from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.module_copies import scalar
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.nn.network_modes import evaluating

__all__ = ["causality"]

NAME = "causality"
ROWS = 8


def causality(subject: Subject) -> Outcome:
    """Perturb the inputs after several places t; outputs up to t must not change."""
    if subject.task != "lm":
        return saw(NAME, {})
    x = subject.x[:ROWS]
    if subject.problem is not None or x.ndim < 2 or x.shape[1] < 3:
        return skipped(NAME, "needs a module that can be run on sequences of 3 places or more.")
    copy = subject.copy()
    with torch.no_grad(), evaluating(copy.net):
        before = _by_time(copy.net(x.clone()), x)
        if before is None:
            return skipped(NAME, "the outputs have no axis as long as the sequence.")
        worst, place = 0.0, 0
        for t in _places(x.shape[1]):
            after = _by_time(copy.net(_other_future(x, t, subject.x)), x)
            if after is None:
                continue
            size = float(before.abs().max().clamp_min(1e-12))
            moved = float((after - before)[:, : t + 1].abs().max()) / size
            if moved > worst:
                worst, place = moved, t
    numbers = {"largest change": worst}
    if worst <= limit("examine.future"):
        return saw(NAME, numbers, [_copies(subject)])
    found = finding(
        "CST505",
        "error",
        0.98,
        f"Outputs up to position {place} change when only inputs after it are changed: the model "
        "sees what it is to predict.",
        "Mask the future: is_causal=True or a triangular mask in attention, padding on the left "
        "only in convolutions, no bidirectional layer.",
        Evidence("relative change of earlier outputs", worst, limit("examine.future")),
    )
    return saw(NAME, numbers, [found])


def _by_time(outputs: object, x: Tensor) -> Tensor | None:
    """Return the outputs as (batch, time, …); None where no axis is the time."""
    if isinstance(outputs, tuple | list) and outputs:
        outputs = outputs[0]
    if not isinstance(outputs, Tensor) or outputs.ndim < 2:
        return None
    batch, time = x.shape[:2]
    if outputs.shape[0] == batch * time:
        return outputs.unflatten(0, (batch, time))
    if outputs.shape[1] == time:
        return outputs
    axes = [axis for axis in range(2, outputs.ndim) if outputs.shape[axis] == time]
    return outputs.movedim(axes[-1], 1) if axes else None


def _places(time: int) -> list[int]:
    return sorted({0, time // 4, time // 2, time - 2})


def _other_future(x: Tensor, t: int, known: Tensor) -> Tensor:
    """Return x with everything after t replaced: other tokens of the data, or other numbers."""
    changed = x.clone()
    if x.is_floating_point():
        changed[:, t + 1 :] += 1.0 + changed[:, t + 1 :].abs()
        return changed
    vocabulary = known.unique()
    where = torch.searchsorted(vocabulary, changed[:, t + 1 :].contiguous())
    changed[:, t + 1 :] = vocabulary[(where + 1 + t % 3) % len(vocabulary)]
    return changed


def _copies(subject: Subject) -> Finding | None:
    """Find targets that are not shifted: then copying the input would be a perfect prediction."""
    outputs, x, y = subject.outputs, subject.x[: len(subject.outputs)], subject.y
    if not isinstance(outputs, Tensor) or outputs.ndim != 3 or x.is_floating_point():
        return None
    if x.shape != y[: len(x)].shape or not bool((x == y[: len(x)]).all()):
        return None
    last = outputs.shape[1] == x.shape[1]
    width = outputs.shape[2 if last else 1]
    if int(x.max()) >= width:
        return None
    logits = 20.0 * torch.nn.functional.one_hot(x, width).to(outputs)
    loss = scalar(subject.loss_fn(logits if last else logits.movedim(-1, 1), y[: len(x)]))
    bar = limit("examine.copied_loss")
    if float(loss) > bar:
        return None  # the loss shifts the targets itself
    return finding(
        "CST206",
        "error",
        0.95,
        "The targets are the inputs themselves: copying each token is a perfect prediction.",
        "Shift by one: inputs tokens[:, :-1], targets tokens[:, 1:].",
        Evidence("loss of copying the input", float(loss), bar, above=False),
    )
