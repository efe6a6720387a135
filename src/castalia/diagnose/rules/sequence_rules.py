"""CST503 to CST505: a silent latent code, padding that is learnt, a future that leaks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.case_objective import REGRESSIONS
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["collapsed_code", "learns_empty_steps", "learns_padding", "sees_the_future"]

MOST_LABELS = 4096


def collapsed_code(case: Case) -> Iterator[Finding]:
    """A variational code whose dimensions carry nothing."""
    summed = case.head.reduction == "sum" or bool(case.head.others)
    if case.record.latent is None or case.steps < 20 or not (case.task == "vae" or summed):
        return
    mean, log_variance = (v.astype(float) for v in case.record.latent)
    if mean.shape != log_variance.shape or not mean.size:
        return
    if np.abs(log_variance).max() > 60 or not np.isfinite(mean).all():
        return
    divergence = 0.5 * (mean**2 + np.exp(log_variance) - log_variance - 1).mean(axis=0)
    silent = float((divergence < limit("latent.silent")).mean())
    if silent >= limit("latent.share"):
        yield finding(
            "CST503",
            "error",
            0.93,
            f"{number(100 * silent, 2)} % of the {len(divergence)} latent dimensions equal the "
            f"prior (divergence {number(float(divergence.sum()), 2)} nats in all): the decoder "
            "ignores the code.",
            "Warm up the weight of the divergence from 0, or give each dimension free bits.",
            Evidence("share of silent dimensions", silent, limit("latent.share")),
        )


def learns_padding(case: Case) -> Iterator[Finding]:
    """Padding positions that count in the loss."""
    if (
        case.head.loss not in ("cross_entropy", "nll")
        or case.head.reduction == "none"
        or case.head.weighted
    ):
        return
    pad = _padding(case)
    if pad is None or not _per_position(case) or case.targets is None:
        return
    if (case.targets == case.head.ignore_index).any():
        return  # padding is left out already
    share = float((case.targets == pad).mean()) if case.targets is not None else 0.0
    if share > limit("padding.share") and case.head.ignore_index != pad:
        yield finding(
            "CST504",
            "error" if share > limit("padding.severe") else "warning",
            0.9,
            f"{number(100 * share, 2)} % of the targets are padding (token {pad}), and the loss "
            "counts them.",
            f"Use ignore_index={pad}, or mask the loss.",
            Evidence("share of padding among the targets", share, limit("padding.share")),
        )


def _per_position(case: Case) -> bool:
    """Whether there is a target for each position of a row."""
    for inputs, targets in zip(case.record.train.inputs, case.record.train.targets, strict=True):
        if inputs is not None and targets is not None and inputs.dtype.kind in "iu":
            return targets.size >= limit("padding.positions") * min(inputs.size, MOST_LABELS)
    return case.targets is not None and case.targets.ndim >= 2


def learns_empty_steps(case: Case) -> Iterator[Finding]:
    """Rows of numbers filled up with zeros whose zero targets count in the loss."""
    shape, y = case.record.input_shape, case.targets
    if case.head.loss not in REGRESSIONS or case.head.reduction == "none" or len(shape) != 2:
        return
    x, steps = case.gathered("inputs"), shape[0]
    if x is None or y is None or x.dtype.kind != "f" or x.shape[1] != steps * shape[1]:
        return
    n = min(len(x), len(y))
    if y[:n].size != n * steps:
        return
    pairs = [
        (i, t)
        for i, t in zip(case.record.train.inputs, case.record.train.targets, strict=True)
        if i is not None and t is not None and len(i) == len(t)
    ]
    if not pairs:
        return
    x = np.concatenate([i for i, _ in pairs]).reshape(-1, steps, shape[1])
    y = np.concatenate([t.reshape(len(t), -1) for _, t in pairs])
    empty = (x == 0).all(axis=2) & (y == 0)
    ends = empty[:, ::-1].cumprod(axis=1).sum(axis=1)
    share = float(ends.sum() / max(y.size, 1))
    varied = len(np.unique(ends)) >= 3 and empty[:, 0].mean() < limit("padding.first_step")
    if share > limit("padding.share") and varied:
        yield finding(
            "CST504",
            "warning",
            0.88,
            f"{number(100 * share, 2)} % of the targets are steps that only fill rows up, and the "
            "loss counts them.",
            "Multiply the loss by a mask of the real steps and divide by their number.",
            Evidence("share of padding among the targets", share, limit("padding.share")),
        )


def _padding(case: Case) -> int | None:
    """Token that fills the ends of rows of different lengths."""
    for candidates in (case.record.train.targets, case.record.train.inputs):
        rows = [
            v
            for v in candidates
            if v is not None and v.ndim == 2 and v.dtype.kind in "iu" and v.shape[1] >= 4
        ]
        if not rows:
            continue
        width = max((r.shape[1] for r in rows), key=[r.shape[1] for r in rows].count)
        tokens = np.concatenate([r for r in rows if r.shape[1] == width])
        for ends in (tokens, tokens[:, ::-1]):
            last = ends[:, -1]
            values, counts = np.unique(last, return_counts=True)
            pad = values[counts.argmax()]
            run = (ends[:, ::-1] == pad).cumprod(axis=1).sum(axis=1)  # length of the last run
            padded = run >= 2
            outside = (ends[:, 0] == pad).mean() < limit("padding.inside")
            # No other token comes after it.
            only_there = run.sum() > limit("padding.only_there") * (ends == pad).sum()
            varied = len(np.unique(run[padded])) >= 2
            common = padded.mean() > limit("padding.padded_rows")
            if common and varied and outside and only_there:
                return int(pad)
    return None


def _repeats_its_input(case: Case) -> Iterator[Finding]:
    """A language model whose targets are its inputs, not shifted by one: it learns to copy."""
    if case.record.task != "lm":
        return
    pairs = [
        (x.reshape(-1), y.reshape(-1))
        for x, y in zip(case.record.train.inputs, case.record.train.targets, strict=True)
        if x is not None and y is not None and x.dtype.kind in "iu" and x.size == y.size
    ]
    equal = float(np.mean([np.mean(x == y) for x, y in pairs])) if pairs else 0.0
    varied = bool(pairs) and len(np.unique(pairs[-1][0])) > 2
    if equal > limit("future.copied") and varied:
        yield finding(
            "CST505",
            "error",
            0.95,
            "The targets are the input tokens themselves, not the next ones: the model is asked to "
            "repeat what it has just read.",
            "Shift by one: inputs tokens[:, :-1], targets tokens[:, 1:].",
            Evidence("share of targets equal to their input", equal, limit("future.copied")),
        )


def sees_the_future(case: Case) -> Iterator[Finding]:
    """A next-token model whose outputs change when later tokens change."""
    yield from _repeats_its_input(case)
    change = case.record.final.get("future")
    if change is not None and change > limit("future.change"):
        yield finding(
            "CST505",
            "error",
            0.97,
            "Outputs for the first half of a sequence change when the second half is changed: the "
            "model sees what it is to predict.",
            "Mask the attention with torch.triu(ones(T, T), 1), or read from left to right only.",
            Evidence("change in the first half over that of all", change, limit("future.change")),
        )
