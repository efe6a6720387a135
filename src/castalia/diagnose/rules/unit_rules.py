"""CST106, CST107 and CST108: units that are silent, pinned or alike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["alike", "dead", "dead_shares", "saturated"]

LEAST_ROWS = 48
RECTIFIERS = ("relu", "threshold", "hardtanh")


def dead(case: Case) -> Iterator[Finding]:
    """Rectified units that are zero on every row of the last looks."""
    shares, alive = dead_shares(case), {}
    if sum(look.size for look in case.looks[-4:]) < LEAST_ROWS:
        return  # too few rows to call a unit dead
    for layer, _, active in _per_layer(case, "active", first=2):
        alive[layer] = float((active.max(axis=0) > 0).mean()) if active.size else 0.0
    if not shares:
        return
    worst = max(shares, key=lambda layer: shares[layer])
    poor = case.poor and case.task != "vae"  # how low its loss can go is not known
    bar = limit("units.dead_hurting" if poor or case.broken else "units.dead")
    many = shares[worst] > limit("units.many")
    died = shares[worst] - (1 - alive.get(worst, 0.0))
    hurts = case.stuck or case.broken or (poor and shares[worst] > limit("units.dead"))
    # They were alive at the start, and what is left of them has not learnt all there is.
    known = case.task != "vae" and case.learnt < limit("case.well")
    # Dozens of units that live are a network of their own.
    enough = not many and (1 - shares[worst]) * _width(case, worst) >= limit("units.enough")
    hurts = not enough and (hurts or (died > limit("rate.died") and known))
    if shares[worst] <= bar or (shares[worst] <= limit("units.dead") and _has_only_begun(case)):
        return
    yield finding(
        "CST106",
        "error" if many and case.poor else "warning" if many or hurts else "info",
        0.9 if many else 0.75 if case.stuck or case.broken else 0.6,
        f"{number(100 * shares[worst], 2)} % of the units of `{worst}` are zero on every row seen.",
        Remedy(
            "Use leaky ReLU or GELU, a lower rate, He initialisation and biases at 0.",
            {"activation": "leaky_relu"},
        ),
        Evidence("share of dead units", shares[worst], bar),
        where=worst,
    )


def _width(case: Case, layer: str) -> int:
    """Return how many units a layer has."""
    last = _per_layer(case, "active", last=1)
    found = [active.shape[1] for name, _, active in last if name == layer]
    return found[0] if found else 0


def dead_shares(case: Case) -> dict[str, float]:
    """Return for each layer of rectified units the share that is zero on all rows lately seen."""
    shares = {}
    for layer, kind, active in _per_layer(case, "active", last=4):
        if kind in RECTIFIERS and active.size:
            share = float((active.max(axis=0) == 0).mean())
            shares[layer] = (
                share if _varies_over_rows(active) or share > limit("units.many") else 0.0
            )
    return shares


def _varies_over_rows(active: np.ndarray) -> bool:
    """Whether some unit is on for some rows and off for others; else all rows look alike to it."""
    return bool(((active > 0) & (active < 1)).any())


def _has_only_begun(case: Case) -> bool:
    """Whether the loss falls after few steps: it would be high with all units alive as well."""
    return case.steps < limit("steps.few") and case.level(0.8, 1.0) < case.level(0.5, 0.7)


def saturated(case: Case) -> Iterator[Finding]:
    """Sigmoid or tanh units that lie at their limits on most rows."""
    worst, share = None, 0.0
    for layer, _, values in _per_layer(case, "saturated", last=3):
        if values.size and float(values.mean()) > share:
            worst, share = layer, float(values.mean())
    early = max(
        (float(v.mean()) for _, _, v in _per_layer(case, "saturated", first=2) if v.size),
        default=0.0,
    )
    bar = limit("units.saturated")
    if worst is None or share <= bar or not (case.poor or early > bar):
        return
    yield finding(
        "CST107",
        "error" if case.poor and share > limit("units.saturated_most") else "warning",
        0.85 if early > bar else 0.7,
        f"Units of `{worst}` lie at the limits of their range on {number(100 * share, 2)} % of "
        "what they see, where they pass no gradient on.",
        Remedy(
            "Scale the inputs, start with smaller weights, or use ReLU.", {"activation": "relu"}
        ),
        Evidence("share of saturated activations", share, bar),
        where=worst,
    )


def _per_layer(
    case: Case, what: str, last: int = 0, first: int = 0
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield layer, kind and the per-unit shares of some looks, (looks, units), gates left out."""
    looks = [look for look in case.looks if look.units]
    looks = looks[-last:] if last else looks[:first]
    kept: dict[tuple[str, str], list[np.ndarray]] = {}
    for look in looks:
        for units in look.units:
            if not units.gate:
                kept.setdefault((units.layer, units.kind), []).append(getattr(units, what))
    for (layer, kind), values in kept.items():
        width = len(values[-1])
        yield layer, kind, np.stack([v for v in values if len(v) == width])


def _all_zero(case: Case) -> list[str]:
    """Return the weight matrices of a network that begins at zero, with tables that stay there."""
    if not case.looks or case.looks[0].step > 0:
        return []
    sizes = case.looks[0].weights
    tables = [w for w in case.record.weights if w.kind.startswith("Embedding")]
    stay = not case.depth or all(w.moved is False for w in tables)  # others learn from zero
    together = [*case.depth, *(w.name for w in tables)] if stay else []
    for names in (case.depth, together):
        if len(names) >= 2 and all(sizes.get(name) == 0 for name in names):
            return names
    return []


def alike(case: Case) -> Iterator[Finding]:
    """Units of a hidden layer that began equal and stayed so, or nearly."""
    if matrices := _all_zero(case):
        yield finding(
            "CST108",
            "error",
            0.93,
            f"All {len(matrices)} weight matrices begin at zero: no gradient reaches the hidden "
            "layers, whose units see nothing of the inputs."
            if case.depth
            else f"All {len(matrices)} tables of vectors begin at zero, and so do their gradients.",
            "Initialise at random: nn.init.kaiming_normal_(weight).",
            Evidence("weight matrices that begin at zero", len(matrices), 1),
            where=matrices[0].rpartition(".")[0],
        )
        return
    names = [n for n, w in case.weights.items() if len(w.shape) >= 2]
    for i, name in enumerate(names):
        weight = case.weights[name]
        start, end = weight.rows_equal_at_start or 0.0, weight.rows_equal_at_end or 0.0
        after = case.weights[names[i + 1]].rows_equal_at_start if i + 1 < len(names) else None
        if (
            weight.kind == "Embedding"
            or not weight.trainable
            or len(weight.shape) < 2
            or weight.shape[0] < 3
        ):
            continue
        if case.head.layer is not None and name.rpartition(".")[0] == case.head.layer:
            continue
        bar = limit("units.equal")
        # Rounding separates equal units in the end; equal at both sides, they learn as one.
        stuck = end > bar or ((after or 0.0) > bar and case.poor)
        if start > bar and stuck:
            yield finding(
                "CST108",
                "error",
                0.96 if end > bar else 0.85,
                f"The {weight.shape[0]} units of `{name}` began with equal weights and learn the "
                "same: they compute one and the same thing.",
                "Initialise at random: nn.init.kaiming_normal_(weight).",
                Evidence("share of units equal to another at the start", start, bar),
                where=name.rpartition(".")[0] or name,
            )
            return
