"""Faults are put into the library: a test that holds its row fails, one that does not is named."""

import importlib.util
import json
import os
from pathlib import Path

import pytest
from tests.processes import run_code
from tools.course_code import functions_of
from tools.mutants import CourseRow, Proof, Settings, report, run, wilson
from tools.mutations import mutations_of, tables_of

from castalia.nn import Sign

ROOT = Path(__file__).parents[2]

PLANTED = '''
import functools

def total(first, second):
    """Sum."""
    if first < 0:
        raise ValueError(f"{1 + 1}")
    return first - second

copied = total

def rounds(step):
    @functools.wraps(step)
    def inner(x):
        return step(x) + 1
    return inner

@rounds
def next_one(x: int = 70 + 4):
    return x * 2

class Scale:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return self.by * x
'''


@pytest.fixture
def planted(tmp_path):
    file = tmp_path / "planted_module.py"
    file.write_text(PLANTED)
    spec = importlib.util.spec_from_file_location("planted_module", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def faults(function):
    return {f"{fault.kind}: {fault.said}": fault for fault in mutations_of(function)}


def test_every_kind_of_fault_is_offered_and_none_in_messages_or_docstrings(planted):
    assert set(faults(planted.total)) == {
        "change a comparison: `first < 0` becomes `first >= 0`",
        "change a constant: `0` becomes `1`",
        "flip a sign: `first - second` becomes `first + second`",
        "drop a term: `first - second` becomes `first`",
        "swap arguments: `first - second` becomes `second - first`",
        "return the input: `return first - second` becomes `return first`",
    }


def test_a_fault_reaches_every_copy_of_the_function(planted):
    fault = faults(planted.total)["flip a sign: `first - second` becomes `first + second`"]
    assert planted.copied(5, 3) == 2
    assert fault.apply()
    assert planted.copied(5, 3) == planted.total(5, 3) == 8


def test_a_decorated_function_a_closure_and_a_method_can_be_broken(planted):
    inside = planted.next_one.__wrapped__
    assert planted.next_one(4) == 9
    assert faults(inside)["flip a sign: `x * 2` becomes `x / 2`"].apply()
    assert planted.next_one(4) == 3
    assert faults(planted.rounds)["drop a term: `step(x) + 1` becomes `step(x)`"].apply()
    assert planted.next_one(4) == 8  # the fault before is undone
    scale = planted.Scale(3)
    assert faults(planted.Scale.__call__)["drop a term: `self.by * x` becomes `self.by`"].apply()
    assert scale(5) == 3


def test_defaults_and_annotations_are_left_alone(planted):
    assert not any("70" in said for said in faults(planted.next_one.__wrapped__))


def test_the_source_stays_as_it_is(planted):
    next(iter(faults(planted.total).values())).apply()
    assert Path(planted.__file__).read_text() == PLANTED


def test_a_table_is_broken_by_exchanging_entries():
    assert [f.said for f in tables_of("m:T", {"a": 1, "b": 2})] == ["`a` and `b` exchanged"]
    assert tables_of("m:T", len) == []


def test_the_interval_is_wilson_s():
    low, high = wilson(8, 50)
    assert (round(low, 4), round(high, 4)) == (0.0834, 0.2851)  # by hand
    assert wilson(0, 0) == (0.0, 1.0)


def test_rows_that_could_not_run_do_not_count_in_the_rate():
    row = CourseRow("A-1", "a", "Area", "m:f", ("t",))
    gone = Proof(row, "not run", "its tests cannot be collected")
    text = report([Proof(row, "survives"), gone], [row], Settings())
    assert "rows that survive every fault: 1 of 1" in text
    assert "- A-1: its tests cannot be collected" in text


TESTS = """
import torch
from castalia.nn import Sign
from castalia.objectives import L2

def test_strong():
    assert Sign()(torch.tensor([-2.0, 0.0, 3.0])).tolist() == [-1.0, 0.0, 1.0]

def test_weak():
    assert Sign()(torch.tensor([-2.0])).shape == (1,)

def test_elsewhere():
    assert L2 is not None
"""
TOOL = """
import os, runpy, sys
os.chdir(sys.argv[1])
sys.path.insert(0, sys.argv[1])
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
COURSE = """
[rows.A-{number}]
name = "{test}"
area = "A"
object = "castalia.nn:Sign"
tests = ["{file}::test_{test}"]
"""


def test_a_planted_weak_test_survives_and_a_strong_one_does_not(zygote, tmp_path):
    file, course = tmp_path / "test_planted.py", tmp_path / "course.toml"
    file.write_text(TESTS)
    names = ("strong", "weak", "elsewhere", "missing")
    there = os.path.relpath(file, ROOT)
    rows = [COURSE.format(number=n, test=name, file=there) for n, name in enumerate(names)]
    course.write_text("\n".join(rows))
    places = {"json": "found.json", "kept": "kept.json", "markdown": "PROOFS.md"}
    outs = [f"--{option}={tmp_path / name}" for option, name in places.items()]
    done = run_code(
        zygote, tmp_path, TOOL, ROOT, ROOT / "tools" / "mutants.py", f"--course={course}", *outs
    )
    found = json.loads((tmp_path / "found.json").read_text())
    status = {row["tests"][0].split("_")[-1]: row["status"] for row in found if row["tests"]}
    assert status == {"strong": "killed", "weak": "survives", "elsewhere": "survives"}, done
    assert done.returncode == 1
    assert [row["row"] for row in found if row["outside"]] == ["A-2"]
    assert "- A-3: its tests cannot be collected" in (tmp_path / "PROOFS.md").read_text()


class Kept(dict):
    """A memory in which everything has been run before."""

    def __contains__(self, key):
        return True

    def __missing__(self, key):
        self[key] = {"verdict": "survives", "passed": [THIS], "lines": LINES, "seconds": 1.0}
        self[key]["outside"] = []
        return self[key]


THIS = "tests/tools/test_mutants.py::test_what_is_kept_is_not_run_again"
LINES = [[functions_of(Sign)[0].__code__.co_filename, line] for line in range(200)]


def test_what_is_kept_is_not_run_again(monkeypatch):
    monkeypatch.setattr("os.fork", lambda: pytest.fail("nothing is left to run"))
    row = CourseRow("A-1", "a", "A", "castalia.nn:Sign", (THIS,))
    (proof,) = run([row], Settings(faults=2, most=2), kept=Kept())
    assert (proof.status, len(proof.faults)) == ("survives", 2)
