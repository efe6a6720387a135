"""CST301, CST305 and CST306: the last layer and what follows it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.record import Activation
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.case_objective import CROSS_ENTROPIES, REGRESSIONS
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["wrong_activation", "wrong_axis", "wrong_size"]

POSITIVE = ("exp", "softplus", "relu", "sigmoid", "softmax", "clamp", "abs", "pow")
SQUASHING = ("softmax", "sigmoid", "tanh", "relu", "log_sigmoid", "hardtanh", "hardsigmoid")


def wrong_activation(case: Case) -> Iterator[Finding]:
    """An output activation that does not suit the loss or the targets."""
    head = case.head
    if case.adversarial:
        yield from _twice_in_a_game(case)
        return
    last = head.chain[0] if head.chain else None
    kind = last.kind if last is not None else ""
    over = last.dim if last is not None and kind in ("softmax", "log_softmax") else None
    if last is not None and over is not None and last.shape[over : over + 1] == (1,):
        yield _wrong(
            case,
            f"A {kind} over one unit is always {'1' if kind == 'softmax' else '0'}.",
            "Use a sigmoid for one output, or two outputs.",
            0.97,
        )
    elif head.loss in CROSS_ENTROPIES and _one_output(case):
        yield _wrong(
            case,
            "A cross-entropy over one output is always 0: softmax over one unit is 1.",
            "Use BCEWithLogitsLoss for one output, or two outputs.",
            0.97,
        )
    elif head.loss == "cross_entropy" and kind in SQUASHING:
        yield _wrong(
            case,
            f"The outputs go through {kind} before a cross-entropy, which applies "
            "its own softmax to logits.",
            f"Remove the {kind} at the end.",
            0.95,
        )
    elif head.loss == "cross_entropy" and kind == "log_softmax":
        yield _wrong(
            case,
            "Log-probabilities go into a cross-entropy, which normalises them again.",
            "Use nll_loss, or give logits.",
            0.5,
            "info",
        )
    elif head.loss == "nll" and kind != "log" and kind not in ("log_softmax", "log_sigmoid"):
        yield from _not_log_probabilities(case, kind)
    elif head.loss == "bce_logits" and kind in SQUASHING:
        yield _wrong(
            case,
            f"The outputs go through {kind} before a loss that applies a sigmoid of its own.",
            f"Remove the {kind} at the end, or use BCELoss.",
            0.95,
        )
    elif head.loss == "bce" and kind == "softmax" and case.task == "binary":
        yield _wrong(case, "A softmax feeds a binary cross-entropy.", "Use a sigmoid.", 0.9)
    elif head.loss == "bce" and kind == "softmax" and _several_at_once(case):
        yield _wrong(
            case,
            "A softmax makes labels share a probability of 1, and rows have none or several.",
            "Use a sigmoid for each label.",
            0.93,
        )
    elif head.loss == "kl_div" and kind == "softmax":
        yield _wrong(
            case,
            "Probabilities go into kl_div, which takes log-probabilities.",
            "Use log_softmax.",
            0.9,
        )
    elif head.loss in ("poisson", "poisson_rate"):
        yield from _no_rate(case, kind)
    elif head.loss in REGRESSIONS:
        yield from _out_of_reach(case, kind)
    elif head.loss == "unknown":
        yield from _no_probabilities(case, kind)


def _no_probabilities(case: Case, kind: str) -> Iterator[Finding]:
    """Judge logged outputs under a loss of the user's own, by their range and the labels."""
    y = case.targets
    if y is None or not np.isin(y, (0, 1)).all() or len(np.unique(y)) < 2:
        return
    if kind == "relu":
        yield _wrong(
            case,
            "Rectified outputs stand for probabilities: they are exactly 0 or beyond 1.",
            "Use a sigmoid, or a loss that takes logits.",
            0.85,
        )
    elif kind == "softmax" and _several_at_once(case):
        yield _wrong(
            case,
            "A softmax makes labels share a probability of 1, and rows have none or several.",
            "Use a sigmoid for each label.",
            0.9,
        )


def _no_rate(case: Case, kind: str) -> Iterator[Finding]:
    """Rates where a Poisson loss takes their logarithm, or numbers of either sign as rates."""
    if case.head.loss == "poisson" and kind in POSITIVE:
        yield _wrong(
            case,
            f"Outputs go through {kind} before a Poisson loss that takes the logarithm of a rate.",
            f"Remove the {kind} at the end, or use log_input=False.",
            0.85,
            "warning",
        )
    elif case.head.loss == "poisson_rate" and kind == "relu":
        yield _wrong(
            case,
            "A ReLU gives rates of 0 to a Poisson loss, which takes their logarithm.",
            "Use log_input=True without it, or end with exp or softplus.",
            0.85,
            "warning",
        )
    elif case.head.loss == "poisson_rate" and kind not in POSITIVE and (case.broken or case.stuck):
        yield _wrong(
            case,
            "Outputs of either sign go into a Poisson loss as rates, whose logarithm it takes.",
            "Use log_input=True, or end with exp or softplus.",
            0.9,
        )


