"""Is the network worth using here? The answer in words, no surer than the test rows allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from castalia.evaluate import Interval, higher_is_better, paired_difference
from castalia.evaluate import metric as metric_named
from castalia.method.answer_scores import Answers, measure, stacked
from castalia.method.report import Contender
from castalia.method.report.score_formats import duration, score
from castalia.utils.text import plural

__all__ = ["Verdict", "best_baseline", "compare"]

_FEW = 100  # test rows below which small differences cannot be seen


@dataclass(frozen=True)
class Verdict:
    """Whether to use the network.

    Attributes
    ----------
    outcome
        ``"better"``, ``"equal"`` or ``"worse"`` than the best baseline; ``"none"`` when nothing
        beats guessing or copying.
    words
        The same for people.
    rival
        Name of the best baseline.
    difference
        Score of the network less that of the baseline, above 0 when the network is better.
    """

    outcome: str
    words: str
    rival: str
    difference: Interval


def best_baseline(contenders: Sequence[Contender], metric: str) -> Contender:
    """Return the baseline with the best score."""
    pick = max if higher_is_better(metric) else min
    return pick((c for c in contenders if c.role == "baseline"), key=lambda c: c.scores[metric])


def compare(
    metric: str,
    y: np.ndarray,
    network: Sequence[Answers],
    rival: Answers,
    shown: tuple[Contender, Contender],
    noun: str = "the network",
    unit: str = "row",
) -> Verdict:
    """Compare the network, averaged over seeds, with the best baseline on the same test rows."""
    found = paired_difference(measure(metric), y, stacked(y, network), stacked(y, [rival]))
    if not higher_is_better(metric):
        found = Interval(-found.mean, -found.high, -found.low, found.n)
    outcome = _outcome(found, shown[1])
    return Verdict(
        outcome, _words(outcome, metric, found, shown, len(y), noun, unit), shown[1].name, found
    )


def _outcome(found: Interval, rival: Contender) -> str:
    if found.known and found.low > 0:
        return "better"
    if rival.name.startswith("Copying"):
        return "none"  # nobody would use that
    if found.known and found.high < 0:
        return "worse"
    return "none" if rival.name.startswith("Guessing") else "equal"


def _words(
    outcome: str,
    metric: str,
    found: Interval,
    shown: tuple[Contender, Contender],
    rows: int,
    noun: str,
    unit: str,
) -> str:
    ours, theirs = shown
    label = metric_named(metric).label
    label = label if label.isupper() or label.startswith("R²") else label.lower()
    scores = [score(c.scores[metric], metric) for c in shown]
    pair = f"{label} {scores[0]} against {scores[1]}"
    gap = f"difference {score(found.mean, metric, sign=True)}{_range(found, metric)}"
    name = theirs.name.lower() if theirs.name.startswith("Guess") else theirs.name
    lower = name[0].lower() + name[1:]
    if outcome == "better":
        first = noun[0].upper() + noun[1:]
        return f"{first} is worth using here: {pair} for the best baseline, {lower} ({gap})."
    if outcome == "worse":
        return f"Use {lower}, not {noun}: {pair} for {lower} ({gap})."
    if outcome == "none":
        if unit in ("passage", "pair"):
            return (
                f"Nothing here beats {lower}: {noun} has {pair} ({gap}). It needs more text, or a "
                "longer training."
            )
        said = "columns" if unit == "row" else f"{unit}s"
        return (
            f"Nothing here beats {lower}: {noun} has {pair} ({gap}). The {said} say little about "
            f"the target, or there are too few {unit}s to see it."
        )
    doubt = (
        f" With only {plural(rows, f'test {unit}')}, small differences cannot be seen."
        if rows < _FEW
        else ""
    )
    both = f"{label} {scores[1]}, {noun} {scores[0]}"
    return (
        f"{theirs.name} does as well as {noun}, as far as these {unit}s can tell ({both}; "
        f"{gap}), and {_speed(ours, theirs)}: use it.{doubt}"
    )


def _range(found: Interval, metric: str) -> str:
    if not found.known:
        return ""
    low, high = (score(bound, metric, sign=True) for bound in (found.low, found.high))
    return f", 95 % interval {low} to {high}"


def _speed(ours: Contender, theirs: Contender) -> str:
    if not ours.seconds or not theirs.seconds or ours.seconds < 1.5 * theirs.seconds:
        return "is simpler"
    return f"trains faster ({duration(theirs.seconds)} against {duration(ours.seconds)})"
