"""What to do next, from what was measured around the training.

What is wrong inside it (too short, overfitting …) the doctor says, with its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from castalia.errors import InvalidParameter
from castalia.evaluate import metric as metric_named
from castalia.method.model_settings import find_setting
from castalia.method.problem import Problem
from castalia.method.report.score_formats import score
from castalia.method.trainings import Trainings
from castalia.method.verdict import Verdict
from castalia.utils.text import plural

__all__ = ["give_advice"]

MOST = 6
_RARE = 0.1  # share of all
_WIDE = 0.05  # between the scores of splits and seeds
_EVEN = 0.5  # share of the commonest class


def give_advice(
    problem: Problem,
    verdict: Verdict,
    trainings: Trainings,
    checks: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Return a handful of next actions, the most pressing first."""
    found = [
        *_checks(checks),
        *_verdict(problem, verdict, trainings.entry.each),
        *_training(trainings.facts),
        *_balance(problem),
        *problem.kind.advice(verdict),
    ]
    return [words.replace("`", "") for words in found[:MOST]]


def _checks(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"Preflight check {c['name']} failed. {c['message']}" for c in checks if not c["passed"]
    ]


def _verdict(problem: Problem, verdict: Verdict, each: Sequence[float]) -> list[str]:
    found, kind, metric = [], problem.kind, problem.metric
    if verdict.outcome == "worse":
        hint = kind.hint(kind.build(len(problem.parts[0].train))) if problem.network else ""
        settings = f" ({hint})" if hint else ""
        search = ", or let castalia tune search for them," if kind.searched else ""
        rival = verdict.rival[0].lower() + verdict.rival[1:]
        found.append(
            f"The gap to {rival} is real; try other settings{settings}{search} before giving up "
            f"on {problem.model_name}."
        )
    wide = max(each) - min(each)
    if wide > _WIDE and metric_named(metric).fraction and verdict.outcome == "equal":
        folds = not problem.plan.cv and kind.keys.order is None
        more = f"; castalia fit --cv 5 compares on all {kind.task.unit}s" if folds else ""
        found.append(
            f"{problem.model_name} scores {score(min(each), metric)} to {score(max(each), metric)} "
            f"depending on split and seed, so small differences decide nothing{more}."
        )
    return found


def _training(facts: Mapping[str, Any]) -> list[str]:
    if facts.get("stopped") and "time limit" in str(facts["stopped"]):
        return [
            "Training was cut by the time limit while it may still have improved; raise "
            "--time-limit."
        ]
    return []


def _balance(problem: Problem) -> list[str]:
    task = problem.task
    counts = sorted(task.counts.items(), key=lambda pair: pair[1])
    if not counts:
        return []
    (rare, few), (common, many) = counts[0], counts[-1]
    if few >= _RARE * len(task.y) or few > _EVEN * many:
        return []
    act = {
        "balanced_accuracy": "",
        "roc_auc": f"read the probabilities, for the answer may always be {common}",
    }.get(problem.metric, "decide by --metric balanced_accuracy")
    acts = [act] * bool(act) + ["try --set class_weight=balanced"] * _unweighted(problem)
    if not acts:
        return []
    uneven = f"Classes are uneven ({rare} has {plural(few, task.unit)}, {common} {many:,})"
    both = ", or " if problem.metric == "roc_auc" else " and "
    return [f"{uneven}: {both.join(acts)}."]


def _unweighted(problem: Problem) -> bool:
    """Whether the model can weigh classes and does not yet."""
    try:
        place, name = find_setting(problem.kind.build(len(problem.kind)), "class_weight")
    except InvalidParameter:  # not a setting of this model
        return False
    return getattr(place.owner, name) is None