def _several_at_once(case: Case) -> bool:
    """Whether rows of targets hold several ones, or none: labels that do not exclude each other."""
    y = case.targets
    if y is None or y.ndim != 2 or y.shape[1] < 2 or not np.isin(y, (0, 1)).all():
        return False
    return bool((y.sum(axis=1) != 1).mean() > limit("labels.several"))


def _not_log_probabilities(case: Case, kind: str) -> Iterator[Finding]:
    negative = case.finite < -limit("outputs.negative")
    if case.finite.size and negative.mean() > limit("outputs.negative_share"):
        what = f"through {kind}" if kind else "as they are"
        yield _wrong(
            case,
            f"Outputs go {what} into nll_loss, which takes log-probabilities: the "
            f"loss is negative ({number(case.final, 3)}).",
            "Use cross_entropy on logits, or log_softmax before nll_loss.",
            0.97,
        )


def _out_of_reach(case: Case, kind: str) -> Iterator[Finding]:
    """Targets that a bounded output cannot reach."""
    ranges = {
        "relu": (0.0, np.inf),
        "sigmoid": (0.0, 1.0),
        "tanh": (-1.0, 1.0),
        "softmax": (0.0, 1.0),
        "softplus": (0.0, np.inf),
        "hardsigmoid": (0.0, 1.0),
        "exp": (0.0, np.inf),
    }
    y = case.targets
    if kind not in ranges or y is None:
        return
    low, high = ranges[kind]
    flat = y.reshape(-1).astype(float)
    slack = limit("outputs.slack") * max(flat.std(), limit("rounding.zero"))
    out = float(((flat < low - slack) | (flat > high + slack)).mean())
    bar = limit("outputs.out_of_reach")
    if out > bar:
        yield _wrong(
            case,
            f"{number(100 * out, 2)} % of the targets ({number(float(flat.min()), 3)} to "
            f"{number(float(flat.max()), 3)}) lie outside what {kind} can give.",
            "End a regression with a plain linear layer.",
            0.93,
            evidence=Evidence("share of targets out of reach", out, bar),
        )


def _one_output(case: Case) -> bool:
    shape = case.head.outputs
    return len(shape) >= 2 and shape[1] == 1 and case.head.log_softmax is not None


def _twice_in_a_game(case: Case) -> Iterator[Finding]:
    """A softmax twice, of classes that a player predicts too: their loss is one of several."""
    if any(activation.twice for look in case.looks for activation in look.softmaxes):
        yield _wrong(
            case,
            "Classes go through softmax before a cross-entropy, which applies its own softmax to "
            "logits.",
            "Remove the softmax before the cross-entropy.",
            0.9,
        )


def _wrong(
    case: Case,
    summary: str,
    cure: str,
    sure: float,
    severity: str = "error",
    evidence: Evidence | None = None,
) -> Finding:
    given = evidence or Evidence("loss at the end", case.final)
    return finding("CST301", severity, sure, summary, cure, given, where=case.head.layer)


def wrong_axis(case: Case) -> Iterator[Finding]:
    """Probabilities that sum to one over the batch, over time, or over the queries."""
    look = next((look for look in case.looks if look.softmaxes), None)
    if look is None:
        return
    ends = [a for a in (case.head.log_softmax, *case.head.chain) if a is not None]
    for activation in look.softmaxes:
        axis = _wrong_axis(case, activation, look.size, activation in ends)
        if axis is not None:
            shape = activation.shape
            yield finding(
                "CST305",
                "error",
                0.95,
                f"A {activation.kind} of shape {tuple(shape)} runs over the {axis} "
                f"(dim={activation.dim}).",
                _right_axis(shape, axis),
                Evidence("axis of the softmax", float(activation.dim or 0)),
                where=case.head.layer,
            )
            return


def _right_axis(shape: tuple[int, ...], wrong: str) -> str:
    if wrong == "places":
        return "Use dim=1, where nll_loss expects the classes."
    return f"Use dim={len(shape) - 1}." if shape[-1] > 1 else "Use the axis of the positions."


