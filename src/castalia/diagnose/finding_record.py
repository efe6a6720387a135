"""What the doctor says: findings, with the numbers that show them and the change that cures them.

A finding names one cause. What only follows from that cause is listed under it as a symptom, so
that the first line of a diagnosis is the thing to mend.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from castalia.diagnose.finding_codes import NAMES, PAGE
from castalia.utils.text import number

__all__ = ["Evidence", "Finding", "Remedy", "SourceLine", "finding"]


@dataclass(frozen=True)
class Evidence:
    """One measured number and the threshold it crossed.

    Attributes
    ----------
    what
        The quantity, such as "update-to-weight ratio of `fc1.weight`".
    value
        What was measured.
    threshold
        What it was held against; None for a number that only explains.
    above
        Whether crossing means to lie above the threshold, rather than below it.

    Examples
    --------
    >>> str(Evidence("update-to-weight ratio", 0.31, 0.1))
    'update-to-weight ratio 0.31 (above 0.1)'
    >>> Evidence("update-to-weight ratio", 0.31, 0.1).sentence
    'the update-to-weight ratio is 0.31'
    """

    what: str
    value: float
    threshold: float | None = None
    above: bool = True

    def __str__(self) -> str:
        """Return the number beside its threshold."""
        if self.threshold is None:
            return f"{self.what} {_written(self.value)}"
        side = "above" if self.above else "below"
        if self.value == self.threshold:
            side = "at least" if self.above else "at most"
        value, bar = _told_apart(self.value, self.threshold)
        return f"{self.what} {value} ({side} {bar})"

    @property
    def sentence(self) -> str:
        """The number in words, as the end of a sentence."""
        return f"the {self.what} is {_written(self.value)}"


def _told_apart(a: float, b: float) -> tuple[str, str]:
    """Write two numbers with as many digits as it takes to tell them apart, from three on.

    >>> _told_apart(0.97012, 0.97)
    ('0.9701', '0.97')
    """
    for digits in range(3, 9):
        one, other = _written(a, digits), _written(b, digits)
        if one != other:
            break
    return one, other


def _written(value: float, digits: int = 3) -> str:
    """Write a number; one beyond all numbers in a word.

    >>> _written(0.31), _written(float("-inf"))
    ('0.31', 'infinite')
    """
    return "infinite" if math.isinf(value) else number(value, digits)


@dataclass(frozen=True)
class Remedy:
    """What to change.

    Attributes
    ----------
    text
        The change in words, with the user's own values: "lr=3.0 → 0.05".
    changes
        The same as parameters of one of our estimators, such as ``{"lr": 0.05}``; empty where only
        the user can act.
    """

    text: str
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the words."""
        return self.text


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's code.

    Attributes
    ----------
    path, line
        The file as seen from the current folder, and the number of the line.
    text
        What stands there.

    Examples
    --------
    >>> str(SourceLine("train.py", 41, "loss.backward()"))
    'train.py:41'
    """

    path: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        """Return the place as editors and terminals read it."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or worth knowing.

    Attributes
    ----------
    code, name
        As in ``castalia.diagnose.NAMES``.
    severity
        ``"error"``: the training cannot work; ``"warning"``: it works worse than it could;
        ``"info"``: worth knowing.
    confidence
        Between 0 and 1.
    evidence
        The numbers that show it.
    remedy
        The change that cures it.
    where
        The layer, parameter or column, where that applies.
    summary
        What was seen, in one sentence.
    symptoms
        Findings that follow from this one.
    source
        The line of the user's code that causes it, where that is known.
    step
        The step at which it began, where that is known.

    Examples
    --------
    >>> found = finding("CST112", "error", 0.9, "Gradients are never reset.", "Call zero_grad().")
    >>> found.name, found.page
    ('gradients-accumulate', 'docs/findings/CST112.md')
    """

    code: str
    name: str
    severity: str
    confidence: float
    evidence: tuple[Evidence, ...]
    remedy: Remedy
    where: str | None = None
    summary: str = ""
    symptoms: tuple[Finding, ...] = ()
    source: SourceLine | None = None
    step: int | None = None

    @property
    def page(self) -> str:
        """Where the finding is explained."""
        return PAGE.format(code=self.code)

    def __str__(self) -> str:
        """Return the finding in one line."""
        place = f" in `{self.where}`" if self.where else ""
        return f"{self.code} {self.name}{place}: {self.summary}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {
            "page": self.page,
            "symptoms": [symptom.to_dict() for symptom in self.symptoms],
        }


def finding(
    code: str,
    severity: str,
    confidence: float,
    summary: str,
    remedy: str | Remedy,
    *evidence: Evidence,
    where: str | None = None,
    step: int | None = None,
) -> Finding:
    """Return a finding under its name in the vocabulary."""
    cure = remedy if isinstance(remedy, Remedy) else Remedy(remedy)
    name = NAMES[code]
    return Finding(
        code, name, severity, float(confidence), evidence, cure, where, summary, step=step
    )
