"""A diagnosis: the findings of one training, the cause first."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from castalia.diagnose.causes import supplemented
from castalia.diagnose.diagnosis_record import DiagnosisRecord
from castalia.diagnose.integrations.experiment_trackers import log_diagnosis
from castalia.diagnose.output import (
    Coloured,
    fragment,
    from_text,
    page,
    plain,
    to_junit,
    to_sarif,
    to_text,
)
from castalia.diagnose.repair import repaired
from castalia.utils.atomic_files import atomic_write, writing

__all__ = ["Diagnosis"]


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(DiagnosisRecord):
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
        What could not be checked, and why.
    subject
        What was diagnosed, such as ``"train.py"`` or ``"MLPClassifier"``.
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
      castalia explain CST101
    >>> print(Diagnosis(notes=["Overfitting: no validation data."]))
    Diagnosis: nothing wrong was found.
    <BLANKLINE>
    Could not be checked:
      · Overfitting: no validation data.
    """

    def to_json(self) -> str:
        """Return the diagnosis as strict JSON; numbers that are not finite are tagged."""
        return to_text(self)

    def to_junit(self, fail_on: str = "warning") -> str:
        """Return JUnit XML: a test case for every finding, failed from a severity on."""
        return to_junit(self, fail_on)

    def to_sarif(self) -> str:
        """Return SARIF 2.1.0, which code hosts and editors show at the lines it names."""
        return to_sarif(self)

    def log_to(self, tracker: Any, step: int | None = None) -> None:
        """Log counts, confidences, tags and the text to TensorBoard, W&B or MLflow.

        Parameters
        ----------
        tracker
            A ``SummaryWriter``, a ``wandb.Run``, or the module ``mlflow``.
        step
            The training step.
        """
        log_diagnosis(self, tracker, step)

    @classmethod
    def from_json(cls, text: str | bytes) -> Diagnosis:
        """Return the diagnosis that ``to_json`` wrote."""
        return cls(**from_text(text))

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
        return repaired(self)

    def supplement(self, examined: Diagnosis) -> Diagnosis:
        """Return this diagnosis of a watched training with what an examination of it adds.

        The causes that were watched stay first.

        Examples
        --------
        >>> from castalia.diagnose import finding
        >>> rate = finding("CST101", "error", 0.9, "The loss grows.", "Lower the rate.")
        >>> rows = finding("CST206", "warning", 0.9, "Rows are shared.", "Drop them.")
        >>> Diagnosis((rate,)).supplement(Diagnosis((rows, rate))).codes
        ('CST101', 'CST206')
        """
        notes = tuple(dict.fromkeys((*self.notes, *examined.notes)))
        return replace(self, findings=supplemented(self.findings, examined.findings), notes=notes)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one HTML page that needs nothing else; return where it is."""
        with writing("Diagnosis.report", Path(path)):
            return atomic_write(path, page(self))

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
        return plain(self)

    def __repr__(self) -> str:
        """Return the codes, and where the words are."""
        about = f" of {self.subject}" if self.subject else ""
        return f"<Diagnosis{about}: {', '.join(self.codes) or 'no findings'}>"

    def __rich__(self) -> Coloured:
        """Return what rich prints in colour."""
        return Coloured(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return fragment(self)
