"""How a diagnosis is written: for a terminal, a notebook or a browser, and as JSON."""

from castalia.diagnose.output.html_page import fragment, page
from castalia.diagnose.output.json_text import from_text, to_text
from castalia.diagnose.output.terminal_text import Coloured, plain

__all__ = ["Coloured", "fragment", "from_text", "page", "plain", "to_text"]
