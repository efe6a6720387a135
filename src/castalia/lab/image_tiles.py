"""Images side by side on one panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from castalia.utils.figure_style import signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_tiles"]


def draw_tiles(
    ax: Axes, rows: np.ndarray, across: int, title: str, *, both_signs: bool = False
) -> None:
    """Draw images (N, H, W), dark on white, so many in a line; weights in two colours."""
    count, height, width = rows.shape
    down = -(-count // across)
    grid = np.full((down * (height + 1), across * (width + 1)), np.nan)
    for i, row in enumerate(rows):
        top, left = (height + 1) * (i // across), (width + 1) * (i % across)
        grid[top : top + height, left : left + width] = row
    most = float(np.nanmax(np.abs(grid)))
    low = -most if both_signs else 0.0
    ax.imshow(grid, cmap=signed() if both_signs else "gray_r", vmin=low, vmax=most)
    ax.set(title=title, xticks=(), yticks=())
    ax.grid(False)
