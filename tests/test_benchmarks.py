"""Each benchmark runs in its tiniest setting; their figures are judged elsewhere."""

from importlib import import_module

import pytest
from benchmarks import NAMES
from benchmarks.harness import Bar, Contender, Result, Spread, race, ratio, table

IN_PROCESS = ("digits", "iris", "clusters", "overhead", "predict", "gpu_mlp", "imports", "odeint")
IN_CHILDREN = ("contention", "memory")  # each child imports torch anew


def test_every_benchmark_is_listed_here():
    assert {*IN_PROCESS, *IN_CHILDREN} == set(NAMES)


@pytest.mark.parametrize("name", IN_PROCESS)
def test_benchmark_runs_in_its_tiniest_setting(name):
    report = import_module(f"benchmarks.{name}").run("tiny")
    assert report.name == name
    assert report.text in str(report)


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_CHILDREN)
def test_benchmark_with_child_processes_runs_in_its_tiniest_setting(name):
    assert import_module(f"benchmarks.{name}").run("tiny").bars


def test_contenders_take_turns_and_the_warm_up_is_not_counted():
    seen = []
    runs = [Contender(name, lambda name=name: seen.append(name)) for name in "ab"]
    found = race(runs, rounds=2, warm_up=1)
    assert "".join(seen) == "baabba"
    assert len(found["a"].wall) == len(found["b"].cpu) == 2


def test_ratios_are_taken_round_by_round():
    fast, slow = Result("fast", cpu=[1.0, 2.0, 1.0]), Result("slow", cpu=[2.0, 4.0, 3.0])
    assert ratio(slow, fast) == Spread(2.0, 2.0, 3.0)


def test_table_has_a_row_for_each_contender():
    found = race([Contender("a", lambda: lambda: 0.5)], rounds=1)
    assert table(found, "a").splitlines()[-1].endswith("| 1.00 (1.00–1.00) | 0.5000 |")


@pytest.mark.parametrize(("rule", "held"), [("<=", False), (">=", True)])
def test_a_bar_says_whether_it_is_held(rule, held):
    bar = Bar("time", 1.2, rule, 1.1)
    assert bar.held is held
    assert ("MISSED" in str(bar)) is not held
