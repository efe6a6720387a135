"""Which finding explains which: causes first, their symptoms under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from castalia.diagnose.calibration import limit
from castalia.diagnose.findings import Finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.vocabulary import SEVERITIES

__all__ = ["EXPLAINS", "arrange"]

_NOTHING_LEARNT = ("CST402", "CST403", "CST406", "CST404", "CST111")
_UNSTABLE = ("CST101", "CST104", "CST105", "CST106", "CST107", "CST109", "CST114", "CST113")

# What each finding, if it is there, is enough to explain. Earlier causes are asked first.
EXPLAINS = {
    "CST304": (*_NOTHING_LEARNT, "CST102", "CST202", "CST113", "CST401"),
    "CST305": (*_NOTHING_LEARNT, "CST102", "CST103", "CST109", "CST301", "CST405", "CST401"),
    "CST301": (
        *_NOTHING_LEARNT,
        *_UNSTABLE,
        "CST102",
        "CST103",
        "CST110",
        "CST202",
        "CST302",
        "CST405",
    ),
    "CST112": (*_NOTHING_LEARNT, *_UNSTABLE, "CST401", "CST405"),
    "CST110": (*_NOTHING_LEARNT, "CST102", "CST103", "CST106", "CST108", "CST109", "CST107"),
    "CST108": (
        *_NOTHING_LEARNT,
        "CST102",
        "CST103",
        "CST106",
        "CST109",
        "CST101",
        "CST107",
        "CST110",
    ),
    "CST302": (*_NOTHING_LEARNT, "CST101", "CST102", "CST109", "CST405", "CST202", "CST204"),
    "CST306": (*_NOTHING_LEARNT, "CST102", "CST109"),
    "CST504": (*_NOTHING_LEARNT, "CST102", "CST204", "CST209", "CST401", "CST405"),
    "CST505": (*_NOTHING_LEARNT, "CST401", "CST206", "CST405", "CST208"),
    "CST503": (*_NOTHING_LEARNT, "CST404"),
    "CST209": (
        *_NOTHING_LEARNT,
        "CST101",
        "CST104",
        "CST113",
        "CST401",
        "CST204",
        "CST405",
        "CST208",
        "CST306",
        "CST206",
    ),
    "CST202": (*_NOTHING_LEARNT, *_UNSTABLE, "CST102", "CST111", "CST103"),
    "CST201": (*_NOTHING_LEARNT, *_UNSTABLE, "CST102", "CST111", "CST103", "CST401", "CST208"),
    "CST203": (*_NOTHING_LEARNT, *_UNSTABLE, "CST201", "CST401"),
    "CST109": (
        "CST111",
        "CST101",
        "CST103",
        "CST104",
        "CST106",
        "CST107",
        "CST102",
        *_NOTHING_LEARNT,
    ),
    "CST115": (*_NOTHING_LEARNT, "CST101", "CST104", "CST113", "CST401", "CST405", "CST208"),
    "CST114": (*_NOTHING_LEARNT, "CST102", "CST101"),
    "CST101": (
        *_NOTHING_LEARNT,
        "CST104",
        "CST105",
        "CST106",
        "CST107",
        "CST109",
        "CST113",
        "CST114",
        "CST401",
        "CST405",
        "CST103",
        "CST204",
        "CST115",
    ),
    "CST404": ("CST402", "CST403", "CST406", "CST111", "CST106", "CST102"),
    "CST104": ("CST101", "CST105", "CST106", "CST107", "CST109", *_NOTHING_LEARNT),
    "CST105": _NOTHING_LEARNT,
    "CST103": (*_NOTHING_LEARNT, "CST102", "CST109", "CST107", "CST401"),
    "CST106": (*_NOTHING_LEARNT, "CST102", "CST103", "CST109"),
    "CST107": (*_NOTHING_LEARNT, "CST103", "CST109", "CST102"),
    "CST102": (*_NOTHING_LEARNT, "CST103"),
    "CST116": (*_NOTHING_LEARNT, "CST401", "CST405", "CST115", "CST102", "CST106", "CST103"),
    "CST113": ("CST111", "CST402", "CST403", "CST406"),
    "CST303": ("CST402", "CST403"),
    "CST207": ("CST401", "CST405", "CST111"),
    "CST205": ("CST401", "CST405", "CST402"),
    "CST208": ("CST401", "CST405"),
    "CST206": ("CST401",),
    "CST405": ("CST401",),
    "CST401": ("CST405", "CST111", "CST403"),
    "CST204": ("CST403", "CST406", "CST402"),
    "CST111": ("CST402", "CST403", "CST405"),
    "CST406": ("CST402", "CST403", "CST106", "CST103"),
    "CST402": ("CST403",),
}


def arrange(found: Sequence[Finding], case: Case) -> list[Finding]:
    """Order findings: causes by severity and confidence, each with its symptoms.

    Parameters
    ----------
    found
        What the rules found.
    case
        The case, for what only it can tell apart.
    """
    found = list({(f.code, f.where): f for f in found}.values())
    under: dict[int, list[Finding]] = {}
    roots = []
    causes = [f for f in found if f.severity != "info"]
    for f in found:
        cause = _cause(f, causes, case)
        if cause is None:
            roots.append(f)
        else:
            under.setdefault(id(cause), []).append(f)
    return [_nested(f, under) for f in sorted(roots, key=_weight)]


def _cause(found: Finding, causes: Sequence[Finding], case: Case) -> Finding | None:
    """Return the first cause that explains this one.

    Of two that explain each other the one named earlier in `EXPLAINS` is the cause; with that,
    only an earlier one or one that does not lead back here is taken, so nothing goes in a circle.
    """
    by_code = {c.code: c for c in reversed(causes)}
    for code, explained in EXPLAINS.items():
        if code in by_code and code != found.code and found.code in explained:
            back = found.severity != "info" and _leads(found.code, code, set(by_code), case)
            if _holds(code, found.code, case) and not (back and _later(code, found.code)):
                return by_code[code]
    return None


def _later(code: str, other: str) -> bool:
    order = list(EXPLAINS)
    return order.index(code) > order.index(other) if other in order else False


def _leads(start: str, goal: str, present: set[str], case: Case) -> bool:
    """Whether explanations lead from one finding to another, over findings that are present."""
    seen, queue = {start}, [start]
    while queue:
        code = queue.pop()
        for symptom in EXPLAINS.get(code, ()):
            if symptom in present and symptom not in seen and _holds(code, symptom, case):
                if symptom == goal:
                    return True
                seen.add(symptom)
                queue.append(symptom)
    return False


def _holds(cause: str, symptom: str, case: Case) -> bool:
    """Leave out explanations that the case contradicts."""
    if cause == "CST201" and symptom == "CST102":
        return False
    if {cause, symptom} == {"CST401", "CST405"}:
        # As accurate as in training but too sure: a matter of temperature, not of fit.
        train, n = case.accuracy(case.record.train, 8)
        held, m = case.accuracy(case.record.validation, 8)
        only_sure = n > 0 and m > 0 and train - held < 0.08
        return only_sure == (cause == "CST405")
    if cause == "CST406" and symptom in ("CST103", "CST106"):
        return case.unchanging > limit("inputs.same")
    if symptom == "CST406" and case.unchanging > limit("inputs.same"):
        return False
    if cause == "CST109" and symptom in ("CST104", "CST101"):
        return case.weights_radius <= 1.2
    if cause == "CST104" and symptom in ("CST101", "CST107", "CST109"):
        return case.weights_radius > 1.2 or case.early_ratio < 0.05
    if cause == "CST101" and symptom == "CST104":
        return not (case.weights_radius > 1.2 or case.early_ratio < 0.05)
    return True


def _nested(found: Finding, under: dict[int, list[Finding]]) -> Finding:
    symptoms = sorted(under.get(id(found), []), key=_weight)
    return replace(found, symptoms=tuple(_nested(s, under) for s in symptoms))


def _weight(found: Finding) -> tuple[int, float]:
    return SEVERITIES.index(found.severity), -found.confidence
