"""The stub of the package is what the catalogue says today."""

import ast
import importlib.util
from pathlib import Path

import castalia

FILE = Path(__file__).parents[2] / "tools" / "stubs.py"


def test_the_stub_is_current_and_has_every_public_name():
    spec = importlib.util.spec_from_file_location("stubs_under_test", FILE)
    stubs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stubs)
    text = stubs.FILE.read_text(encoding="utf-8")
    assert text == stubs.stub_text(), "run `python tools/stubs.py`"
    imports = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
    found = {alias.asname for node in imports for alias in node.names}
    assert set(castalia.__all__) - {"__version__"} <= found
