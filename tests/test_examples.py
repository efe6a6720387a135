"""Every example in a docstring runs and shows what it says."""

import doctest
import importlib
import linecache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
FILES = sorted(
    file.relative_to(SOURCE).with_suffix("")
    for file in (SOURCE / "castalia").rglob("*.py")
    if ">>> " in file.read_text() and file.name != "__main__.py"
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: ".".join(file.parts[1:]))
def test_the_examples_run_as_shown(file, capsys):
    name = ".".join(file.parts).removesuffix(".__init__")
    linecache.clearcache()  # for each docstring doctest resets a debugger, which checks every file
    done = doctest.testmod(importlib.import_module(name))
    assert done.failed == 0, capsys.readouterr().out
