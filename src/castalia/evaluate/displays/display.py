"""What displays share: what they were drawn on, and drawing when that is first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Display"]


class Display:
    """Base of displays, in scikit-learn's manner.

    ``from_…`` computes what is shown, ``plot`` draws it. With ``ax``, ``from_…`` draws at once.

    Attributes
    ----------
    ax_, figure_
        What was drawn on; a display that was not drawn yet is drawn when it is asked for them.
    """

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on these axes, or on fresh ones."""
        raise NotImplementedError

    @cached_property
    def ax_(self) -> Axes:
        """The axes drawn on."""
        return self.plot().ax_

    @cached_property
    def figure_(self) -> Figure:
        """The figure drawn on."""
        return self.plot().figure_

    def _drawn(self, ax: Axes | None) -> Self:
        """Draw on axes that were given, else wait until somebody asks."""
        return self if ax is None else self.plot(ax)
