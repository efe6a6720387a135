"""CST103, CST104 and CST112: gradients that vanish, explode or are never reset."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
from castalia.diagnose.record import Look
from castalia.diagnose.rules.case import Case
from castalia.diagnose.thresholds import limit
from castalia.utils.text import listing, number

__all__ = ["explodes", "never_reset", "vanishes"]

LEAST_LAYERS = 4
BOUNDED = ("tanh", "sigmoid", "hardtanh", "hardsigmoid", "softsign")
PLURAL = {"weight": "weights", "bias": "biases"}


def by_depth(case: Case, look: Look, suffix: str = "weight") -> np.ndarray:
    """Root mean square of the gradient of each layer in the order of computation.

    What is applied over and over in time, such as the gates of a cell, is no matter of depth.
    """
    found = []
    for name in (one for one in case.depth if one.rpartition(".")[0] not in case.unrolled):
        own = name.rpartition("weight")[0] + suffix
        norm = look.gradients.get(own)
        if norm is not None and own in case.weights:
            found.append(norm / math.sqrt(math.prod(case.weights[own].shape) or 1))
    return np.asarray(found, dtype=float)


def _ratio(gradients: np.ndarray) -> float:
    """First layers over last ones; NaN where too few or not numbers."""
    if len(gradients) < LEAST_LAYERS or not np.isfinite(gradients).all() or gradients.max() <= 0:
        return np.nan
    third = max(1, len(gradients) // 4)
    first, last = np.median(gradients[:third]), np.median(gradients[-third:])
    return float(max(first, 1e-30) / max(last, 1e-30))


def _geometric(gradients: np.ndarray) -> bool:
    """Whether the logarithms lie near a line over depth."""
    logs = np.log10(np.maximum(gradients, 1e-30))
    if logs.std() < limit("rounding.constant"):
        return False
    correlation = float(np.corrcoef(np.arange(len(logs)), logs)[0, 1])
    return abs(correlation) > limit("gradient.geometric")


def vanishes(case: Case) -> Iterator[Finding]:
    """Norms that shrink geometrically toward the input."""
    for suffix in PLURAL:
        profiles = [by_depth(case, look, suffix) for look in case.looks]
        ratios = np.asarray([_ratio(p) for p in profiles])
        known = np.isfinite(ratios)
        if known.sum() < 1:
            continue
        early = ratios[known][: max(3, known.sum() // 2)]
        ratio = float(np.median(early))
        profile = profiles[int(np.flatnonzero(known)[0])]
        per_layer = ratio ** (1 / (len(profile) - 1))
        shrinks = ratio < limit("gradient.shrinks") or (
            ratio < 20 * limit("gradient.shrinks") and per_layer < limit("gradient.per_layer")
        )
        if case.normalised and (suffix == "bias" or ratio > limit("gradient.shrinks_normalised")):
            continue  # normalising layers scale gradients as they like
        if shrinks and _geometric(profile):
            yield _vanishing(case, ratio, len(profile), suffix)
            return
    yield from _vanished_in_time(case)


def _vanishing(case: Case, ratio: float, layers: int, suffix: str) -> Finding:
    per_layer = ratio ** (1 / max(layers - 1, 1))
    kinds = sorted({u.kind for look in case.looks[:3] for u in look.units if not u.gate})
    inside = f" through {listing(kinds, 'and')}" if kinds else ""
    bounded = not kinds or any(kind in BOUNDED for kind in kinds)
    return finding(
        "CST103",
        "error" if case.poor else "info",
        0.92 if case.poor else 0.5,
        f"Gradients shrink to {number(per_layer, 2)} per layer{inside}: the first layers get "
        f"{number(ratio, 2)} of what the last ones get.",
        Remedy(
            "Use ReLU-like activations with He initialisation, normalisation or residual paths.",
            {"activation": "relu"},
        )
        if bounded
        else "Use He initialisation, normalisation or residual paths.",
        _shrinking(ratio, per_layer, PLURAL[suffix]),
        where=case.depth[0].rpartition(".")[0] if case.depth else None,
    )


def _shrinking(ratio: float, per_layer: float, what: str) -> Evidence:
    """Return the number beyond its bound: of all layers together, or of one."""
    bar = limit("gradient.shrinks")
    if ratio < bar:
        name = f"gradient ({what}) of the first over the last layers"
        return Evidence(name, ratio, bar, above=False)
    name = f"gradient ({what}) of a layer over that of the next"
    return Evidence(name, per_layer, limit("gradient.per_layer"), above=False)


def _vanished_in_time(case: Case) -> Iterator[Finding]:
    """A plain recurrent layer that forgets over the length of its sequences."""
    if not case.poor or case.broken or case.recurrent is None:
        return
    layer, factor, steps = case.recurrent
    left = factor**steps
    if steps >= 15 and left < limit("gradient.shrinks"):
        yield finding(
            "CST103",
            "error",
            0.8,
            f"Over {steps} steps the recurrent layer passes {number(left, 2)} of a gradient back, "
            f"{number(factor, 2)} at each step.",
            "Use an LSTM or GRU, shorter sequences, or orthogonal recurrent weights.",
            Evidence(
                "what is left of a gradient over the sequence",
                left,
                limit("gradient.shrinks"),
                above=False,
            ),
            where=layer,
        )


def explodes(case: Case) -> Iterator[Finding]:
    """Norms that grow geometrically toward the input, or leap by orders of magnitude."""
    if case.adversarial:
        return
    evidence = []
    profiles = [by_depth(case, look) for look in case.looks]
    ratios = [r for p in profiles if np.isfinite(r := _ratio(p)) and _geometric(p)]
    if ratios and (r := float(np.median(ratios))) > limit("gradient.grows"):
        what = "gradient of the first over the last layers"
        evidence.append(Evidence(what, r, limit("gradient.grows")))
    clipped = _clipped(case)
    steep = case.sensitivity[~np.isnan(case.sensitivity)]
    large = len(steep) == 0 or steep.max() > limit("gradient.steep")
    if case.spike > limit("gradient.spike") and large and not clipped:
        what = "largest gradient norm over the median one"
        evidence.append(Evidence(what, case.spike, limit("gradient.spike")))
    bar, early = limit("gradient.huge"), steep[: max(3, len(steep) // 2)]
    # A loss near zero changes by many times its size however small the step.
    lasts = (case.poor or case.broken) and not case.acts and not case.signed
    if len(early) and early.max() > bar and not clipped and lasts:
        what = "relative change of the loss over that of the weights"
        evidence.append(Evidence(what, float(early.max()), bar))
    if case.recurrent is not None and case.recurrent[2] >= 8:
        grown = case.weights_radius ** min(case.recurrent[2], 50)
        if grown > limit("gradient.grows") and not clipped:
            what = "growth of a gradient over the sequence"
            evidence.append(Evidence(what, grown, limit("gradient.grows")))
    overflow = len(case.totals) and not np.isfinite(case.totals[-1]) and not case.broken
    if not evidence or not (case.poor or case.broken or overflow or _spiky(case)):
        return
    yield finding(
        "CST104",
        "error",
        min(0.9, 0.6 + 0.12 * len(evidence)),
        f"Gradients explode: {evidence[0].sentence}.",
        Remedy("Clip the norm of the gradient to 1 and lower the rate.", {"training__clip": 1.0}),
        *evidence,
        where=case.depth[0].rpartition(".")[0] if case.depth else None,
    )


def _total(norms: dict[str, float | None]) -> float:
    values = np.asarray([v for v in norms.values() if v is not None], dtype=float)
    return float(np.sqrt((values**2).sum())) if len(values) else np.nan


def _clipped(case: Case) -> bool:
    """Whether the applied gradients are smaller than the computed ones at most looks."""
    pairs = [(_total(look.gradients), _total(dict(look.applied))) for look in case.looks]
    known = [(a, b) for a, b in pairs if np.isfinite(a) and np.isfinite(b) and a > 0]
    smaller = [b < limit("gradient.clipped") * a for a, b in known]
    return bool(known) and float(np.mean(smaller)) > limit("gradient.clipped_share")


def _spiky(case: Case) -> bool:
    """Whether some losses stand far above their neighbours."""
    x = case.finite
    if len(x) < 30:
        return False
    middle = np.median(np.lib.stride_tricks.sliding_window_view(x, 9), axis=1)
    return bool((x[4:-4] / np.maximum(middle, limit("rounding.zero"))).max() > 20)


def never_reset(case: Case) -> Iterator[Finding]:
    """Gradients of earlier steps that are still there."""
    known = [look.stale for look in case.looks if look.stale is not None]
    if len(known) < 2 or not case.optimizer:
        return
    share = float(np.mean(known))
    if share > limit("steps.stale"):
        yield finding(
            "CST112",
            "error",
            0.97,
            "Gradients are never reset: each step adds to those of all steps before.",
            "Call optimizer.zero_grad() before each backward().",
            Evidence("share of steps with left-over gradients", share, limit("steps.stale")),
        )
