"""Each benchmark runs in its tiniest setting; how fast it was there is not judged."""

import json
from importlib import import_module
from math import isfinite

import pytest
from benchmarks import NAMES, contention, memory
from benchmarks.harness import Bar, Contender, Report, Result, Spread, race, ratio, table
from tests.processes import run_code

IN_CHILDREN = ("memory",)  # each child imports torch again
BUSY = ("contention",)  # keeps a core busy in every round: too dear to try here
IN_PROCESS = tuple(name for name in NAMES if name not in (*IN_CHILDREN, *BUSY))


def test_every_benchmark_is_listed_here():
    assert {*IN_PROCESS, *IN_CHILDREN, *BUSY} == set(NAMES)


def results(figures):
    """Find the timings among the figures of a report, however deep they lie."""
    if not isinstance(figures, dict):
        return []
    if {"wall", "cpu"} <= set(figures):
        return [figures]
    return [result for part in figures.values() for result in results(part)]


def judge(report, name):
    """What holds at any size: every contender ran, and who must agree with a peer agrees."""
    assert report.name == name
    assert all(str(part) in str(report) for part in (report.text, *report.bars))
    for result in results(report.figures):
        assert len(result["wall"]) == len(result["cpu"]) > 0
        assert min(result["wall"]) > 0
        assert result["score"] is None or isfinite(result["score"])
        assert result["name"] in report.text
    agreed = [b for b in report.bars if any(word in b.what for word in AGREEMENT)]
    assert [str(bar) for bar in agreed if not bar.held] == []
    assert len(agreed) == AGREED.get(name, 0)


AGREEMENT = ("error, castalia", "objective", "difference", "brings in", "digits of accuracy")
AGREED = {"spectrum": 1, "linear": 3, "linear_classifiers": 3, "graph_bprop": 1, "imports": 2}
AGREED["odeint"] = 2


@pytest.mark.parametrize("name", IN_PROCESS)
def test_a_benchmark_times_every_contender_and_its_answers_agree_at_any_size(name):
    judge(import_module(f"benchmarks.{name}").run("tiny"), name)


@pytest.mark.parametrize(
    ("siblings", "cores"), [("01 01 23 23", [0, 2]), ("0 1", [0, 1]), ("01 01", [0, 1])]
)
def test_contention_is_measured_on_two_cores_that_share_nothing(
    monkeypatch, tmp_path, siblings, cores
):
    allowed = range(len(siblings.split()))
    monkeypatch.setattr(contention.os, "sched_getaffinity", lambda _: set(allowed), raising=False)
    for number, threads in enumerate(siblings.split()):
        (tmp_path / f"cpu{number}" / "topology").mkdir(parents=True)
        (tmp_path / f"cpu{number}" / "topology" / "thread_siblings_list").write_text(threads)
    assert contention.two_cores(tmp_path) == cores


def test_the_benchmark_of_memory_reports_what_its_processes_measured(monkeypatch, zygote, tmp_path):
    def train(path, how, batch_size):
        done = run_code(zygote, tmp_path, memory.TRAIN, path, how, batch_size)
        return json.loads(done.stdout)

    monkeypatch.setattr(memory, "train", train)
    report = memory.run("tiny")
    judge(report, "memory")
    peak, equal = (bar.value for bar in report.bars)
    assert 0 < peak < 16
    assert equal == 1


def test_a_report_whose_contender_did_not_run_or_disagrees_is_found():
    ran = {"name": "ours", "wall": [1.0], "cpu": [1.0], "score": None}
    judge(Report("digits", "", "| ours |", figures={"ours": ran}), "digits")
    for wrong in ({"wall": [], "cpu": []}, {"score": float("nan")}, {"name": "theirs"}):
        with pytest.raises(AssertionError):
            judge(Report("digits", "", "| ours |", figures={"ours": ran | wrong}), "digits")
    bar = Bar("relative error, castalia", 1.0, "<=", 1e-3)
    with pytest.raises(AssertionError, match="MISSED"):
        judge(Report("spectrum", "", "", [bar]), "spectrum")


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
