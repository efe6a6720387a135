"""One line a layer over the steps of a training, coloured from the first layer to the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidData, ShapeMismatch
from castalia.utils.figure_style import INK, by_depth, label, log_scale, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["check_table", "from_mapping", "lines_by_depth"]

MOST_NAMES = 9  # in a legend


def from_mapping(
    owner: str, record: Mapping[str, Sequence[float]], steps: Sequence[int] | None
) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Return the table (S, L), the names and the steps of a mapping from names to numbers."""
    lengths = {len(values) for values in record.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise InvalidData(
            f"{owner}: a record must hold equally many numbers, at least one, for each of its "
            f"layers; got {sorted(lengths) or 'no layer'}."
        )
    table = np.array([list(values) for values in record.values()], dtype=float).T
    return table, list(record), np.arange(len(table)) if steps is None else np.asarray(steps)


def check_table(owner: str, table: np.ndarray, names: Sequence[str], steps: Any) -> None:
    """Refuse a table whose shape is not (steps, layers)."""
    if table.shape != (len(steps), len(names)) or not table.size:
        raise ShapeMismatch(
            f"{owner}: the table must have a row a step and a column a layer, "
            f"({len(steps)}, {len(names)}), at least one of each; got {table.shape}."
        )


def lines_by_depth(ax: Axes, steps: np.ndarray, table: np.ndarray, names: Sequence[str]) -> None:
    """Draw the columns of a table; zeros and what is not finite leave gaps on the log scale."""
    shown = np.where(np.isfinite(table) & (table > 0), table, np.nan)
    named = set(np.linspace(0, len(names) - 1, min(len(names), MOST_NAMES)).round().astype(int))
    marker = "o" if len(steps) < 2 else None
    for i, (colour, name) in enumerate(zip(by_depth(len(names)), names, strict=True)):
        text = label(name) if i in named else "_"
        ax.plot(steps, shown[:, i], color=colour, lw=1.5, label=text, marker=marker, ms=4)
    log_scale(ax)
    whole_ticks(ax.xaxis, 6)
    ax.set_xlabel("step")
    ax.legend(
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        handlelength=1.2,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.02),
        borderaxespad=0.3,
        title="first to last layer",
        title_fontproperties={"size": 8.5},
        alignment="left",
    ).get_title().set_color(INK)
