"""What another value of a threshold does to the diagnosis of one kept training."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from castalia.diagnose import Diagnosis, thresholds
from castalia.diagnose.causes import arrange
from castalia.diagnose.finding_record import Finding
from castalia.diagnose.record import Record
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.contradictions import holds, softened
from castalia.diagnose.rules.rule_table import RULES, Rule
from castalia.diagnose.script.joint_diagnosis import joined

FACTORS = (1 / 3, 0.48, 0.69, 1.0, 1.44, 2.1, 3.0)
NAMES = tuple(name for name, one in thresholds.LIMITS.items() if one.origin == "corpus")


class Outcome(NamedTuple):
    """Whether a fault was planted, is named first, and anywhere; or else is alarmed."""

    faulty: bool
    first: bool
    anywhere: bool
    alarmed: bool

    @property
    def worth(self) -> int:
        """One for a fault named first, minus one for an alarm."""
        return int(self.first) - int(self.alarmed)


class Noted(dict):
    """The table of thresholds, which notes the names that are asked for."""

    def __init__(self, table: dict[str, Any]) -> None:
        super().__init__(table)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        return super().__getitem__(name)


def moved(value: float, factor: float) -> float:
    """Return a threshold times a factor; of one between 0 and 1, its odds.

    >>> moved(10.0, 3.0), round(moved(0.5, 3.0), 2)
    (30.0, 0.75)
    """
    return value * factor / (1 - value + value * factor) if 0 < value < 1 else value * factor


@contextmanager
def changed(factors: dict[str, float]) -> Iterator[Noted]:
    """Let the rules read thresholds that are moved by factors."""
    original = thresholds.LIMITS
    table = Noted(original)
    for name, factor in factors.items():
        table[name] = replace(original[name], value=moved(original[name].value, factor))
    thresholds.LIMITS = table
    try:
        with np.errstate(all="ignore"):
            yield table
    finally:
        thresholds.LIMITS = original


class Watched:
    """A record with what each rule finds in it, and which thresholds it reads for that."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.found: dict[Rule, list[Finding]] = {}
        self.reads: dict[Rule, set[str]] = {}
        for rule in RULES:
            with changed({}) as table:
                self.found[rule] = _findings(rule, Case(record))
                self.reads[rule] = table.asked
        with changed({}) as table:
            self.diagnosis = self._arranged(self.found, Case(record))
            self.arrangement = table.asked

    def by(self, name: str, factor: float) -> Diagnosis:
        """Return the diagnosis with one threshold moved."""
        concerned = [rule for rule, read in self.reads.items() if name in read]
        if not concerned and name not in self.arrangement:
            return self.diagnosis
        with changed({name: factor}):
            case = Case(self.record)
            found = {rule: _findings(rule, case) for rule in concerned}
            if name not in self.arrangement and all(found[r] == self.found[r] for r in concerned):
                return self.diagnosis
            return self._arranged({**self.found, **found}, case)

    def _arranged(self, found: dict[Rule, list[Finding]], case: Case) -> Diagnosis:
        every = [softened(case, one) for rule in RULES for one in found[rule]]
        if self.record.given_up:
            every = [replace(one, severity="info") for one in every]
        return Diagnosis(arrange(every, lambda cause, symptom: holds(case, cause, symptom)))


def _findings(rule: Rule, case: Case) -> list[Finding]:
    try:
        return list(rule(case))
    except Exception:  # as the doctor does
        return []


def effects(file: str) -> tuple[str, tuple[Outcome, list[tuple[str, float, Outcome]]]]:
    """Return how a training is judged, and each move of a threshold that changes it."""
    line = _read(file)
    watched = [Watched(record) for record in line["records"]]
    if not watched:
        return file, (_outcome(line, line["said"], line["alarms"]), [])
    base = _of(line, [(one.record.module, one.diagnosis) for one in watched])
    changes: list[tuple[str, float, Outcome]] = []
    for name in NAMES:
        ends = {f: _moved(line, watched, name, f) for f in (FACTORS[0], FACTORS[-1])}
        if any(end != base for end in ends.values()):  # else nothing between them does
            ends |= {f: _moved(line, watched, name, f) for f in FACTORS[1:-1] if f != 1}
        changes += [(name, f, end) for f, end in ends.items() if end != base]
    return file, (base, changes)


def _moved(line: dict[str, Any], watched: list[Watched], name: str, factor: float) -> Outcome:
    return _of(line, [(one.record.module, one.by(name, factor)) for one in watched])


def with_limits(file: str, factors: dict[str, float]) -> Outcome:
    """Return how a training is judged with many thresholds moved."""
    from castalia.diagnose.rules import judge

    line = _read(file)
    if not line["records"]:
        return _outcome(line, line["said"], line["alarms"])
    with changed(factors):
        return _of(line, [(one.module, judge(one)) for one in line["records"]])


def _of(line: dict[str, Any], parts: list[tuple[str, Diagnosis]]) -> Outcome:
    said = joined(parts)
    alarms = tuple(one.code for one in said.findings if one.severity != "info")
    return _outcome(line, said.codes, alarms)


def _outcome(line: dict[str, Any], said: tuple[str, ...], alarms: tuple[str, ...]) -> Outcome:
    if not line["faulty"]:
        return Outcome(False, False, False, bool(alarms))
    first = bool(said) and said[0] in line["right"]
    return Outcome(True, first, any(code in line["right"] for code in said), False)


def _read(file: str) -> dict[str, Any]:
    with gzip.open(file) as kept:
        return pickle.load(kept)  # noqa: S301
