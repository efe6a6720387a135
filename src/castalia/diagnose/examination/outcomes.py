"""What one probe saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from castalia.diagnose.finding_record import Finding
from castalia.utils.text import number

__all__ = ["Outcome", "joined", "saw", "skipped"]


@dataclass(frozen=True)
class Outcome:
    """The result of one probe: true when it ran and found no error and no warning.

    Attributes
    ----------
    name
        Of the probe.
    numbers
        What was measured.
    findings
        What is wrong, if anything.
    notes
        What could not be checked, and why.
    ran
        Whether the probe came to a verdict.
    """

    name: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    ran: bool = True

    @property
    def passed(self) -> bool:
        """Whether the probe ran and found no error and no warning."""
        return self.ran and all(found.severity == "info" for found in self.findings)

    def __bool__(self) -> bool:
        """Return ``passed``."""
        return self.passed

    def __str__(self) -> str:
        """Return verdict and numbers in one line."""
        verdict = ("passed" if self.passed else "failed") if self.ran else "not run"
        shown = ", ".join(f"{k} {_show(v)}" for k, v in self.numbers.items())
        return f"{self.name}: {verdict}" + (f" ({shown})" if shown else "")


def joined(name: str, done: Sequence[Outcome], notes: Sequence[str]) -> Outcome:
    """Return what several probes saw as one outcome, with notes about the whole."""
    return Outcome(
        name,
        {key: value for outcome in done for key, value in outcome.numbers.items()},
        tuple(found for outcome in done for found in outcome.findings),
        (*notes, *(note for outcome in done for note in outcome.notes)),
        bool(done) and all(outcome.ran for outcome in done),
    )


def _show(value: Any) -> str:
    return number(value, 3) if isinstance(value, float) else str(value)


def saw(name: str, numbers: Mapping[str, Any], findings: Iterable[Finding | None] = ()) -> Outcome:
    """Return what a probe measured, and what is wrong."""
    return Outcome(name, dict(numbers), tuple(found for found in findings if found is not None))


def skipped(name: str, why: str) -> Outcome:
    """Return a probe that came to no verdict."""
    return Outcome(name, notes=(f"{name}: {why}",), ran=False)
