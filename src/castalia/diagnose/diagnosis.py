"""A diagnosis: the findings of one training, the cause first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from castalia.diagnose.findings import Finding

__all__ = ["Diagnosis"]


@dataclass(frozen=True)
class Diagnosis:
    """The findings of one training, ordered: what to mend first comes first.

    Attributes
    ----------
    findings
        Findings; each may carry symptoms of its own.
    notes
        What could not be looked at, and why.
    """

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the findings, in order, each followed by those of its symptoms."""
        return tuple(code for found in self.findings for code in _codes(found))

    def __contains__(self, code: str) -> bool:
        """Whether a code was found, as a cause or as a symptom."""
        return code in self.codes


def _codes(found: Finding) -> Iterable[str]:
    yield found.code
    for symptom in found.symptoms:
        yield from _codes(symptom)
