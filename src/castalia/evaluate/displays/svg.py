"""Figures as SVG that can stand side by side in one page."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from html import escape
from typing import TYPE_CHECKING

from castalia.utils.figure_style import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["to_svg"]

_REFERENCE = re.compile(r'(?:xlink:href="|url\()#([^")]+)')
_IDENTITY = re.compile(r' id="([^"]*)"')
_OPENING = re.compile(r"<svg\b[^>]*>", re.DOTALL)
_SIZE = re.compile(r'\b(?:width|height|viewBox)="[^"]*"')
_DROPPED = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)


def to_svg(figure: Figure, title: str = "", salt: str | None = None) -> str:
    """Return a figure as one SVG element, to be put inside a page or saved as a file.

    Text stays text, the text colour is the page's, and ids are made unique, so that many figures
    can share a page.

    Parameters
    ----------
    figure
        Any matplotlib figure.
    title
        What the figure shows, for those who cannot see it.
    salt
        What makes the ids unique; by default a digest of the drawing.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> to_svg(Figure(figsize=(1, 1)), title="Nothing").startswith("<svg")
    True
    """
    raw = _DROPPED.sub("", _draw(figure)).strip()
    salt = salt or hashlib.sha256(raw.encode()).hexdigest()[:8]
    found = _OPENING.search(raw)
    body = raw[found.end() :] if found else raw
    size = " ".join(_SIZE.findall(found.group())) if found else ""
    name = f' aria-label="{escape(title)}"' if title else ""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"{name}>'
    return head + _compact(_with_own_ids(body, salt))


def _draw(figure: Figure) -> str:
    import matplotlib as mpl

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with (
        mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "castalia"}),
        warnings.catch_warnings(),
    ):
        # The reader's browser has the letters that matplotlib's own font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    return buffer.getvalue()


def _with_own_ids(body: str, salt: str) -> str:
    """Salt the ids something refers to and drop all others."""
    used = {name: f"{salt}-{i}" for i, name in enumerate(dict.fromkeys(_REFERENCE.findall(body)))}

    def identity(match: re.Match[str]) -> str:
        return f' id="{used[match[1]]}"' if match[1] in used else ""

    def reference(match: re.Match[str]) -> str:
        return match[0].replace(match[1], used[match[1]]).replace("xlink:", "")

    return _REFERENCE.sub(reference, _IDENTITY.sub(identity, body))


def _compact(body: str) -> str:
    """Let text follow the page's colour, and drop the indentation."""
    body = re.sub(
        r'style="[^"]*"',
        lambda m: m[0].replace(INK, "currentColor").replace("DejaVu Sans", "sans-serif"),
        body,
    )
    return re.sub(r"\n\s*", "\n", body)
