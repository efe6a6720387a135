"""What to do next, from what was measured around the training.

What is wrong inside it (too short, overfitting …) the doctor says, with its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from castalia.data import Schema
from castalia.evaluate import Interval, higher_is_better
from castalia.method.compare import Verdict
from castalia.method.report.formats import score
from castalia.method.task import Task
from castalia.utils.text import listing, plural

__all__ = ["give_advice"]

MOST = 6
_TINY = 500
_RARE = 0.1


def give_advice(
    *,
    task: Task,
    schema: Schema,
    target: str,
    verdict: Verdict,
    metric: str,
    seeds: Interval,
    facts: Mapping[str, Any],
    checks: Sequence[Mapping[str, Any]],
    model: str,
    network: bool = True,
) -> list[str]:
    """Return a handful of next actions, the most pressing first.

    Parameters
    ----------
    task, schema, target
        What is predicted, and from what.
    verdict, metric
        The outcome of the comparison.
    seeds
        Scores over seeds.
    facts
        What the training of the saved model left: history, epochs, why it stopped.
    checks
        Preflight checks as mappings.
    model
        Name of the model.
    network
        Whether it is a network.
    """
    found = [
        *_checks(checks),
        *_verdict(verdict, model, seeds, metric, network),
        *_training(facts),
        *_balance(task, metric),
        *_columns(schema, target),
        *_rows(schema.rows, verdict),
    ]
    return [words.replace("`", "") for words in found[:MOST]]


def _checks(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"Preflight check {c['name']} failed. {c['message']}" for c in checks if not c["passed"]
    ]


def _verdict(
    verdict: Verdict, model: str, seeds: Interval, metric: str, network: bool
) -> list[str]:
    found = []
    if verdict.outcome == "worse":
        settings = " (--set hidden=256,256, --set lr=0.001)" if network else ""
        found.append(
            f"The gap to {verdict.rival.lower()} is real; try other settings{settings}, or let "
            f"castalia tune search for them, before giving up on {model}."
        )
    wide = seeds.high - seeds.low if seeds.known else 0.0
    if wide > 0.05 and higher_is_better(metric) and verdict.outcome == "equal":
        found.append(
            f"Seeds differ ({score(max(seeds.low, -9.0), metric)} to "
            f"{score(min(seeds.high, 1.0), metric)}); compare on all "
            "rows with --cv 5 before deciding on a small difference."
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
    if not counts or counts[0][1] / len(task.y) >= _RARE:
        return []
    (rare, few), (common, many) = counts[0], counts[-1]
    act = "decide by --metric balanced_accuracy and try --set class_weight=balanced"
    if metric == "balanced_accuracy":
        act = "try --set class_weight=balanced"
    return [f"Classes are uneven ({rare} has {plural(few, 'row')}, {common} {many:,}): {act}."]


def _columns(schema: Schema, target: str) -> list[str]:
    found, inputs = [], [c for c in schema if c.name != target]
    empty = [c.name for c in inputs if c.used and c.missing > 0.3 * schema.rows]
    if empty:
        found.append(
            f"More than 30 % of {listing(empty, 'and', 5)} is missing; filling in those values "
            "may help more than any model."
        )
    text = [c.name for c in inputs if c.kind == "text"]
    if text:
        found.append(
            f"Free text is not used ({listing(text, 'and', 5)}); columns made from it, such as "
            "a title or a length, may help."
        )
    return found


def _rows(rows: int, verdict: Verdict) -> list[str]:
    if rows >= _TINY:
        return []
    act = (
        ""
        if verdict.outcome == "better"
        else "; networks rarely win on so few, and more rows change more than settings"
    )
    return [f"The table has only {plural(rows, 'row')}{act}. Use --cv 5 to test on all of them."]
