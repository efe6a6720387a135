"""What the method advises, and what it leaves to the doctor."""

import pyarrow as pa

from castalia.evaluate import Interval
from castalia.method.advice import give_advice
from castalia.method.fit_plan import FitPlan
from castalia.method.kinds import open_data
from castalia.method.problem import pose_problem
from castalia.method.verdict import Verdict


def advise(labels=("a", "b"), **facts):
    table = pa.table({"x": list(range(2000)), "y": list(labels) * (2000 // len(labels))})
    problem = pose_problem(open_data(FitPlan(data=table, target="y")))
    history = [{"epoch": e, "loss": 0.1, "val_loss": 0.3 + 0.01 * abs(e - 5)} for e in range(11)]
    verdict = Verdict("better", "better", "guessing", Interval(0.1, 0.05, 0.15, 10))
    seeds = Interval(0.9, 0.89, 0.91, 10)
    left = {"history": history, "stopped": None, "most_epochs": 10, **facts}
    return give_advice(problem, verdict, seeds, left, checks=[])


def test_what_is_wrong_inside_the_training_is_left_to_the_doctor():
    assert advise() == []


def test_a_training_cut_by_the_time_limit_is_reported():
    (line,) = advise(stopped="the time limit")
    assert "raise --time-limit" in line


def test_many_even_classes_are_not_called_uneven():
    assert advise("abcdefghijklmnop") == []
    (line,) = advise("aaaaaaaaaaaaaaab")
    assert line.startswith("Classes are uneven (b has 125 rows, a 1,875)")
