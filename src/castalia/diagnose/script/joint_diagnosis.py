"""One diagnosis from those of several modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from castalia.diagnose.causes import weight
from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.finding_record import Finding

__all__ = ["joined"]


def joined(parts: Sequence[tuple[str, Diagnosis]], notes: Sequence[str] = ()) -> Diagnosis:
    """Return one diagnosis; of several modules, each finding names its own.

    Parameters
    ----------
    parts
        A module's name and its diagnosis. Of modules with one name, such as those of the folds of
        a cross-validation, a finding that is made again is given once, where it is surest.
    notes
        What else is to be said.

    Examples
    --------
    >>> from castalia.diagnose import finding
    >>> found = finding("CST112", "error", 0.9, "Gradients are never reset.", "Call zero_grad().")
    >>> one = Diagnosis((found,))
    >>> [found.where for found in joined([("Generator", one), ("Critic", one)]).findings]
    ['Generator', 'Critic']
    """
    if not parts:
        return Diagnosis(notes=tuple(notes))
    if len(parts) == 1:
        whole = parts[0][1]
        return replace(whole, notes=(*whole.notes, *notes))
    several = len({name for name, _ in parts}) > 1
    found: dict[tuple[str, str | None], Finding] = {}
    for name, diagnosis in parts:
        for one in diagnosis.findings:
            named = _named(one, name) if several else one
            known = found.get((named.code, named.where))
            if known is None or named.confidence > known.confidence:
                found[named.code, named.where] = named
    ordered = sorted(found.values(), key=weight)
    said = [f"{name}: {note}" if several else note for name, one in parts for note in one.notes]
    notes = tuple(dict.fromkeys((*said, *notes)))
    return Diagnosis(tuple(ordered), notes, curves=_curves(parts, several))


def _curves(parts: Sequence[tuple[str, Diagnosis]], several: bool) -> dict[str, Any]:
    """Return the curves of every module under its name; of folds of one module, the last one's."""
    return {
        f"{name}: {curve}" if several else curve: series
        for name, diagnosis in parts
        for curve, series in diagnosis.curves.items()
    }


def _named(found: Finding, module: str) -> Finding:
    where = module if found.where is None else f"{module}.{found.where}"
    if found.where is not None and found.where.startswith("column "):
        where = f"{found.where} of {module}"
    symptoms = tuple(_named(one, module) for one in found.symptoms)
    return replace(found, where=where, symptoms=symptoms)
