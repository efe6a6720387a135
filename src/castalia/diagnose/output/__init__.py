"""How a diagnosis is written: for a terminal, a notebook, a browser, a CI server, and as JSON."""

from castalia.diagnose.output.html_page import fragment, page
from castalia.diagnose.output.json_text import from_text, to_text
from castalia.diagnose.output.junit_text import to_junit
from castalia.diagnose.output.sarif_text import to_sarif
from castalia.diagnose.output.terminal_text import Coloured, plain

__all__ = ["Coloured", "fragment", "from_text", "page", "plain", "to_junit", "to_sarif", "to_text"]
