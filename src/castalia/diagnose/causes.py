"""Which finding explains which: causes first, their symptoms under them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from castalia.diagnose.finding_codes import SEVERITIES
from castalia.diagnose.finding_record import Finding

__all__ = ["EXPLAINS", "arrange", "supplemented", "weight"]

# What only a whole training can tell: a short trial does not overrule one that was watched.
OF_TRAINING = ("CST101", "CST102", "CST111", "CST113", "CST402", "CST403", "CST404")
Holds = Callable[[str, str], bool]  # whether a cause may explain a symptom, by their codes

_NOTHING_LEARNT = "111 402 403 404 406"
_NOT_TRAINED = f"{_NOTHING_LEARNT} 204 401"
_UNSTABLE = "101 104 105 106 107 109 113 114"

# What each finding, if it is there, is enough to explain. Earlier causes are asked first.
EXPLAINS = {
    f"CST{cause}": tuple(f"CST{code}" for code in " ".join(symptoms).split())
    for cause, symptoms in {
        "304": (_NOT_TRAINED, "101 102 109 113 202 207"),
        "305": (_NOTHING_LEARNT, "102 103 109 301 401 405"),
        "301": (_NOT_TRAINED, _UNSTABLE, "102 103 110 202 302 405"),
        "112": (_NOTHING_LEARNT, _UNSTABLE, "401 405"),
        "110": (_NOT_TRAINED, "102 103 106 107 109 503"),
        "108": (_NOT_TRAINED, "101 102 103 106 107 109 110 113"),
        "302": (_NOTHING_LEARNT, "101 102 103 106 107 109 202 204 405"),
        "306": (_NOT_TRAINED, "101 102 109"),
        "504": (_NOT_TRAINED, "102 209 405"),
        "505": (_NOTHING_LEARNT, "206 208 401 405"),
        "502": ("103 110 501",),
        "503": (_NOTHING_LEARNT,),
        "209": (_NOT_TRAINED, "101 104 106 113 206 208 306 405"),
        "202": (_NOTHING_LEARNT, _UNSTABLE, "102 103"),
        "201": (_NOTHING_LEARNT, _UNSTABLE, "102 103 208 301 401"),
        "203": (_NOTHING_LEARNT, _UNSTABLE, "201 208 401"),
        "109": (_NOTHING_LEARNT, "101 102 103 104 105 106 107 110 501 502"),
        "115": (_NOTHING_LEARNT, "101 104 113 208 401 405"),
        "114": (_NOTHING_LEARNT, "101 102"),
        "403": ("101 102 103 104 106 107 111 113 114 401 402 404 405",),
        "101": (_NOT_TRAINED, "103 104 105 106 107 109 113 114 115 405 501 502 503"),
        "404": ("101 102 103 104 106 107 111 113 114 115 204 402 403 405 406 502 503",),
        "104": (_NOTHING_LEARNT, "101 105 106 107 109"),
        "105": (_NOT_TRAINED,),
        "103": (_NOTHING_LEARNT, "102 107 109 401"),
        "106": (_NOTHING_LEARNT, "102 103 109 110"),
        "107": (_NOTHING_LEARNT, "102 103 109"),
        "102": (_NOTHING_LEARNT, "103 405 501 503"),
        "116": (_NOTHING_LEARNT, "101 102 103 104 106 115 401 405"),
        "113": ("103 111 402 403 406",),
        "303": ("402 403",),
        "207": ("111 204 401 403 405",),
        "205": ("401 402 403 405",),
        "208": ("401 403 405",),
        "206": ("401",),
        "401": ("111 403 405",),
        "405": ("401",),
        "204": ("402 403 406",),
        "111": ("402 403 405",),
        "406": ("103 106 402 403",),
        "402": ("111 403",),
    }.items()
}


def arrange(
    found: Iterable[Finding], holds: Holds = lambda cause, symptom: True
) -> tuple[Finding, ...]:
    """Order findings: causes by severity and confidence, each with its symptoms.

    Parameters
    ----------
    found
        In any order; of several with one code and place the surest is kept.
    holds
        Leaves out explanations that the case at hand contradicts.
    """
    distinct: dict[tuple[str, str | None], Finding] = {}
    for one in sorted(found, key=weight):
        distinct.setdefault((one.code, one.where), one)
    causes = [one for one in distinct.values() if one.severity != "info"]
    under: dict[int, list[Finding]] = {}
    roots: list[Finding] = []
    for one in distinct.values():
        cause = _cause(one, causes, holds)
        (roots if cause is None else under.setdefault(id(cause), [])).append(one)
    return tuple(_nested(root, under) for root in roots)


def supplemented(watched: Sequence[Finding], examined: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return what was watched in its order, and after it what an examination adds.

    What is known already is left out, what a watched cause explains goes under it, and what a
    trial says of the training itself is only a remark where the whole training showed nothing.
    """
    known = {one.code for root in watched for one in _flat(root)}
    fresh = [one for one in examined if one.code not in known]
    under: dict[int, list[Finding]] = {}
    roots: list[Finding] = []
    for one in fresh:
        causes = [
            c for c in watched if c.severity != "info" and one.code in EXPLAINS.get(c.code, ())
        ]
        if causes:
            under.setdefault(id(causes[0]), []).append(one)
        else:
            roots.append(replace(one, severity="info") if one.code in OF_TRAINING else one)
    first = tuple(replace(w, symptoms=(*w.symptoms, *under.get(id(w), ()))) for w in watched)
    alarmed = any(one.severity != "info" for one in watched)
    return (*first, *roots) if alarmed else tuple(sorted((*roots, *first), key=weight))


def _flat(found: Finding) -> Iterable[Finding]:
    yield found
    for symptom in found.symptoms:
        yield from _flat(symptom)


def weight(found: Finding) -> tuple[int, float]:
    """What findings are sorted by: the gravest first, then the surest."""
    return SEVERITIES.index(found.severity), -found.confidence


def _cause(found: Finding, causes: Sequence[Finding], holds: Holds) -> Finding | None:
    """Return the first cause that explains this one.

    Of two that explain each other the one named earlier in `EXPLAINS` is the cause; with that,
    only an earlier one or one that does not lead back here is taken, so nothing goes in a circle.
    """
    by_code = {c.code: c for c in reversed(causes)}
    for code, explained in EXPLAINS.items():
        if code in by_code and found.code in explained and holds(code, found.code):
            back = found.severity != "info" and _leads(found.code, code, set(by_code), holds)
            if not (back and _later(code, found.code)):
                return by_code[code]
    return None


def _later(code: str, other: str) -> bool:
    order = list(EXPLAINS)
    return order.index(code) > order.index(other) if other in order else False


def _leads(start: str, goal: str, present: set[str], holds: Holds) -> bool:
    """Whether explanations lead from one finding to another, over findings that are present."""
    seen, queue = {start}, [start]
    while queue:
        code = queue.pop()
        for symptom in EXPLAINS.get(code, ()):
            if symptom in present and symptom not in seen and holds(code, symptom):
                if symptom == goal:
                    return True
                seen.add(symptom)
                queue.append(symptom)
    return False


def _nested(found: Finding, under: dict[int, list[Finding]]) -> Finding:
    symptoms = tuple(_nested(symptom, under) for symptom in under.get(id(found), []))
    return replace(found, symptoms=(*found.symptoms, *symptoms))
