"""The blend as a contender: weighed on rows that were tested in other parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from castalia.method.answer_scores import Answers
from castalia.method.blend import blend_weights
from castalia.method.contest_entry import Entry
from castalia.method.problem import Problem
from castalia.method.run_context import RunContext
from castalia.method.saved_contender import save_blend

__all__ = ["BLEND", "blend_entries"]

BLEND = "blend"
LEAST = 0.01  # a member of less weight is left out


def blend_entries(problem: Problem, entries: Sequence[Entry], context: RunContext) -> Entry | None:
    """Blend the contenders that take the same rows; None where there is nothing to blend.

    The answers on the test rows of a part are weighed by what the members said about the rows of
    other parts, earlier ones where the split is by time, so no row helps to weigh its own answer.
    """
    members = [e for e in entries if e.key != "guess" and e.key not in problem.kind.apart]
    parts = min((len(e.parts) for e in members), default=0)
    if len(members) < 2 or parts < 2 or not _can_be_averaged(members):
        return None
    weights = _weights(problem, members, list(range(parts)))
    kept = {e.key: w for e, w in zip(members, weights, strict=True) if w >= LEAST}
    if len(kept) < 2:
        return None
    save_blend({key: w / sum(kept.values()) for key, w in kept.items()}, context.contender(BLEND))
    answers = [_blended(problem, members, j, parts) for j in range(parts)]
    named = {e.key: e.name for e in members}
    note = " + ".join(f"{weight:.2f} {named[key]}" for key, weight in kept.items())
    return problem.entry(BLEND, answers, "Blend", "blend", note)


def _can_be_averaged(members: Sequence[Entry]) -> bool:
    """Whether answers are numbers, or probabilities of classes."""
    first = [entry.parts[0] for entry in members]
    if any(found.probability is not None for found in first):
        return all(found.probability is not None for found in first)
    return all(found.prediction.dtype.kind == "f" and found.prediction.ndim == 1 for found in first)


def _said(members: Sequence[Entry], part: int) -> np.ndarray:
    """Return what each member said on a part: (n, M), or (n, K, M) of classes."""
    found = [entry.parts[part] for entry in members]
    return np.stack(
        [a.prediction if a.probability is None else a.probability for a in found], axis=-1
    )


def _weights(problem: Problem, members: Sequence[Entry], parts: Sequence[int]) -> np.ndarray:
    """Return the weights that suit the test rows of some parts; equal ones where there are none."""
    if not parts:
        return np.full(len(members), 1 / len(members))
    truth = np.concatenate([problem.task.codes[problem.parts[i].test] for i in parts])
    return blend_weights(np.concatenate([_said(members, i) for i in parts]), truth)


def _blended(problem: Problem, members: Sequence[Entry], part: int, parts: int) -> Answers:
    ordered = problem.kind.keys.order is not None
    tested = problem.parts[part].test
    others = [
        i
        for i in range(parts)
        if (i > part if ordered else i != part) and not np.isin(problem.parts[i].test, tested).any()
    ]
    mean = _said(members, part) @ _weights(problem, members, others)
    seconds = sum(entry.parts[part].seconds for entry in members)
    if mean.ndim == 1:
        return Answers(mean, seconds=seconds)
    return Answers(mean.argmax(axis=1), mean, seconds)
