"""What the method advises, and what it leaves to the doctor."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from castalia.evaluate import Interval
from castalia.method.advice import give_advice
from castalia.method.fit_plan import FitPlan
from castalia.method.kinds import open_data
from castalia.method.problem import pose_problem
from castalia.method.verdict import Verdict


def advise(labels=("a", "b"), outcome="better", each=(0.9, 0.9, 0.9), plan=(), **facts):
    table = pa.table({"x": list(range(2000)), "y": list(labels) * (2000 // len(labels))})
    problem = pose_problem(open_data(FitPlan(data=table, target="y", **dict(plan))))
    verdict = Verdict(outcome, "", "Gradient boosting", Interval(0.1, 0.05, 0.15, 10))
    entry = SimpleNamespace(each=list(each))
    left = {"history": [], "stopped": None, "most_epochs": 10, **facts}
    trainings = SimpleNamespace(entry=entry, facts=left)
    return give_advice(problem, verdict, trainings, checks=[])


def test_what_is_wrong_inside_the_training_is_left_to_the_doctor():
    assert advise() == []


def test_a_training_cut_by_the_time_limit_is_reported():
    (line,) = advise(stopped="the time limit")
    assert "raise --time-limit" in line


def test_many_even_classes_are_not_called_uneven():
    assert advise("abcdefghijklmnop") == []
    (line,) = advise("aaaaaaaaaaaaaaab")
    assert line.startswith("Classes are uneven (b has 125 rows, a 1,875)")


@pytest.mark.parametrize(
    "plan, act",
    [
        ({}, "decide by --metric balanced_accuracy and try --set class_weight=balanced"),
        ({"settings": {"class_weight": "balanced"}}, "decide by --metric balanced_accuracy"),
        ({"model": "GaussianProcessClassifier"}, "decide by --metric balanced_accuracy"),
        ({"metric": "balanced_accuracy"}, "try --set class_weight=balanced"),
    ],
    ids=["usual", "weighted", "without weights", "balanced"],
)
def test_class_weights_are_advised_to_models_that_have_them_unused(plan, act):
    (line,) = advise("aaaaaaaaaaaaaaab", plan={"metric": "accuracy", **plan})
    assert line == f"Classes are uneven (b has 125 rows, a 1,875): {act}."


def test_nothing_is_advised_about_uneven_classes_where_nothing_can_be_set():
    plan = {"model": "GaussianProcessClassifier", "metric": "balanced_accuracy"}
    assert advise("aaaaaaaaaaaaaaab", plan=plan) == []


def test_settings_that_were_just_used_are_not_advised():
    (line,) = advise(outcome="worse")
    assert "--set hidden=256,256, --set lr=0.001" in line
    (line,) = advise(outcome="worse", plan={"settings": {"hidden": (256, 256), "lr": 0.001}})
    assert "--set hidden=512,512, --set lr=0.0003" in line
    (line,) = advise(outcome="worse", plan={"model": "logistic"})
    assert "hidden" not in line


def test_scores_of_splits_and_seeds_are_those_that_were_measured():
    (line,) = advise(outcome="equal", each=(0.84, 0.91, 0.86))
    assert line == (
        "TabularClassifier scores 0.840 to 0.910 depending on split and seed, so small differences "
        "decide nothing; castalia fit --cv 5 compares on all rows."
    )
    (line,) = advise(outcome="equal", each=(0.84, 0.91, 0.86), plan={"cv": 3})
    assert "--cv" not in line
    assert advise(outcome="equal") == []


def test_folds_are_not_advised_to_someone_who_uses_them(tmp_path):
    rows = pa.table({"x": list(range(60)), "y": ["a", "b"] * 30})
    verdict = Verdict("equal", "", "Guessing", Interval(0.0, -0.1, 0.1, 10))
    (line,) = open_data(FitPlan(data=rows, target="y")).advice(verdict)
    assert line.endswith("Use castalia fit --cv 5 to test on all of them.")
    (line,) = open_data(FitPlan(data=rows, target="y", cv=3)).advice(verdict)
    assert "--cv" not in line