def _wrong_axis(case: Case, activation: Activation, rows: int, last: bool) -> str | None:
    """Name the axis that a softmax should not run over; None if it runs over a right one."""
    shape, dim = activation.shape, activation.dim
    if dim is None or len(shape) < 2 or dim >= len(shape):
        return None
    if dim == 0 and shape[0] > 1 and (shape[-1] > 1 or (len(shape) > 2 and shape[0] == rows)):
        return "batch"
    # Log-probabilities (N, K, …) of nll_loss have their classes on the second axis.
    likelihood = case.head.loss in ("nll", "cross_entropy") and activation.kind == "log_softmax"
    if last and likelihood and len(shape) > 3 and shape == tuple(case.head.outputs):
        return None if dim == 1 else "places"
    # The softmax of a cross-entropy over (N, K, T) rightly runs over the second axis.
    by_hand = case.head.loss in ("nll", "bce", "mse", "soft_cross_entropy")
    if len(shape) == 3 and dim == 1 and last and by_hand and _classes_last(case, shape):
        return "positions"
    if activation.weighs and len(shape) >= 3 and dim == len(shape) - 2 and not last:
        return "queries"
    return None


def _classes_last(case: Case, shape: tuple[int, ...]) -> bool:
    """Whether the last axis, not the second, is as long as there are classes."""
    labels = case.labels
    most = int(labels.max()) + 1 if labels is not None and len(labels) else shape[-1]
    return shape[-1] >= most and shape[-1] != shape[1]


def wrong_size(case: Case) -> Iterator[Finding]:
    """Fewer or more outputs than classes."""
    failed = case.record.failed
    before, after = case.head.broadcast or ((), ())
    elementwise = case.head.loss in (*REGRESSIONS, "bce", "bce_logits")
    columns = len(before) == 2 and len(after) == 2 and before[0] == after[0] != after[1]
    width = case.head.outputs[-1:]
    elsewhere = len(case.head.outputs) == 2 and width not in (before[-1:], after[-1:])
    if elementwise and columns and not elsewhere:
        yield _size(case, before[1], after[1], "fewer", 0.93, "error", "target columns")
        return
    if failed is not None and len(failed[0]) >= 2 and failed[2] >= failed[0][1]:
        yield _size(case, failed[0][1], failed[2] + 1, "fewer", 0.97, "error")
        return
    yield from _one_for_many(case)
    head, labels = case.head, case.labels
    if head.loss not in ("cross_entropy", "nll") or labels is None or len(labels) < 50:
        return
    tokens = case.inputs is None and case.gathered("inputs") is not None
    if len(head.outputs) < 2 or head.outputs[1] == head.outputs[0]:
        return  # pairs of a batch
    outputs = head.outputs[1]
    if tokens:
        yield from _beyond_the_vocabulary(case, outputs)
        return  # not all words of a vocabulary are met
    values, counts = np.unique(labels, return_counts=True)
    singles = int((counts <= 2).sum())  # classes still coming in: there may be more
    if len(values) < outputs and singles == 0 and counts.min() >= 5:
        unused = outputs - len(values)
        mild = unused == 1 and outputs > 3
        scattered = values[-1] - values[0] >= len(values)  # some of a set of answers, not numbered
        silent = case.learnt > limit("outputs.learnt")  # the others have fallen silent
        severity = "info" if silent or scattered else "warning"
        yield _size(case, outputs, len(values), "more", 0.7 if mild else 0.88, severity)


def _beyond_the_vocabulary(case: Case, outputs: int) -> Iterator[Finding]:
    """A language model that can answer with far more tokens than it can read."""
    tables = [w.shape[0] for w in case.record.weights if w.kind == "Embedding"]
    words = max(tables, default=outputs)
    met = int(case.labels.max()) + 1 if case.labels is not None else outputs
    if case.shifted and met <= words < outputs / 2:
        yield _size(case, outputs, words, "more", 0.88, "warning", "tokens in its embedding")


def _one_for_many(case: Case) -> Iterator[Finding]:
    """One logit of a binary loss for more than two class numbers."""
    y = case.targets
    if case.head.loss not in ("bce", "bce_logits") or y is None or y.size != len(y):
        return
    values = np.unique(y)
    if 3 <= len(values) <= 100 and np.array_equal(values, np.arange(len(values)) + values[0]):
        yield _size(case, 1, len(values), "fewer", 0.93, "error")


def _size(
    case: Case,
    outputs: int,
    classes: int,
    words: str,
    sure: float,
    severity: str,
    what: str = "classes",
) -> Finding:
    return finding(
        "CST306",
        severity,
        sure,
        f"The network has {words} outputs ({outputs}) than there are {what} ({classes}).",
        f"Give the last layer {classes} outputs.",
        Evidence("outputs", outputs, classes, above=words == "more"),
        where=case.head.layer,
    )
