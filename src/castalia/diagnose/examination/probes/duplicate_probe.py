"""Rows that stand in the training data and in the validation data.

Rows of a table of few values coincide by chance, and some data repeat themselves; so the rows must
be rare enough (the sum of the entropies of their columns is large against what n^2 coincidences
need), and repeats among the training rows themselves are counted beside.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from castalia.diagnose.examination.coincidence import by_chance, row_keys
from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.row_reader import Rows
from castalia.diagnose.examination.table_models import Table
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number, plural

__all__ = ["duplicates"]

NAME = "duplicates"
MOST_BYTES = 400_000_000
SHOWN = 10


def duplicates(subject: Subject) -> Outcome:
    """Count validation rows that are training rows, exactly or nearly."""
    if subject.held is None or subject.vx is None:
        return skipped(NAME, "without validation data, shared rows (CST206) cannot be found.")
    train, held = _keys(subject.rows), _keys(subject.held)
    shared = np.array([key in train.counts for key in held.order])
    repeated = sum(n for n in train.counts.values() if n > 1) / len(train.order)
    numbers = {"shared rows": int(shared.sum()), "share": float(shared.mean())}
    few = shared.sum() < limit("examine.shared_least") or shared.mean() < limit(
        "examine.shared_rows"
    )
    if not few and not by_chance(subject.x):
        return saw(NAME, numbers, [_exact(subject, shared, repeated, held)])
    near = _near(subject)
    if near is None:
        return saw(NAME, numbers)
    numbers["nearly shared"] = near[0]
    return saw(NAME, numbers, [_nearly(*near)])


class _Keys:
    """The keys of rows, and how often each occurs."""

    def __init__(self, x: Tensor, index: np.ndarray) -> None:
        self.order, self.index = row_keys(x), index
        self.counts: dict[bytes, int] = {}
        for key in self.order:
            self.counts[key] = self.counts.get(key, 0) + 1


def _keys(rows: Rows) -> _Keys:
    """Take all rows where they fit in memory: in samples of both, shared rows are rare."""
    x, index = rows.x, rows.index
    if rows.whole is not None and 4 * rows.all_x.numel() <= MOST_BYTES:
        x, index = rows.all_x, np.arange(len(rows.all_x))
    return _Keys(x, index)


def _exact(subject: Subject, shared: np.ndarray, repeated: float, held: _Keys) -> Finding | None:
    share = float(shared.mean())
    copied = share > 3 * repeated
    if not copied and share < limit("examine.shared_anyway"):
        return None  # data that repeat themselves a little, as texts do
    rows = ", ".join(str(int(i)) for i in held.index[np.flatnonzero(shared)[:SHOWN]])
    more = "" if copied else " Rows repeat among the training rows too, so split by distinct rows."
    return finding(
        "CST206",
        "error" if copied and share >= limit("examine.shared_error") else "warning",
        0.97 if copied else 0.8,
        f"{plural(int(shared.sum()), 'validation row')} of {len(shared):,} "
        f"{'is' if shared.sum() == 1 else 'are'} also in the training data, such as {rows}.{more}",
        "Drop the shared rows from the training data, or split again so that equal rows stay on "
        "one side.",
        Evidence(
            "share of validation rows found in the training data",
            share,
            limit("examine.shared_rows"),
        ),
        Evidence("share of repeated training rows", float(repeated)),
    )


def _near(subject: Subject) -> tuple[float, float] | None:
    """Return the shares of validation and of training rows that have a neighbour too near."""
    if subject.tokens or subject.held_table is None:
        return None
    if len(subject.x) < 30 or len(subject.held_table) < 10:
        return None
    scale = Table(subject.table, subject.seed)
    a = torch.from_numpy(scale(subject.table)).float()
    b = torch.from_numpy(scale(subject.held_table)).float()
    among = _nearest(a, a, own=True)
    usual = float(among.median())
    if usual <= 0:
        return None
    near = limit("examine.near") * usual
    return float((_nearest(b, a) < near).float().mean()), float((among < near).float().mean())


def _nearest(rows: Tensor, others: Tensor, own: bool = False) -> Tensor:
    distances = torch.cdist(rows, others, compute_mode="donot_use_mm_for_euclid_dist")
    if own:
        distances.fill_diagonal_(float("inf"))
    return distances.amin(1)


def _nearly(share: float, among: float) -> Finding | None:
    if share < limit("examine.near_rows") or share < 4 * among + limit("examine.near_margin"):
        return None
    return finding(
        "CST206",
        "warning",
        0.85,
        f"{number(100 * share, 2)} % of the validation rows lie much nearer to a training row than "
        "training rows lie to each other: nearly the same rows on both sides.",
        "Split by what the rows come from (person, image, day), so that near copies stay on one "
        "side.",
        Evidence("share of validation rows with a near copy", share, limit("examine.near_rows")),
        Evidence("share of training rows with one", among),
    )
