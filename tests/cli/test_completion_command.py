"""Shells complete verbs and options."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from castalia.cli.app import app

SOURCE = Path(__file__).parents[2] / "src"


def completed(**asked):
    env = {**os.environ, "PYTHONPATH": str(SOURCE), **asked}
    command = [sys.executable, "-m", "castalia"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60).stdout


def test_bash_is_given_the_verbs_and_options_that_begin_so():
    asked = {"_CASTALIA_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    assert completed(**asked, COMP_WORDS="castalia exp").split() == ["explain", "export"]
    asked["COMP_CWORD"] = "2"
    assert "--int8" in completed(**asked, COMP_WORDS="castalia export --in").split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_lines_for_a_shell_name_the_command_and_parse(shell):
    done = CliRunner().invoke(app, ["completion", shell])
    assert done.exit_code == 0
    assert "_CASTALIA_COMPLETE" in done.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.stdout, text=True, check=True)


def test_another_shell_is_refused():
    done = CliRunner().invoke(app, ["completion", "bashh"])
    assert done.exit_code == 2
    assert "Did you mean" in done.output
