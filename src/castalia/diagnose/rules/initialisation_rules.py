"""CST109: a start from which signals are too large or too small."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.case_objective import BINARY_LOSSES
from castalia.diagnose.rules.input_rules import inputs_unscaled
from castalia.diagnose.thresholds import limit

__all__ = ["drowned", "poor_start"]

SCHEMES = "Use an initialisation that keeps the spread: He for ReLU, Glorot for tanh and sigmoid."
BIASES = "size of a hidden layer's biases"


def poor_start(case: Case) -> Iterator[Finding]:
    """Loss of the first step far above guessing, or a spread that changes by orders with depth."""
    if not case.looks or case.looks[0].step > 0:
        return
    evidence = [*_scale(case), *_biases(case)]
    if not case.adversarial:  # the first losses of a game say nothing
        evidence = [*_loss(case), *_depth(case), *evidence]
    if not evidence:
        return
    passed = case.well and any(inputs_unscaled(case))  # large inputs, large answers, and it learnt
    yield finding(
        "CST109",
        "info" if passed else "warning",
        0.9 if drowned(case) else min(0.9, 0.6 + 0.15 * len(evidence)),
        f"The network starts badly: {evidence[0].sentence}.",
        "Begin with biases at 0." if evidence[0].what == BIASES else SCHEMES,
        *evidence,
    )


def _loss(case: Case) -> list[Evidence]:
    """Return the first loss over that of guessing, or of an answer of zero."""
    if not case.comparable:
        return []
    reference = case.guess
    if case.head.loss in BINARY_LOSSES:
        reference = max(reference, float(np.log(2)))  # what even odds cost
    if case.head.loss in ("cross_entropy", "nll") and len(case.head.outputs) >= 2:
        if case.head.chain:
            return []  # not the plain results of a layer: cosines times thirty, say
        reference = float(np.log(max(case.head.outputs[1], 2)))
    if case.head.loss in ("mse", "l1") and case.targets is not None:
        power = 2 if case.head.loss == "mse" else 1
        reference = float((np.abs(case.targets.astype(float)) ** power).mean())
    if (
        not np.isfinite(reference)
        or reference <= limit("rounding.constant")
        or not np.isfinite(case.initial)
    ):
        return []
    rows = case.record.train
    first = [case.data_loss(o, t) for o, t in zip(rows.outputs[:1], rows.targets[:1], strict=True)]
    initial = min([case.initial, *(loss for loss in first if np.isfinite(loss))])  # no penalty
    ratio = initial / reference
    bar = limit("start.loss") * (3 if case.head.loss == "mse" else 1)
    return [Evidence("first loss over that of guessing", ratio, bar)] if ratio > bar else []


def _depth(case: Case) -> list[Evidence]:
    """Return how the spread of activations changes from the first hidden layer to the last."""
    spreads = [u.std for u in case.looks[0].units if not u.gate and u.kind != "sigmoid"]
    if len(spreads) < 3 or case.normalised or min(spreads) < 0:
        return []
    change = (spreads[-1] + 1e-30) / (spreads[0] + 1e-30)
    bar = limit("start.depth")
    if change > bar:
        return [Evidence("growth of the spread over depth", change, bar)]
    if change < 1 / bar and case.poor:
        return [
            Evidence("share of the spread left at the last layer", change, 1 / bar, above=False)
        ]
    return []


def _scale(case: Case) -> list[Evidence]:
    """Return the size of weights far from what the fan-in calls for, where training got nowhere."""
    look = case.looks[0]
    factors = []
    for name in case.depth:
        weight = case.weights[name]
        rms = look.weights.get(name)
        fan_in = float(np.prod(weight.shape[1:]))
        hidden = name.rpartition(".")[0] not in case.last_layers  # the last may begin small
        if rms is not None and rms > 0 and fan_in and hidden:
            factors.append(rms * np.sqrt(fan_in))
    if not factors:
        return []
    low, high = min(factors), max(factors)
    what, middle = "size of the weights over 1/√(fan-in)", float(np.median(factors))
    bar = limit("start.small_median")
    if len(factors) >= 4 and middle < bar and _plateau(case):
        return [Evidence(what, middle, bar, above=False)]
    bar = limit("start.small")
    if low < bar and case.poor and not case.normalised:
        return [Evidence(what, low, bar, above=False)]
    harmed = case.poor or case.broken
    bar = limit("start.large" if harmed else "start.huge")
    if high > bar and not case.normalised:
        return [Evidence(what, high, bar)]
    bar = limit("start.huge")  # normalised results do not change, but steps are short beside these
    return [Evidence(what, middle, bar)] if middle > bar else []


def _biases(case: Case) -> list[Evidence]:
    """Return biases of a hidden layer that drown what its weights add."""
    sizes = [
        size
        for name, size in case.looks[0].weights.items()
        if name.endswith("bias") and _plain(case, name.rpartition(".")[0])
    ]
    bar = limit("start.bias")
    return [Evidence(BIASES, s, bar) for s in sizes if s > bar][:1]


def drowned(case: Case) -> bool:
    """Whether weights or biases begin beyond all custom: nothing that comes later explains them."""
    if not case.looks or case.looks[0].step > 0:
        return False
    huge = limit("start.huge")
    return any(one.what == BIASES or one.value > huge for one in [*_scale(case), *_biases(case)])


def _plain(case: Case, layer: str) -> bool:
    """Whether a layer is hidden and dense or convolutional."""
    weight = case.weights.get(f"{layer}.weight")
    known = weight is not None and weight.kind.startswith(("Linear", "Conv"))
    return known and layer not in case.last_layers


def _plateau(case: Case) -> bool:
    """Whether a deep network without normalisation long stayed where guessing is, then moved."""
    if case.normalised or not np.isfinite(case.guess):
        return False
    early, late = limit("start.plateau") * case.guess, limit("start.plateau_left") * case.final
    return case.level(0.1, 0.3) > early > late
