"""Where gradients do not arrive, where numbers stop being numbers, and outputs out of reach."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.guards import seed_torch
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import listing, number, plural

__all__ = ["missing_gradients", "not_finite", "out_of_reach"]

LOSS = "the loss"
ROWS = 32


def missing_gradients(subject: Subject) -> Finding | None:
    """Find parameters that the loss depends on but autograd does not, or that nobody steps."""
    copy = subject.copy()
    copy.net.train()
    x, y = subject.x[:ROWS].clone(), subject.y[:ROWS]
    seed_torch(subject.seed)
    loss = copy.loss(x, y)
    wanted = {name: p for name, p in copy.net.named_parameters() if p.requires_grad}
    if not loss.requires_grad:
        return _detached(list(wanted), wanted)
    loss.backward()  # type: ignore[no-untyped-call]
    silent = [name for name, p in wanted.items() if p.grad is None]
    cut = [name for name in silent if _matters(subject, name)]
    return _detached(cut, wanted) if cut else _forgotten(subject)


def _matters(subject: Subject, name: str) -> bool:
    """Whether the outputs change when a parameter does."""
    copy = subject.copy()
    copy.net.eval()
    x = subject.x[:ROWS]
    with torch.no_grad():
        before = _first(copy.net(x.clone()))
        p = dict(copy.net.named_parameters())[name]
        p.add_(torch.randn_like(p) * (0.1 + p.abs()))
        after = _first(copy.net(x.clone()))
    return before is not None and after is not None and not torch.equal(before, after)


def _first(outputs: Any) -> Tensor | None:
    if isinstance(outputs, tuple | list) and outputs:
        outputs = outputs[0]
    return outputs if isinstance(outputs, Tensor) else None


def _detached(names: list[str], wanted: dict[str, nn.Parameter]) -> Finding:
    return finding(
        "CST110",
        "error",
        0.95,
        f"No gradient reaches {listing(names, 'and', 4)}, though the outputs depend on "
        f"{'it' if len(names) == 1 else 'them'}: something between them and the loss is detached.",
        "Look for .detach(), .data, .item(), torch.no_grad(), argmax or a new torch.tensor(...) in "
        "forward or in the loss.",
        Evidence("parameters without gradient", len(names), 0),
        Evidence("parameters that require one", len(wanted)),
        where=names[0] if names else None,
    )


def _forgotten(subject: Subject) -> Finding | None:
    """Find parameters that the user's optimizer was not given."""
    if not isinstance(subject.optimizer, Optimizer):
        return None
    stepped = {id(p) for group in subject.optimizer.param_groups for p in group["params"]}
    wanted = {n: p for n, p in subject.module.named_parameters() if p.requires_grad}
    left = [name for name, p in wanted.items() if id(p) not in stepped]
    if not left:
        return None
    every = len(left) == len(wanted)
    what = "any parameter of the module" if every else f"{listing(left, 'and', 4)}"
    return finding(
        "CST110",
        "error" if every else "warning",
        0.97 if every else 0.8,
        f"The optimizer was not given {what}{'' if every else ', which require gradients'}.",
        f"{type(subject.optimizer).__name__}(module.parameters(), …); or requires_grad_(False) on "
        "what is to stay as it is.",
        Evidence("parameters that the optimizer does not have", len(left), 0),
        where=left[0],
    )


def not_finite(subject: Subject) -> Finding | None:
    """Find weights, inputs or the first layer whose numbers are not finite."""
    bad = [name for name, p in subject.module.named_parameters() if not _finite(p)]
    if bad:
        return _broken(
            f"Weights of {listing(bad, 'and', 4)} are not finite.",
            "Train again with a smaller learning rate; these weights are lost.",
            bad[0],
            Evidence("parameters that are not finite", len(bad), 0),
        )
    if not _finite(subject.y):
        return _bad_rows(subject.y, "targets")
    if not _finite(subject.x):
        return _bad_rows(subject.x, "inputs")
    place = _first_broken(subject)
    if place is None:
        return None
    what = "The loss" if place == LOSS else f"The output of `{place}`"
    return _broken(
        f"{what} is not finite, while {'the outputs are' if place == LOSS else 'its input is'}.",
        "Guard logarithms, divisions and roots against 0.",
        place,
        Evidence("places that turn numbers into NaN or infinity", 1, 0),
    )


def _bad_rows(values: Tensor, what: str) -> Finding:
    count = int((~torch.isfinite(values)).reshape(len(values), -1).any(1).sum())
    return _broken(
        f"The {what} of {plural(count, 'row')} hold values that are not finite.",
        f"Drop the rows whose {what} are missing, or impute them.",
        what,
        Evidence(f"share of the rows with such {what}", count / len(values), 0.0),
    )


def _finite(value: Tensor) -> bool:
    return not value.is_floating_point() or bool(torch.isfinite(value).all())


def _first_broken(subject: Subject) -> str | None:
    """Return the first module in order of use that turns numbers into something else."""
    found: list[str] = []
    copy = subject.copy()

    def watcher(name: str) -> Any:
        def look(_: nn.Module, inputs: Any, output: Any) -> None:
            before = [v for v in inputs if isinstance(v, Tensor)]
            after = _first(output)
            if not found and after is not None and all(map(_finite, before)) and not _finite(after):
                found.append(name)

        return look

    for name, part in copy.net.named_modules():
        part.register_forward_hook(watcher(name or type(part).__name__))
    with torch.no_grad():
        loss = copy.loss(subject.x[:256].clone(), subject.y[:256])
    return found[0] if found else (None if _finite(loss) else LOSS)


def _broken(summary: str, cure: str, where: str, evidence: Evidence) -> Finding:
    return finding("CST105", "error", 0.95, summary, cure, evidence, where=where)


def out_of_reach(subject: Subject, x: Tensor, y: Tensor, outputs: Any) -> Finding | None:
    """Find targets outside the range that an output activation allows.

    The outputs are those after an attempt to fit the targets, so they have been pulled outwards.
    """
    if subject.task != "regression" or not isinstance(outputs, Tensor):
        return None
    start = subject.outputs if isinstance(subject.outputs, Tensor) else outputs
    seen = torch.cat([outputs.detach().reshape(-1), start.detach().reshape(-1)])
    low, high = float(seen.min()), float(seen.max())
    limits_of = [(0.0, 1.0, "sigmoid or softmax"), (-1.0, 1.0, "tanh"), (0.0, float("inf"), "ReLU")]
    for least, most, name in limits_of:
        beyond = float(((y < least) | (y > most)).double().mean())
        if (
            low >= least
            and high <= most
            and beyond > limit("examine.target_outside")
            and _pinned(seen, least, most)
        ):
            return finding(
                "CST301",
                "error",
                0.9,
                f"Outputs stay between {number(low, 3)} and {number(high, 3)}, as after {name}, "
                f"but targets go from {number(float(y.min()), 3)} to {number(float(y.max()), 3)}.",
                "Remove the activation after the last layer.",
                Evidence(
                    "share of targets that outputs cannot reach",
                    beyond,
                    limit("examine.target_outside"),
                ),
            )
    return None


def _pinned(seen: Tensor, least: float, most: float) -> bool:
    """Whether outputs press against a limit."""
    span = 1e-2
    return bool(((seen - least).abs() < span).any() or ((seen - most).abs() < span).any())
