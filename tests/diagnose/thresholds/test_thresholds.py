"""Every threshold stands in the table, with its origin; no rule or probe has one of its own."""

import ast
import re
from pathlib import Path
from textwrap import dedent

import pytest

from castalia.diagnose.thresholds import LIMITS, ORIGINS, limit

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "castalia" / "diagnose"
TRIVIAL = {0.0, 1.0}  # a sign, and a whole share
NOT_THRESHOLDS = {"level"}  # its arguments say which part of the training is meant


def numbers(node):
    """Yield the floats of an expression, but for exponents and parts of the training."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in NOT_THRESHOLDS:
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield node
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and name == "right":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from numbers(child)


def compared(tree):
    """Yield what is compared, and what a finding shows as the limit of a measurement."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Evidence":
            yield from node.args[2:3]


def own_thresholds(source):
    found = (number for side in compared(ast.parse(dedent(source))) for number in numbers(side))
    return sorted({(n.lineno, n.value) for n in found if n.value not in TRIVIAL})


@pytest.mark.parametrize(
    "file", sorted(SOURCE.rglob("*.py")), ids=lambda f: f.relative_to(SOURCE).as_posix()
)
def test_no_file_of_the_doctor_compares_with_a_number_of_its_own(file):
    assert own_thresholds(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "x > 0.3",
        "0.93 <= min(scores) <= 1",
        "x > 0.3 * case.level(0.7, 1.0)",
        "np.std(x) < -1e-6",
        "Evidence('share', x, 0.5, above=False)",
        "{'error' if share > 0.3 else 'warning'}",
    ],
)
def test_a_number_of_its_own_is_found(source):
    assert len(own_thresholds(source)) == 1


def test_signs_windows_exponents_and_confidences_are_no_thresholds():
    source = """
        x > 0.0
        case.level(0.7, 1.0) > limit("fit.flat") * case.level(0.4, 0.7)
        gap > 3 * spread / n**0.5
        sure = 0.9 if many else 0.75
    """
    assert own_thresholds(source) == []


@pytest.mark.parametrize("name", LIMITS)
def test_a_threshold_has_a_finite_value_an_origin_and_a_reason(name):
    found = LIMITS[name]
    assert limit(name) == found.value
    assert abs(found.value) < float("inf")
    assert found.origin in ORIGINS
    assert len(found.why.split()) >= 3


def test_every_threshold_is_read_somewhere_and_every_name_that_is_read_exists():
    files = [f for f in SOURCE.rglob("*.py") if f.parent.name != "thresholds"]
    code = "".join(f.read_text(encoding="utf-8") for f in files)
    read = set(re.findall(r'"([a-z]+\.[a-z0-9_]+)"', code))
    assert set(LIMITS) - read == set()
    asked = set(re.findall(r'limit\(\s*"([^"]+)"', code))
    assert asked - set(LIMITS) == set()


def test_no_name_stands_twice():
    files = (SOURCE / "thresholds").glob("*_limits.py")
    names = [n for f in files for n in re.findall(r'^    "([^"]+)": Limit', f.read_text(), re.M)]
    assert sorted(names) == sorted(LIMITS)
