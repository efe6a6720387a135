"""The sentences of a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from castalia.evaluate import Interval
from castalia.evaluate import metric as metric_named
from castalia.method.contest_entry import Entry
from castalia.method.problem import Problem
from castalia.method.report.score_formats import duration, score
from castalia.utils.text import plural

__all__ = ["VerdictWords", "predicts"]

_FEW = 100  # test rows below which small differences cannot be seen


def predicts(problem: Problem, entry: Entry) -> bool:
    """Whether a contender is nearer than one number for all test rows would be."""
    return problem.metric != "r2" or entry.shown.scores["r2"] > 0


@dataclass(frozen=True)
class VerdictWords:
    """Words on one contender beside another, and the first one's gain."""

    problem: Problem
    ours: Entry
    theirs: Entry
    gain: Interval

    def of(self, outcome: str) -> str:
        """Return the sentence of an outcome: better, worse, equal; nothing for others."""
        known = {"better": self.better, "worse": self.worse, "equal": self.equal}
        return known[outcome]() if outcome in known else ""

    def better(self) -> str:
        """The model is to be used."""
        first = self.noun[0].upper() + self.noun[1:]
        name = self.theirs.name
        rival = name if name in ("guessing", "copying the source") else f"the best baseline, {name}"
        return f"{first} is worth using here: {self.pair} for {rival} ({self.difference})."

    def worse(self) -> str:
        """A baseline is to be used."""
        name = self.theirs.name
        return f"Use {name}, not {self.noun}: {self.pair} for {name} ({self.difference})."

    def equal(self) -> str:
        """A baseline is to be used, as it is simpler."""
        unit, rows = self.problem.task.unit, self.gain.n
        doubt = (
            f" With only {plural(rows, f'test {unit}')}, small differences cannot be seen."
            if rows < _FEW
            else ""
        )
        ours, theirs = self._scores()
        return (
            f"{self.theirs.shown.name} does as well as {self.noun}, as far as these {unit}s can "
            f"tell ({self.label} {theirs}, {self.noun} {ours}; {self.difference}), and "
            f"{self._speed()}: use it.{doubt}"
        )

    def blend(self) -> str:
        """The blend is to be used."""
        return (
            f"Use the blend ({self.ours.shown.note}): {self.pair} for the best single model, "
            f"{self.theirs.name} ({self.difference})."
        )

    def none(self, tried: int) -> str:
        """Nothing is better than guessing."""
        unit, name = self.problem.task.unit, self.theirs.name
        if unit in ("passage", "pair"):
            return (
                f"Nothing here beats {name}: {self.noun} has {self.pair} ({self.difference}). It "
                "needs more text, or a longer training."
            )
        if unit == "window":
            return (
                f"No forecast here is surely better than {name}: the best of "
                f"{plural(tried, 'model')}, {self.ours.name}, has {self.pair} "
                f"({self.difference}). Use {name} ({self.theirs.shown.note})."
            )
        best = (
            f"the best of {plural(tried, 'model')}, {self.ours.name}," if tried > 1 else self.noun
        )
        said = "columns" if unit == "row" else f"{unit}s"
        if self.gain.known and self.gain.low > 0:  # R² below 0
            return (
                f"Nothing here predicts the target: {best} has {self.pair} for {name}, and below 0 "
                f"one number for all test {unit}s is nearer. They are unlike those trained on, or "
                f"the {said} say little about the target."
            )
        if self._too_few():
            return (
                f"Too few test {unit}s to tell whether anything here predicts the target: {best} "
                f"has {self.pair} for {name} ({self.difference}). Until there are more, use {name} "
                f"({self.theirs.shown.note})."
            )
        return (
            f"Nothing here predicts the target: {best} has {self.pair} for {name} "
            f"({self.difference}). Use {name} ({self.theirs.shown.note}); the {said} say little "
            f"about the target, or there are too few {unit}s to see it."
        )

    def _too_few(self) -> bool:
        """Whether the first contender looks better, on so few rows that chance may explain it.

        Of R² below 0 that is no matter: one number for all rows is nearer.
        """
        looks = self.gain.known and self.gain.mean > 0 and self.gain.n < _FEW
        return looks and predicts(self.problem, self.ours)

    @property
    def noun(self) -> str:
        """What the first contender is called in a sentence."""
        network = self.problem.network and self.ours.shown.role == "model"
        return "the network" if network else self.ours.name

    @property
    def label(self) -> str:
        """Name of the measure, inside a sentence."""
        label = metric_named(self.problem.metric).label
        return label if label.isupper() or label.startswith("R²") else label.lower()

    @property
    def pair(self) -> str:
        """Both scores."""
        return "{} {} against {}".format(self.label, *self._scores())

    @property
    def difference(self) -> str:
        """The gain with its interval."""
        metric, gain = self.problem.metric, self.gain
        found = f"gain {score(gain.mean, metric, sign=True)}"
        if not gain.known:
            return found
        low, high = (score(bound, metric, sign=True) for bound in (gain.low, gain.high))
        return f"{found}, 95 % interval {low} to {high}"

    def _scores(self) -> list[str]:
        metric = self.problem.metric
        return [score(entry.shown.scores[metric], metric) for entry in (self.ours, self.theirs)]

    def _speed(self) -> str:
        ours, theirs = self.ours.shown.seconds, self.theirs.shown.seconds
        if not ours or not theirs or ours < 1.5 * theirs:
            return "is simpler"
        return f"trains faster ({duration(theirs)} against {duration(ours)})"
