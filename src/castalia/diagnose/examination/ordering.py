"""Causes first, what follows from them below."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from castalia.diagnose.findings import Finding
from castalia.diagnose.vocabulary import SEVERITIES

__all__ = ["arranged"]

FAILS = ("CST402", "CST403", "CST406", "CST404", "CST204", "CST401")
# What each cause explains. A training that never worked shows all of `FAILS`.
FOLLOWS = {
    "CST306": (*FAILS, "CST109", "CST101", "CST102"),
    "CST304": (*FAILS, "CST109", "CST101", "CST102", "CST207"),
    "CST301": (*FAILS, "CST101", "CST102"),
    "CST203": ("CST105", "CST208"),
    "CST105": FAILS,
    "CST110": (*FAILS, "CST109", "CST102"),
    "CST108": FAILS,
    "CST109": FAILS,
    "CST201": (*FAILS, "CST101", "CST102", "CST109", "CST405", "CST114"),
    "CST202": (*FAILS, "CST101", "CST102"),
    "CST101": FAILS,
    "CST102": FAILS,
    "CST115": ("CST401", "CST402", "CST403", "CST405", "CST406"),
    "CST404": ("CST402", "CST403", "CST406"),
    "CST204": ("CST403", "CST406"),
    "CST205": ("CST401", "CST405", "CST402", "CST403"),
    "CST208": ("CST401", "CST403", "CST405"),
    "CST207": ("CST401", "CST403", "CST405"),
    "CST401": ("CST405", "CST403"),
    "CST402": ("CST402", "CST403", "CST406"),  # a wrong gradient explains a failed fit
    "CST406": ("CST403",),
}
HARMLESS_IF_WELL = ("CST201", "CST202", "CST203", "CST404")


def arranged(findings: Iterable[Finding], well: bool = False) -> tuple[Finding, ...]:
    """Put symptoms under their causes; order by severity, then confidence.

    Parameters
    ----------
    findings
        In any order.
    well
        Whether the network is trained and does as well as it could: then what usually does harm
        has not done any, and is only worth a word.
    """
    kept = [_milder(f) if well else f for f in _distinct(findings)]
    causes: list[Finding] = []
    left = sorted(kept, key=lambda f: (_rank(f.code), _weight(f)))
    while left:
        cause = left.pop(0)
        explained = FOLLOWS.get(cause.code, ()) if cause.severity != "info" else ()
        under = [f for f in left if f.code in explained]
        left = [f for f in left if f not in under]
        causes.append(replace(cause, symptoms=(*cause.symptoms, *sorted(under, key=_weight))))
    return tuple(sorted(causes, key=_weight))


def _distinct(findings: Iterable[Finding]) -> list[Finding]:
    """Keep the surest of several findings with one code and place."""
    best: dict[tuple[str, str | None], Finding] = {}
    for found in sorted(findings, key=_weight):
        best.setdefault((found.code, found.where), found)
    return list(best.values())


def _milder(found: Finding) -> Finding:
    harmless = found.code in HARMLESS_IF_WELL and found.code != "CST105"
    return replace(found, severity="info") if harmless else found


def _rank(code: str) -> int:
    """Return the place among the causes; what explains others comes first."""
    order = list(FOLLOWS)
    return order.index(code) if code in order else len(order)


def _weight(found: Finding) -> tuple[int, float]:
    return SEVERITIES.index(found.severity), -found.confidence
