"""Every finding has a page, and the page's code runs and prints what the page shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest
import torch

from castalia.diagnose import NAMES

PAGES = Path(__file__).parents[2] / "docs" / "findings"
SECTIONS = ["How it is seen", "The disease", "The cure", "Remedies", "False alarms", "Related"]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|-?\binf\b|\bnan\b")


def page(code):
    return (PAGES / f"{code}.md").read_text(encoding="utf-8")


def run(source, names):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "page", "exec"), names)
    return printed.getvalue()


def room(shown):
    """Return how far a number may be off: some units of its last digit; none for a count."""
    digits, _, power = shown.partition("e")
    units = 1.1 if power else 2.1 if "." in digits else 0.0
    return units * 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def near(printed, shown):
    """Whether two numbers are the same but for what another processor may round differently."""
    if "n" in shown:  # nan, inf
        return printed == shown
    return float(printed) == pytest.approx(float(shown), rel=0.05, abs=room(shown))


def agree(printed, shown):
    """Whether two outputs have equal words and near numbers."""
    if NUMBER.sub("#", printed) != NUMBER.sub("#", shown):
        return False
    return all(map(near, NUMBER.findall(printed), NUMBER.findall(shown)))


@pytest.mark.parametrize("code", NAMES)
def test_the_code_of_the_page_prints_what_it_shows(code):
    names = {"__name__": "page"}
    with torch.random.fork_rng(devices=[]):
        for source, shown in BLOCK.findall(page(code)):
            printed = run(source, names)
            assert agree(printed, shown), f"{code} shows {shown!r} and prints {printed!r}"


@pytest.mark.parametrize("code", NAMES)
def test_the_page_has_the_shape_of_all_pages(code):
    text = page(code)
    assert text.startswith(f"# {code} {NAMES[code]}\n")
    assert re.findall(r"^## (.*)$", text, flags=re.M) == SECTIONS
    assert 40 <= len(text.splitlines()) <= 80
    assert "!" not in re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


@pytest.mark.parametrize("code", NAMES)
def test_disease_and_cure_are_both_shown_with_a_number(code):
    for section in ("The disease", "The cure"):
        inside = page(code).split(f"## {section}\n")[1].split("\n## ")[0]
        outputs = [shown for _, shown in BLOCK.findall(inside)]
        assert outputs, section
        assert all(NUMBER.search(shown) for shown in outputs)


@pytest.mark.parametrize("code", NAMES)
def test_links_lead_to_other_findings_under_their_names(code):
    text = page(code)
    linked = re.findall(r"\[(CST\d{3})\]\((CST\d{3})\.md\)", text)
    assert all(shown == target and target in NAMES and target != code for shown, target in linked)
    for found, name in re.findall(r"\[(CST\d{3})\]\([^)]*\)\s+([a-z]+(?:-[a-z]+)+)", text):
        assert name == NAMES[found]


def test_every_page_is_of_a_finding_and_the_table_lists_them_all():
    assert {file.stem for file in PAGES.glob("CST*.md")} == set(NAMES)
    table = (PAGES / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(CST\d{3})\]\((CST\d{3})\.md\) \| ([\w-]+) \| .+ \|$", table, re.M)
    assert [(code, name) for code, _, name in rows] == list(NAMES.items())
    assert all(code == target for code, target, _ in rows)


def test_the_three_lines_of_the_first_page_run():
    ((source, _),) = BLOCK.findall((PAGES / "index.md").read_text(encoding="utf-8"))
    with torch.random.fork_rng(devices=[]):
        assert run(source, {"__name__": "page"}).startswith("Diagnosis")


@pytest.mark.parametrize(
    "printed, shown, same",
    [
        ("loss 0.52\n", "loss 0.51\n", True),
        ("loss 0.60\n", "loss 0.51\n", False),
        ("loss 0.51\n", "accuracy 0.51\n", False),
        ("norm 2e+16\n", "norm 2e+16\n", True),
        ("norm 9e+02\n", "norm 2e+16\n", False),
        ("modes 2 of 8\n", "modes 1 of 8\n", False),
        ("loss nan\n", "loss nan\n", True),
        ("loss 1\n", "loss nan\n", False),
        ("a 1, b 2\n", "a 1\n", False),
    ],
)
def test_outputs_are_compared_with_room_for_rounding_only(printed, shown, same):
    assert agree(printed, shown) is same
