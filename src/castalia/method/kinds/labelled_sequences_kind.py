"""Sequences with one target each: the rows of a group in the order of time, or WAV files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier

from castalia.data import read
from castalia.data.sequences import SequenceAdapter, holds_signals, read_sequences, read_signals
from castalia.errors import InvalidParameter
from castalia.method.answer_scores import Answers
from castalia.method.blend import Blend
from castalia.method.classic_model import ClassicModel
from castalia.method.fit_plan import FitPlan
from castalia.method.kinds.kind import Asked, Kind, NewRows, probability_columns, refuse
from castalia.method.series.sequence_baselines import (
    SEQUENCE_BASELINES,
    StepSummaries,
    sequence_baseline,
)
from castalia.method.series.series_plan import (
    names_sequences,
    read_labelled_sequences,
    read_labelled_signals,
)
from castalia.method.table_baselines import answer
from castalia.method.table_model import built, loop
from castalia.method.task import Task, class_task
from castalia.method.train_test_split import Part, make_parts
from castalia.method.verdict import Verdict
from castalia.train import Training
from castalia.utils.text import plural

__all__ = ["LabelledSequences"]

NUMBERS = 10  # more distinct numbers than this are quantities
LABEL, FILE = "class", "file"  # what target and names of WAV files are called


class LabelledSequences(Kind):
    """Sequences, each of one class or with one number."""

    catalog = "sequence"
    tries: ClassVar = {"hidden": (128, 256), "cell": ("gru", "lstm"), "bidirectional": (True,)}
    direct = None

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        self.sounds = holds_signals(plan.data)
        if self.sounds:
            refuse(plan, ("text", "target", "group", "time", "horizon"), "a folder of WAV files")
        refuse(plan, ("text",), "sequences")
        self.target = LABEL if self.sounds else str(plan.target)
        self.named = FILE if self.sounds else str(plan.group)
        self.X, y = (read_labelled_signals if self.sounds else read_labelled_sequences)(plan)
        self.task = self._task(y)
        self.parts, more = make_parts(self.X, self.task, plan)
        self.notes = [*self.X.notes, *more]
        holes = sum(_holes(each) for each in self.X)
        if holes:
            words = f"{plural(holes, 'missing value')} filled in with the last value before."
            self.notes.append(words)

    def _task(self, y: np.ndarray) -> Task:
        numbers = y.dtype.kind in "iuf" and len(np.unique(y)) > NUMBERS
        kind = self.plan.task or ("regression" if numbers else "classification")
        why = f"`{self.target}` is one value for each `{self.named}`"
        if kind == "regression":
            return Task(kind, why, y.astype(np.float64), np.array([]), "sequence")
        return class_task(self.target, y, why, "sequence")

    @staticmethod
    def holds(plan: FitPlan) -> bool:
        """Whether a plan names sequences with one target each."""
        return holds_signals(plan.data) or names_sequences(plan)

    def fingerprint(self) -> str:
        """Return a mark of steps and targets."""
        return f"{self.X.fingerprint()} {hash(tuple(self.task.codes.tolist()))}"

    def facts(self) -> dict[str, Any]:
        """Count sequences and steps."""
        what = f"{plural(len(self), 'sequence')} of {_span(self.X.lengths)} steps"
        return {
            "source": self.plan.name,
            "what": f"{what}, {plural(len(self.X.channels), 'channel')}",
        }

    @property
    def baselines(self) -> dict[str, str]:
        """Guessing, random convolutions, and boosting on summaries."""
        return dict(SEQUENCE_BASELINES)

    def baseline(self, key: str, part: Part) -> tuple[Any, Answers]:
        """Fit a baseline."""
        rounds, seed = self.plan.boosting_rounds, self.plan.seed + part.seed
        model = sequence_baseline(key, self.task.kind, rounds, seed)
        return model, answer(model, *self.rows(part.train), self.X.take(part.test), self.task)

    def baseline_note(self, key: str) -> str:
        """Say what a baseline sees."""
        notes = {
            "convolutions": "the largest response of 500 random filters, and its share above 0",
            "boosting": "mean, spread, extremes, ends, slope and roughness of each channel",
        }
        return notes.get(key) or super().baseline_note(key)

    def usual_model(self) -> str:
        """Return a recurrent network."""
        return "RNNClassifier" if self.task.kind == "classification" else "RNNRegressor"

    def build(self, rows: int, seed: int = 0) -> Any:
        """Return an unfitted recurrent network."""
        training = Training(**{**loop(self.plan), "clip": 1.0, "patience": 15})
        own = {
            "hidden": 64,
            "lr": 3e-3,
            "pool": "mean" if np.median(self.X.lengths) > 50 else "last",
            "batch_size": 32,
            "missing": "forward",
            "random_state": seed,
            "training": training,
        }
        return built(self.system, own, self.plan)

    @property
    def title(self) -> str:
        """Target and table."""
        return f"{self.target} of sequences of {self.plan.name}"

    def advice(self, verdict: Verdict) -> list[str]:
        """Say what few sequences suggest."""
        if len(self) >= 500:
            return []
        return [f"There are only {plural(len(self), 'sequence')}: more change more than settings."]

    def described(self) -> dict[str, Any]:
        """Return lengths and channels."""
        return {
            "facts": {"Steps": _span(self.X.lengths), "Channels": ", ".join(self.X.channels)},
        }

    def shown(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return the name and the length of sequences."""
        return [
            {"row": {self.named: str(self.X.ids[row]), "steps": int(self.X.lengths[row])}}
            for row in rows
        ]

    @staticmethod
    def answered_by(model: Any) -> bool:
        """Whether a model answers for sequences."""
        model = model.first if isinstance(model, Blend) else model
        if isinstance(model, ClassicModel):
            return isinstance(model.features, StepSummaries)
        return isinstance(getattr(model, "adapter_", None), SequenceAdapter)

    @staticmethod
    def new_rows(model: Any, data: Sequence[Any], asked: Asked) -> NewRows:
        """Read the sequences of a long table."""
        if len(data) != 1:
            raise InvalidParameter(
                f"predict: a model of sequences takes one table, or one folder of WAV files; got "
                f"{len(data)}."
            )
        found = _read(data[0], asked)
        named = FILE if holds_signals(data[0]) else str(asked.group)
        return NewRows(found.features(), {named: found.ids}, found.notes, unit="sequence")

    @staticmethod
    def known_rows(model: Any, data: Any, asked: Asked) -> NewRows:
        """Read sequences with their targets."""
        target = LABEL if holds_signals(data) else asked.known_target()
        found = _read(data, asked)
        y = np.asarray(found.target)
        y = y if is_classifier(model) else y.astype(np.float64)
        return NewRows(found.features(), {}, found.notes, [], target, y, "sequence")

    @staticmethod
    def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
        """Return ``prediction``, and ``probability_<class>`` for every class."""
        columns = {"prediction": model.predict(X)}
        if is_classifier(model) and hasattr(model, "predict_proba"):
            columns |= probability_columns(model, model.predict_proba(X))
        return columns


def _read(data: Any, asked: Asked) -> Any:
    """Read a long table by the columns of the fit, or a folder; the target may be absent."""
    if holds_signals(data):
        return read_signals(data)
    if asked.group is None:
        raise InvalidParameter(
            "predict: the model does not say which column names the sequence; give the folder of "
            "its run."
        )
    table = read(data)
    kept = [name for name in table.columns if name not in asked.drop]
    target = asked.target if asked.target in kept else None
    return read_sequences(table.select(kept), group=asked.group, time=asked.time, target=target)


def _span(lengths: np.ndarray) -> str:
    low, high = int(lengths.min()), int(lengths.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _holes(each: np.ndarray) -> int:
    if each.dtype == object:
        return sum(value is None or value != value for value in each.ravel())
    return int((~np.isfinite(each)).sum())
