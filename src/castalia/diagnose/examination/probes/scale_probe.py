"""Scales of the inputs where they meet the first layer, and of the targets of a regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.outcomes import Outcome, saw
from castalia.diagnose.examination.probes.column_probe import some
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["scales"]

NAME = "scales"
MEETS = (nn.Linear, nn.modules.conv._ConvNd, nn.RNNBase, nn.Bilinear)


def scales(subject: Subject) -> Outcome:
    """Measure root mean squares of input columns and of targets."""
    seen, name = (None, None) if subject.tokens else _arriving(subject)
    numbers: dict[str, Any] = {}
    findings: list[Finding | None] = []
    if seen is not None and bool(torch.isfinite(seen).any()):
        size, ratio, extreme = _sizes(seen)
        numbers |= {"size of the inputs": size, "ratio between columns": ratio}
        findings.append(_inputs(size, ratio, extreme, name))
    if subject.task == "regression" and bool(torch.isfinite(subject.y).all()):
        spread = float(subject.y.cpu().double().square().mean().sqrt())
        numbers["size of the targets"] = spread
        findings.append(_targets(subject, spread))
    return saw(NAME, numbers, findings)


def _arriving(subject: Subject) -> tuple[Tensor | None, str | None]:
    """Return what reaches the first layer with weights: a network may scale its input itself."""
    if subject.problem is not None:
        return (subject.x if subject.x.is_floating_point() else None), None
    caught: list[tuple[Tensor, str]] = []
    net = subject.copy().net.eval()

    def catcher(name: str) -> Any:
        def catch(_: nn.Module, inputs: tuple[Any, ...]) -> None:
            if not caught and inputs and isinstance(inputs[0], Tensor):
                caught.append((inputs[0].detach().clone(), name))

        return catch

    for name, part in net.named_modules():
        if isinstance(part, MEETS):
            part.register_forward_pre_hook(catcher(name))
    with torch.no_grad():
        net(subject.x[:512].clone())
    if not caught:
        return None, None
    seen, name = caught[0]
    return (seen if seen.is_floating_point() else None), name


def _sizes(seen: Tensor) -> tuple[float, float, np.ndarray]:
    """Return the size of the whole, the ratio between columns, and the columns far from it."""
    table = seen.cpu().double().numpy()
    size = float(np.sqrt(np.nanmean(np.square(table))))
    if table.ndim != 2:
        return size, 1.0, np.array([], dtype=int)
    spread = np.nanstd(table, axis=0)
    kept = np.flatnonzero(spread > 0)
    if len(kept) < 2:
        return size, 1.0, np.array([], dtype=int)
    by_size = kept[np.argsort(-spread[kept])]
    if spread[by_size[0]] < limit("examine.scale_wide"):
        return size, 1.0, np.array([], dtype=int)
    ratio = float(spread[by_size[0]] / spread[by_size[-1]])
    return size, ratio, by_size[spread[by_size] > limit("examine.scale_wide")]


def _inputs(size: float, ratio: float, extreme: np.ndarray, name: str | None) -> Finding | None:
    at = f" at `{name}`" if name else ""
    if ratio > limit("examine.scale_ratio"):
        return finding(
            "CST201",
            "warning",
            0.85,
            f"Columns differ in scale by a factor of {number(ratio, 2)}{at}; the widest "
            f"{'is' if len(extreme) == 1 else 'are'} {some(extreme)}.",
            "Standardise the columns: subtract the mean, divide by the standard deviation.",
            Evidence(
                "ratio of the standard deviations of columns", ratio, limit("examine.scale_ratio")
            ),
            where=some(extreme),
        )
    if size == 0 or limit("examine.scale_low") <= size <= limit("examine.scale_high"):
        return None
    high = size > limit("examine.scale_high")
    return finding(
        "CST201",
        "warning",
        0.85,
        f"Inputs{at} have a size (root mean square) of {number(size, 3)}; networks expect about 1.",
        f"Divide the inputs by {number(size, 2)}, or standardise their columns.",
        Evidence(
            "root mean square of the inputs",
            size,
            limit("examine.scale_high") if high else limit("examine.scale_low"),
            above=high,
        ),
    )


def _targets(subject: Subject, size: float) -> Finding | None:
    if limit("examine.target_low") <= size <= limit("examine.target_high"):
        return None
    high = size > limit("examine.target_high")
    mean, spread = (
        float(subject.y.cpu().double().mean()),
        float(subject.y.cpu().double().std(unbiased=False)),
    )
    return finding(
        "CST202",
        "warning",
        0.85,
        f"Targets have mean {number(mean, 3)} and standard deviation {number(spread, 3)}; the "
        "output layer starts near 0 and 1.",
        f"Train on (y - {number(mean, 3)}) / {number(spread or 1.0, 3)} and undo it afterwards.",
        Evidence(
            "root mean square of the targets",
            size,
            limit("examine.target_high") if high else limit("examine.target_low"),
            above=high,
        ),
    )
