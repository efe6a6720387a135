"""The findings of one training as a record, without any way to write it or act on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from castalia.diagnose.finding_codes import NAMES, SEVERITIES
from castalia.diagnose.finding_record import Finding
from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean

__all__ = ["DiagnosisRecord"]


@dataclass(frozen=True, eq=False, repr=False)
class DiagnosisRecord:
    """Findings in order, notes, subject, curves and estimator; see ``Diagnosis``."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    subject: str = ""
    curves: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    estimator: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "findings", tuple(self.findings))
        object.__setattr__(self, "notes", tuple(self.notes))
        pairs = {name: _Series.of(series) for name, series in self.curves.items()}
        object.__setattr__(self, "curves", pairs)

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the findings, in order, each followed by those of its symptoms."""
        return tuple(found.code for found in _all(self.findings))

    @property
    def worst(self) -> str | None:
        """The worst severity among findings and symptoms; None where nothing was found."""
        return min((f.severity for f in _all(self.findings)), key=SEVERITIES.index, default=None)

    def mute(self, *codes: str) -> Self:
        """Return the diagnosis without some findings; the symptoms of a muted cause take its place.

        Examples
        --------
        >>> from dataclasses import replace
        >>> from castalia.diagnose import Diagnosis, finding
        >>> dead = finding("CST106", "warning", 0.8, "Half the units are dead.", "Leaky units.")
        >>> rate = finding("CST101", "error", 0.9, "The loss grows.", "Lower the rate.")
        >>> Diagnosis((replace(rate, symptoms=(dead,)),)).mute("CST101").codes
        ('CST106',)
        """
        wanted = {_code(word) for word in codes}
        return replace(self, findings=tuple(_without(self.findings, wanted)))

    def __contains__(self, code: str) -> bool:
        """Whether a code was found, as a cause or as a symptom."""
        return code in self.codes

    def __iter__(self) -> Iterator[Finding]:
        """Run through the findings; symptoms stay with their cause."""
        return iter(self.findings)

    def __len__(self) -> int:
        """Return the number of findings, symptoms not counted."""
        return len(self.findings)

    def __bool__(self) -> bool:
        """Whether something is wrong: an error or a warning. What is only worth knowing is not."""
        return self.worst in ("error", "warning")


class _Series(tuple[tuple[str | float, float], ...]):
    """A curve that is pairs already, so that a copy of its diagnosis takes it as it is."""

    @classmethod
    def of(cls, series: Iterable[Any]) -> Self:
        return series if type(series) is cls else cls(_pairs(series))


def _pairs(series: Iterable[Any]) -> Iterator[tuple[str | float, float]]:
    """Give every number of a series its place."""
    for i, item in enumerate(series):
        where, value = item if isinstance(item, tuple | list) else (i, item)
        yield where if isinstance(where, str | int) else float(where), float(value)


def _all(findings: Iterable[Finding]) -> Iterator[Finding]:
    for found in findings:
        yield found
        yield from _all(found.symptoms)


def _without(findings: Iterable[Finding], codes: set[str]) -> Iterator[Finding]:
    for found in findings:
        symptoms = tuple(_without(found.symptoms, codes))
        if found.code in codes:
            yield from symptoms
        else:
            yield replace(found, symptoms=symptoms)


def _code(word: str) -> str:
    """Return the code of a code or a name."""
    known = {name: code for code, name in NAMES.items()} | {code: code for code in NAMES}
    if word not in known:
        raise InvalidParameter(
            f"Diagnosis.mute: a finding must be a code or a name of `castalia.diagnose.NAMES`; "
            f"got {word!r}.{did_you_mean(str(word), NAMES.values())}"
        )
    return known[word]
