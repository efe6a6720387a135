"""The kinds of data that the method takes: what is particular to each, in one object a kind."""

from __future__ import annotations

from typing import Any

from castalia.method.kinds.base import Kind, NewRows
from castalia.method.kinds.pictures import Pictures
from castalia.method.kinds.table import Table
from castalia.method.narrator import Narrator
from castalia.method.plan import FitPlan

__all__ = ["KINDS", "Kind", "NewRows", "Pictures", "Table", "kind_of", "open_data"]

KINDS: tuple[type[Kind], ...] = (Pictures, Table)  # the first that holds, reads


def open_data(plan: FitPlan, narrator: Narrator | None = None) -> Kind:
    """Read what a plan names, as what it is.

    Parameters
    ----------
    plan
        What to read.
    narrator
        Who is told that it is being read, where that takes a while.
    """
    kind = next(kind for kind in KINDS if kind.holds(plan))
    if narrator is not None and kind.slow:
        narrator.reading(plan.name)
    return kind(plan)


def kind_of(model: Any) -> type[Kind]:
    """Return the kind of data that a fitted model takes."""
    return next(kind for kind in KINDS if kind.answered_by(model))
