"""A diagnosis: the findings of one training, the cause first."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from castalia.diagnose.findings import Finding
from castalia.diagnose.vocabulary import NAMES, SEVERITIES
from castalia.diagnose.writing import html, json, terminal
from castalia.errors import InvalidParameter
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.text import did_you_mean

__all__ = ["Diagnosis"]


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """The findings of one training, ordered: what to mend first comes first.

    It is true when something is wrong, so that ``if diagnosis:`` reads as it should: at least one
    finding, or a symptom of one, is an error or a warning. It has the length of its findings, runs
    through them, and ``"CST106" in diagnosis`` asks for a code wherever it stands. Two diagnoses
    are equal when they say the same, NaN included.

    Parameters
    ----------
    findings
        Findings; each may carry symptoms of its own.
    notes
        What could not be looked at, and why.
    subject
        What was looked at, such as ``"train.py"`` or ``"MLPClassifier"``.
    curves
        Small series to draw, by name. A series holds numbers, or pairs of a place and a number; the
        place is a step, or the name of a layer. It is kept as pairs.
    estimator
        Our estimator that was fitted, when there is one. Not compared, and not written.

    Examples
    --------
    >>> from castalia.diagnose import Evidence, finding
    >>> ratio = Evidence("update-to-weight ratio of `0.weight`", 0.31, 0.1)
    >>> rate = finding("CST101", "error", 0.95, "The loss grows.", "lr=3.0 → 0.05", ratio)
    >>> print(Diagnosis((rate,), subject="train.py"))
    Diagnosis of train.py: 1 error.
    <BLANKLINE>
    CST101 learning-rate-too-high  error  0.95
      The loss grows.
      · update-to-weight ratio of `0.weight` 0.31 (above 0.1)
      → lr=3.0 → 0.05
      docs/findings/CST101.md
    >>> print(Diagnosis(notes=["Overfitting: no validation data."]))
    Diagnosis: nothing wrong was found.
    <BLANKLINE>
    Could not be looked at:
      · Overfitting: no validation data.
    """

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    subject: str = ""
    curves: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    estimator: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "findings", tuple(self.findings))
        object.__setattr__(self, "notes", tuple(self.notes))
        pairs = {name: tuple(_pairs(series)) for name, series in self.curves.items()}
        object.__setattr__(self, "curves", pairs)

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the findings, in order, each followed by those of its symptoms."""
        return tuple(found.code for found in _all(self.findings))

    @property
    def worst(self) -> str | None:
        """The worst severity among findings and symptoms; None where nothing was found."""
        return min((f.severity for f in _all(self.findings)), key=SEVERITIES.index, default=None)

    def mute(self, *codes: str) -> Diagnosis:
        """Return the diagnosis without some findings; the symptoms of a muted cause take its place.

        Parameters
        ----------
        *codes
            Codes or names, such as ``"CST207"`` or ``"too-little-data"``.

        Examples
        --------
        >>> from dataclasses import replace
        >>> from castalia.diagnose import finding
        >>> dead = finding("CST106", "warning", 0.8, "Half the units are dead.", "Leaky units.")
        >>> rate = finding("CST101", "error", 0.9, "The loss grows.", "Lower the rate.")
        >>> Diagnosis((replace(rate, symptoms=(dead,)),)).mute("CST101").codes
        ('CST106',)
        """
        wanted = {_code(word) for word in codes}
        return replace(self, findings=tuple(_without(self.findings, wanted)))

    def to_json(self) -> str:
        """Return the diagnosis as strict JSON; numbers that are not finite are tagged."""
        return json.to_text(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Diagnosis:
        """Return the diagnosis that ``to_json`` wrote."""
        return cls(**json.from_text(text))

    def apply(self) -> Any:
        """Return a new, unfitted estimator with the remedies made; the old one stays as it is.

        Remedies of the first cause and of other causes are made together. Where inputs or targets
        are to be standardised, it is a scikit-learn ``Pipeline`` or ``TransformedTargetRegressor``
        around the estimator.

        Raises
        ------
        InvalidParameter
            When the diagnosis is not of one of our estimators: then the remedies are words.
        """
        from castalia.diagnose.estimators.repairing import repaired

        return repaired(self)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one HTML page that needs nothing else; return where it is."""
        with writing("Diagnosis.report", Path(path)):
            return atomic_write(path, html.page(self))

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

    def __eq__(self, other: object) -> bool:
        """Whether both say the same."""
        if not isinstance(other, Diagnosis):
            return NotImplemented
        return self.to_json() == other.to_json()

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash((self.codes, self.notes, self.subject))

    def __str__(self) -> str:
        """Return the diagnosis for a terminal, without colours."""
        return terminal.plain(self)

    def __repr__(self) -> str:
        """Return the codes, and where the words are."""
        about = f" of {self.subject}" if self.subject else ""
        return f"<Diagnosis{about}: {', '.join(self.codes) or 'no findings'}>"

    def __rich__(self) -> terminal.Coloured:
        """Return what rich prints in colour."""
        return terminal.Coloured(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return html.fragment(self)


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
