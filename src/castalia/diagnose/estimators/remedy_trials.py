"""Remedies tried on an estimator one at a time, kept where they help on rows held out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.estimators.estimator_diagnosis import diagnose
from castalia.diagnose.finding_record import Finding
from castalia.diagnose.repair import changed
from castalia.diagnose.thresholds import limit
from castalia.errors import CastaliaWarning, Diverged
from castalia.utils.text import number

__all__ = ["Cure", "Remedied", "cure"]


@dataclass(frozen=True)
class Remedied:
    """One remedy that was tried.

    Attributes
    ----------
    code, name, summary
        What was wrong.
    remedy, changes
        What was changed, in words and as settings.
    before, after
        Score on the rows held out; higher is better.
    kept
        Whether it helped, and stayed.
    """

    code: str
    name: str
    summary: str
    remedy: str
    changes: dict[str, Any]
    before: float
    after: float
    kept: bool

    def __str__(self) -> str:
        """Return the attempt in one line."""
        fate = "kept" if self.kept else "taken back"
        scores = f"{number(self.before, 4)} → {number(self.after, 4)}"
        return f"{self.code} {self.name}: {self.remedy}; score {scores}, {fate}"


@dataclass(frozen=True)
class Cure:
    """What became of an estimator.

    Attributes
    ----------
    estimator
        The cured one, unfitted.
    steps
        Remedies in the order they were tried.
    diagnosis
        Of the cured estimator.
    """

    estimator: Any
    steps: tuple[Remedied, ...] = ()
    diagnosis: Diagnosis = field(default_factory=Diagnosis)

    @property
    def changes(self) -> dict[str, Any]:
        """All settings that were changed for good."""
        return {name: v for step in self.steps if step.kept for name, v in step.changes.items()}

    def __str__(self) -> str:
        """Return the trail: what was wrong, what was changed, what it gained."""
        return "\n".join(map(str, self.steps)) or "Nothing to cure was found."


def cure(
    estimator: Any,
    X: Any,
    y: Any,
    X_val: Any,
    y_val: Any,
    *,
    score: Callable[[Any], float] | None = None,
    most: int = 6,
) -> Cure:
    """Diagnose, change one thing, keep it if it helps on validation rows, and diagnose again.

    Parameters
    ----------
    estimator
        One of ours, trained by gradients; stays as it is.
    X, y
        Rows and targets to train on.
    X_val, y_val
        Rows and targets that decide.
    score
        From a fitted estimator to a number, the higher the better; None: its own ``score``.
    most
        Remedies to try at most.

    Examples
    --------
    >>> import castalia
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> slow = castalia.MLPClassifier(lr=1e-6, epochs=40, random_state=0)
    >>> found = cure(slow, X[::2], y[::2], X[1::2], y[1::2])
    >>> found.steps[0].name, found.steps[0].kept, found.estimator.lr > 1e-4
    ('learning-rate-too-low', True, True)
    """
    measure = score or (lambda model: float(model.score(X_val, y_val)))
    steps: list[Remedied] = []
    best = _score(estimator, X, y, measure)
    found = diagnose(estimator, X, y, X_val, y_val)
    tried: list[dict[str, Any]] = []
    while len(steps) < most:
        finding = next((f for f in _treatable(found.findings) if _changes(f) not in tried), None)
        if finding is None:
            break
        tried.append(_changes(finding))
        candidate = changed(estimator, _changes(finding))
        after = _score(candidate, X, y, measure)
        kept = after > best + limit("estimator.gain")
        steps.append(_step(finding, best, after, kept))
        if kept:
            estimator, best = candidate, after
            found = diagnose(estimator, X, y, X_val, y_val)
    return Cure(estimator, tuple(steps), found)


def _treatable(findings: tuple[Finding, ...]) -> Iterator[Finding]:
    """Run through findings with changes, causes before their symptoms."""
    for found in findings:
        if found.remedy.changes:
            yield found
    for found in findings:
        yield from _treatable(found.symptoms)


def _changes(found: Finding) -> dict[str, Any]:
    return dict(found.remedy.changes)


def _step(found: Finding, before: float, after: float, kept: bool) -> Remedied:
    return Remedied(
        found.code,
        found.name,
        found.summary,
        str(found.remedy),
        _changes(found),
        before,
        after,
        kept,
    )


def _score(estimator: Any, X: Any, y: Any, measure: Callable[[Any], float]) -> float:
    """Fit a clone and score it; one that diverges is worse than any."""
    from sklearn.base import clone

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CastaliaWarning)
        try:
            return measure(clone(estimator).fit(X, y))
        except Diverged:
            return -float("inf")
