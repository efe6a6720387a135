"""How a diagnosis is written: for a terminal, a notebook or a browser, and as JSON."""

from castalia.diagnose.writing.html import fragment, page
from castalia.diagnose.writing.json import from_text, to_text
from castalia.diagnose.writing.terminal import Coloured, plain

__all__ = ["Coloured", "fragment", "from_text", "page", "plain", "to_text"]
