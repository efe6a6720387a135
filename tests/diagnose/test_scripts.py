"""The way in without a line changed, on scripts in the style of public tutorials."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_doctor_command import ENVIRONMENT

SCRIPTS = Path(__file__).parent / "scripts"


def diagnose(script, folder):
    """Run a script under the doctor; return its exit code and the findings' codes."""
    command = [sys.executable, "-m", "castalia.doctor", "--quiet", "-o", str(folder)]
    done = subprocess.run(
        [*command, str(SCRIPTS / f"{script}.py")], capture_output=True, text=True, env=ENVIRONMENT
    )
    found = json.loads((folder / "diagnosis.json").read_text())["findings"]
    return done.returncode, [f["code"] for f in found if f["severity"] != "info"]


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("mnist_no_zero_grad", "CST112"),
        ("regression_unscaled", "CST202"),
        ("softmax_twice", "CST301"),
    ],
)
def test_the_fault_of_a_script_is_named_first(script, code, tmp_path):
    exit_code, codes = diagnose(script, tmp_path)
    assert (exit_code, codes[0]) == (0, code)


@pytest.mark.parametrize("script", ["mnist_style", "char_lm"])
def test_a_healthy_script_is_left_in_peace(script, tmp_path):
    assert diagnose(script, tmp_path) == (0, [])


def test_a_script_that_crashes_is_diagnosed_and_keeps_its_exit_code(tmp_path):
    exit_code, codes = diagnose("crashes", tmp_path)
    assert (exit_code, codes[0]) == (1, "CST101")
