"""What to do next, from what was measured around the training.

What is wrong inside it (too short, overfitting …) the doctor says, with its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from castalia.evaluate import Interval, higher_is_better
from castalia.method.problem import Problem
from castalia.method.report.score_formats import score
from castalia.method.task import Task
from castalia.method.verdict import Verdict
from castalia.utils.text import plural

__all__ = ["give_advice"]

MOST = 6
_RARE = 0.1  # share of all
_EVEN = 0.5  # share of the commonest class


def give_advice(
    problem: Problem,
    verdict: Verdict,
    seeds: Interval,
    facts: Mapping[str, Any],
    checks: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Return a handful of next actions, the most pressing first."""
    found = [
        *_checks(checks),
        *_verdict(problem, verdict, seeds),
        *_training(facts),
        *_balance(problem.task, problem.metric),
        *problem.kind.advice(verdict),
    ]
    return [words.replace("`", "") for words in found[:MOST]]


def _checks(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"Preflight check {c['name']} failed. {c['message']}" for c in checks if not c["passed"]
    ]


def _verdict(problem: Problem, verdict: Verdict, seeds: Interval) -> list[str]:
    found, kind, metric = [], problem.kind, problem.metric
    if verdict.outcome == "worse":
        settings = f" ({kind.hint})" if problem.network else ""
        search = ", or let castalia tune search for them," if kind.searched else ""
        rival = verdict.rival[0].lower() + verdict.rival[1:]
        found.append(
            f"The gap to {rival} is real; try other settings{settings}{search} before giving up "
            f"on {problem.model_name}."
        )
    wide = seeds.high - seeds.low if seeds.known else 0.0
    if wide > 0.05 and higher_is_better(metric) and verdict.outcome == "equal":
        found.append(
            f"Seeds differ ({score(max(seeds.low, -9.0), metric)} to "
            f"{score(min(seeds.high, 1.0), metric)}); compare on all "
            f"{kind.task.unit}s with --cv 5 before deciding on a small difference."
        )
    return found


def _training(facts: Mapping[str, Any]) -> list[str]:
    if facts.get("stopped") and "time limit" in str(facts["stopped"]):
        return [
            "Training was cut by the time limit while it may still have improved; raise "
            "--time-limit."
        ]
    return []


def _balance(task: Task, metric: str) -> list[str]:
    counts = sorted(task.counts.items(), key=lambda pair: pair[1])
    if not counts:
        return []
    (rare, few), (common, many) = counts[0], counts[-1]
    if few >= _RARE * len(task.y) or few > _EVEN * many:
        return []
    act = "decide by --metric balanced_accuracy and try --set class_weight=balanced"
    if metric == "balanced_accuracy":
        act = "try --set class_weight=balanced"
    return [f"Classes are uneven ({rare} has {plural(few, task.unit)}, {common} {many:,}): {act}."]
