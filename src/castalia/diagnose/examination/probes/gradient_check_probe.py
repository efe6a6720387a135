"""Gradients of custom autograd functions against finite differences.

Torch's own operations differentiate rightly, so only networks whose graph holds a node written in
Python are checked, module by module.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from castalia.autodiff import GradientCheck, Mismatch, check_gradients
from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.task_inference import graph_nodes
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.errors import CastaliaError
from castalia.utils.text import number, shorten

__all__ = ["gradient_check"]

NAME = "gradient-check"
ROWS = 2
ENTRIES = 4  # of each tensor


def gradient_check(subject: Subject) -> Outcome:
    """Check modules that contain functions with a backward of their own."""
    if not subject.trainable:
        return saw(NAME, {})
    copy = subject.copy()
    loss = copy.loss(subject.x[:ROWS].clone(), subject.y[:ROWS])
    own = _functions(loss)
    if not own:
        return saw(NAME, {"functions": 0})
    notes, findings = [], []
    calls = _calls(copy.net, subject.x[:ROWS])
    for name, part, inputs in calls:
        if subject.clock.over:
            notes.append(f"{NAME}: time was up before `{name}`.")
            break
        try:
            found = check_gradients(part, *inputs, n_samples=ENTRIES, random_state=subject.seed)
        except (CastaliaError, RuntimeError, TypeError) as error:
            notes.append(f"{NAME}: `{name}` was not checked ({shorten(str(error), 120)}).")
            continue
        findings.append(_verdict(name, found, own))
    numbers = {"functions": len(own), "modules": [name for name, _, _ in calls]}
    outcome = saw(NAME, numbers, findings)
    if not calls:
        return skipped(NAME, "functions with a backward of their own are in no module.")
    return Outcome(NAME, outcome.numbers, outcome.findings, tuple(notes))


def _functions(loss: Tensor) -> list[str]:
    """Name the nodes of the graph whose backward is written in Python."""
    return sorted(
        {
            type(node).__name__.removesuffix("Backward")
            for node in graph_nodes(loss)
            if isinstance(node, torch.autograd.function.BackwardCFunction)
        }
    )


def _calls(net: nn.Module, x: Tensor) -> list[tuple[str, nn.Module, tuple[Any, ...]]]:
    """Return the innermost modules that use such functions, with the inputs they were given."""
    found: dict[str, tuple[nn.Module, tuple[Any, ...]]] = {}

    def watcher(name: str) -> Any:
        def look(part: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            first = output[0] if isinstance(output, tuple | list) and output else output
            if isinstance(first, Tensor) and first.requires_grad and _between(first, inputs):
                found.setdefault(name, (part, tuple(_loose(value) for value in inputs)))

        return look

    handles = [
        part.register_forward_hook(watcher(name or type(part).__name__))
        for name, part in net.named_modules()
    ]
    start = x.clone().requires_grad_(True) if x.is_floating_point() else x.clone()
    net(start)
    for handle in handles:
        handle.remove()
    inner = [
        name
        for name, (part, _) in found.items()
        if not any(
            other is not part and other in set(part.modules()) for other, _ in found.values()
        )
    ]
    return [(name, *found[name]) for name in inner]


def _between(output: Tensor, inputs: tuple[Any, ...]) -> bool:
    """Whether a node written in Python lies between inputs and output."""
    stops = {v.grad_fn for v in inputs if isinstance(v, Tensor) and v.grad_fn is not None}
    queue, seen = [output.grad_fn], {output.grad_fn}
    while queue:
        node = queue.pop()
        if node is None or node in stops:
            continue
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            return True
        for following, _ in node.next_functions:
            if following not in seen:
                seen.add(following)
                queue.append(following)
    return False


def _loose(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _verdict(name: str, found: GradientCheck, own: list[str]) -> Finding | None:
    wrong = [m for m in found.mismatches if m.kind != "detached" and not _deliberate(m)]
    if wrong:
        return _wrong(name, wrong[0], own)
    missing = [m for m in found.mismatches if m.kind == "detached"]
    return _missing(name, missing[0], own) if missing else None


def _deliberate(m: Mismatch) -> bool:
    """Whether a function is flat where a slope is pretended (straight-through), or reversed."""
    return m.numeric == 0 or abs(m.numeric) < limit("examine.flat") * abs(m.analytic)


def _wrong(name: str, worst: Mismatch, own: list[str]) -> Finding:
    return finding(
        "CST402",
        "error",
        0.9,
        f"The backward of `{', '.join(own)}` is wrong: the gradient of `{worst.name}` is "
        f"{number(worst.analytic, 3)} where the slope is {number(worst.numeric, 3)}. Training "
        "follows a wrong direction, however long it runs.",
        f"Mend the backward of `{', '.join(own)}`, or leave it to autograd.",
        Evidence("relative error of the gradient", worst.error, limit("examine.gradient_error")),
        where=name,
    )


def _missing(name: str, worst: Mismatch, own: list[str]) -> Finding:
    return finding(
        "CST110",
        "error",
        0.9,
        f"The backward of `{', '.join(own)}` gives no gradient for `{worst.name}`, though the "
        f"output depends on it (slope {number(worst.numeric, 3)}).",
        f"Return the gradient of every input in the backward of `{', '.join(own)}`.",
        Evidence("gradient", 0.0),
        Evidence("slope", worst.numeric),
        where=name,
    )
