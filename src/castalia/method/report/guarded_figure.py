"""A figure of the report, or why it is not there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

__all__ = ["Drawing", "guarded"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Drawing:
    """A figure with its heading and what to see in it; without svg, why it is not there."""

    title: str
    words: str
    svg: Markup | None


def guarded(title: str, draw: Callable[[], tuple[Markup, str]]) -> Drawing:
    """Draw, or say why not: one odd figure must not cost a finished run its report."""
    try:
        svg, words = draw()
    except (ValueError, ArithmeticError) as error:
        _LOG.warning("report: the figure %r could not be drawn: %s", title, error)
        return Drawing(title, f"This figure could not be drawn: {error}", None)
    return Drawing(title, words, svg)
