"""The kinds of data that the method takes: what is particular to each, in one object a kind."""

from __future__ import annotations

from typing import Any

from castalia.method.kinds.base import Kind, NewRows
from castalia.method.kinds.pictures import Pictures
from castalia.method.kinds.table import Table
from castalia.method.plan import FitPlan

__all__ = ["KINDS", "Kind", "NewRows", "Pictures", "Table", "kind_of", "open_data"]

KINDS: tuple[type[Kind], ...] = (Pictures, Table)  # the first that holds, reads


def open_data(plan: FitPlan) -> Kind:
    """Read what a plan names, as what it is."""
    return next(kind for kind in KINDS if kind.holds(plan))(plan)  # type: ignore[call-arg]


def kind_of(model: Any) -> type[Kind]:
    """Return the kind of data that a fitted model takes."""
    return next(kind for kind in KINDS if kind.answered_by(model))
