"""Outputs held against the classes that were seen, and against the shape of the targets."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
from castalia.utils.text import plural

__all__ = ["sizes"]

NAME = "sizes"
ROWS_A_CLASS = 20  # rows for each output, from which on a class without rows is not chance


def sizes(subject: Subject) -> Outcome:
    """Compare the number of outputs with the classes, and the shapes of outputs and targets."""
    outputs = subject.outputs
    if not isinstance(outputs, Tensor):
        return skipped(NAME, "the module returns no single tensor.")
    if subject.task == "multiclass" and not subject.y.is_floating_point() and outputs.ndim == 2:
        return _classes(subject, outputs.shape[1])
    if subject.task in ("binary", "regression", "multilabel") and subject.problem is None:
        return _shapes(subject, outputs)
    return saw(NAME, {})


def _classes(subject: Subject, width: int) -> Outcome:
    targets = [rows.all_y.reshape(-1) for rows in (subject.rows, subject.held) if rows is not None]
    seen = torch.cat([t.cpu().long() for t in targets])
    seen = seen[seen >= 0]  # -100 marks rows that do not count
    if len(seen) == 0:
        return skipped(NAME, "there are no labels.")
    count, highest = len(seen.unique()), int(seen.max())
    numbers = {"outputs": width, "classes": count, "largest label": highest}
    exclusive = subject.kind == "nll" or isinstance(
        subject.loss_fn, nn.CrossEntropyLoss | nn.NLLLoss
    )
    if highest >= width and (exclusive or subject.problem is not None):
        return saw(NAME, numbers, [_too_few(width, count, highest)])
    sure = len(seen) >= ROWS_A_CLASS * width or (width >= 2 * count and len(seen) >= 100)
    if width > highest + 1 and sure:
        return saw(NAME, numbers, [_too_many(width, highest)])
    return saw(NAME, numbers)


def _too_few(width: int, count: int, highest: int) -> Finding:
    if count == width:
        cure = Remedy(f"Subtract {highest - width + 1} from the labels, so that they begin at 0.")
    else:
        cure = Remedy(f"Outputs {width} → {highest + 1}.")
    return finding(
        "CST306",
        "error",
        0.98,
        f"The module has {plural(width, 'output')}, but labels go up to {highest}.",
        cure,
        Evidence("largest label", highest, width - 1),
    )


def _too_many(width: int, highest: int) -> Finding:
    spare = width - highest - 1
    return finding(
        "CST306",
        "warning",
        0.85,
        f"The module has {width} outputs, but labels end at {highest}: "
        f"{plural(spare, 'output')} {'has' if spare == 1 else 'have'} no class.",
        f"Outputs {width} → {highest + 1}.",
        Evidence("outputs", width, highest + 1),
    )


def _shapes(subject: Subject, outputs: Tensor) -> Outcome:
    """Find (N, 1) against (N,): the loss of a batch is then not the mean over its rows."""
    y = subject.y[: len(outputs)]
    numbers = {"outputs": tuple(outputs.shape), "targets": tuple(y.shape)}
    column = {outputs.ndim, y.ndim} == {1, 2} and outputs.numel() == y.numel() and len(y) > 1
    if not column:
        return saw(NAME, numbers)
    with torch.no_grad():
        whole = subject.loss_fn(outputs.detach(), y).mean()
        rows = torch.stack(
            [
                subject.loss_fn(outputs[i : i + 1].detach(), y[i : i + 1]).mean()
                for i in range(len(y))
            ]
        )
    near = [
        torch.isclose(whole, rows.mean(), rtol=1e-3),
        torch.isclose(whole, rows.sum(), rtol=1e-3),
    ]
    if any(near) or not torch.isfinite(whole):
        return saw(NAME, numbers)
    a, b = tuple(outputs.shape), tuple(y.shape)
    cure = "outputs.squeeze(1)" if outputs.ndim == 2 else "targets.squeeze(1)"
    found = finding(
        "CST304",
        "error",
        0.97,
        f"Outputs of shape {a} and targets of shape {b} are broadcast against each other: every "
        "output is compared with every target.",
        f"Use {cure}, so that both have the same shape.",
        Evidence("loss of the batch", float(whole)),
        Evidence("mean loss of its rows", float(rows.mean())),
    )
    return saw(NAME, numbers, [found])
