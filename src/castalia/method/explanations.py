"""Why a saved model says what it says: single rows, and the columns of a report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.data import Dataset
from castalia.errors import CastaliaError, InvalidData, InvalidParameter
from castalia.evaluate import Attributions, integrated_gradients, shapley_values
from castalia.method.fit_result import MODEL, RESULT, FitResult
from castalia.method.kinds import Asked, Table, kind_of
from castalia.method.saved_model import find_formats, load_model
from castalia.utils.figure_style import dress
from castalia.utils.text import listing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["METHODS", "Explanation", "explain"]

METHODS = ("shapley", "gradients")
PANELS = 6  # rows in a figure


@dataclass(frozen=True)
class Explanation:
    """The predictions for some rows, divided among their columns.

    Attributes
    ----------
    attributions
        The numbers.
    target
        What is predicted; empty where the model's run is not known.
    background
        Where the rows come from that each row is compared with.
    notes
        Remarks.
    """

    attributions: Attributions
    target: str
    background: str
    notes: list[str] = field(default_factory=list)

    def rows(self) -> list[dict[str, Any]]:
        """Return a mapping for each row: its output, the mean, and its columns by effect."""
        found = self.attributions
        return [
            {
                "row": row,
                "class": found.names[row],
                "output": float(found.outputs[row]),
                "background": float(found.base[row]),
                "columns": [
                    {"column": name, "value": cell, "effect": effect, "low": low, "high": high}
                    for name, cell, effect, low, high in found.ranked(row)
                ],
            }
            for row in range(len(found))
        ]

    def figure(self) -> Figure:
        """Draw the first rows, a panel each."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        panels = min(PANELS, len(self.attributions))
        lines = min(12, len(self.attributions.columns))
        figure = Figure(figsize=(6.4, (1.2 + 0.32 * lines) * panels), layout="constrained")
        FigureCanvasAgg(figure)
        for row, ax in enumerate(figure.subplots(panels, 1, squeeze=False).ravel()):
            dress(ax, "x")
            self.attributions.plot(ax, row=row)
            ax.set_title(f"row {row}: {ax.get_title()}")
        return figure


def explain(
    model: str | os.PathLike[str],
    data: Any,
    *,
    name: str | None = None,
    background: Any = None,
    first: int | None = 10,
    output: str | None = None,
    method: str = "shapley",
    rounds: int = 10,
    header: bool = True,
) -> Explanation:
    """Say how much each column of a row moved a saved model's prediction.

    Parameters
    ----------
    model
        Folder of a run, whose recommended model is taken, or of a saved model of tables.
    name
        Another model of the run, such as ``"boosting"``; None with gradients: the network.
    data
        A table with the columns the model was trained on.
    background
        A table to compare the rows with; None: the one the run was trained on where it is still
        there, else the rows themselves.
    first
        How many rows to explain; None: all.
    output
        Class whose probability is divided; None: the predicted one of each row.
    method
        ``"shapley"``, for any model, or ``"gradients"``: integrated gradients of a network.
    rounds
        Rounds of sampling of Shapley values of more than ten columns.
    header
        Whether a text file starts with column names.
    """
    if method not in METHODS:
        raise InvalidParameter(f"explain: `method` must be {listing(METHODS)}; got {method!r}.")
    of_run = (Path(model) / RESULT).is_file()
    estimator = load_model(model, name or (MODEL if method == "gradients" and of_run else None))
    if kind_of(estimator) is not Table:
        raise InvalidData(
            f"explain: the model must be one of tables; a {type(estimator).__name__} reads another "
            "kind of data."
        )
    asked = Asked(header=header, formats=find_formats(model))
    rows = Table.new_rows(estimator, [data], asked)
    others, source = _background(model, estimator, background, rows.X, asked)
    X = rows.X if first is None else rows.X.take(np.arange(min(first, len(rows.X))))
    if method == "shapley":
        found = shapley_values(estimator, X, others, output=output, rounds=rounds)
    else:
        found = integrated_gradients(estimator, X, others, output=output)
    run = _run_of(model)
    target = "" if run is None else run.report.target
    return Explanation(found, target, source, [*rows.notes, *rows.unseen])


def _background(
    model: Any, estimator: Any, given: Any, rows: Dataset, asked: Asked
) -> tuple[Dataset, str]:
    """Return the rows to compare with, and where they come from."""
    if given is not None:
        return _read(estimator, given, asked), f"{given}"
    run = _run_of(model)
    plan: dict[str, Any] = (None if run is None else run.summary.get("plan")) or {}
    if isinstance(plan.get("data"), str):
        try:
            asked = replace(asked, header=plan.get("header", True))
            return _read(estimator, plan["data"], asked), plan["data"]
        except (CastaliaError, OSError):  # moved or altered since
            pass
    return rows, "the rows themselves"


def _read(estimator: Any, data: Any, asked: Asked) -> Dataset:
    found: Dataset = Table.new_rows(estimator, [data], asked).X
    return found


def _run_of(model: Any) -> FitResult | None:
    folders: Sequence[Path] = [Path(model), *Path(model).parents][:3]
    found = next((folder for folder in folders if (folder / RESULT).is_file()), None)
    return None if found is None else FitResult.load(found)
