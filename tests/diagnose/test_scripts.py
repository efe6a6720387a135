"""The way in without a line changed, on scripts in the style of public tutorials."""

import json
import os
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"


@pytest.fixture
def diagnose(zygote, tmp_path):
    """Run a script under the doctor; return its exit code and the findings' codes."""

    def run(script):
        words = ["doctor", "--quiet", "-o", str(tmp_path), str(SCRIPTS / f"{script}.py")]
        code = zygote(words, tmp_path, os.devnull, os.devnull)
        found = json.loads((tmp_path / "diagnosis.json").read_text())["findings"]
        return code, [f["code"] for f in found if f["severity"] != "info"]

    return run


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("mnist_no_zero_grad", "CST112"),
        ("regression_unscaled", "CST202"),
        ("softmax_twice", "CST301"),
        ("scripted_no_zero_grad", "CST112"),
    ],
)
def test_the_fault_of_a_script_is_named_first(diagnose, script, code):
    exit_code, codes = diagnose(script)
    assert (exit_code, codes[0]) == (0, code)


@pytest.mark.parametrize("script", ["mnist_style", "char_lm"])
def test_a_healthy_script_is_left_in_peace(diagnose, script):
    assert diagnose(script) == (0, [])


def test_a_script_that_crashes_is_diagnosed_and_keeps_its_exit_code(diagnose):
    exit_code, codes = diagnose("crashes")
    assert (exit_code, codes[0]) == (1, "CST101")
