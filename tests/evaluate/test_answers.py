"""Exact match, F1 of answers, and the measures of the benchmarks."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import f1_score, matthews_corrcoef

from castalia.data.text import TASKS
from castalia.errors import InvalidData, ShapeMismatch
from castalia.evaluate import answer_f1, exact_match, task_scores


@pytest.mark.parametrize(
    ("true", "said", "match", "f1"),
    [
        ("the Eiffel Tower", "Eiffel tower.", 1, 1),
        ("the red cat", "a red dog", 0, 0.5),  # one word of two in common, articles aside
        ("cat cat dog", "cat", 0, 0.5),  # 2 * 1 / (3 + 1)
        ("", "", 1, 1),
        ("", "Rome", 0, 0),
        ((), "", 1, 1),
        (None, "no", 0, 0),
        (("Paris", "city of Paris"), "Paris city", 0, 0.8),  # the nearest counts: 2 * 2 / (3 + 2)
    ],
    ids=["articles", "half", "repeated", "none", "invented", "no references", "None", "nearest"],
)
def test_answers_are_compared_as_bags_of_their_words(true, said, match, f1):
    assert exact_match([true], [said]) == match
    assert answer_f1([true], [said]) == pytest.approx(f1)


def test_each_task_is_scored_by_its_own_measures():
    random = np.random.default_rng(0)
    for task in TASKS.values():
        if task.labels:
            y, said = (random.choice(task.labels, size=60) for _ in range(2))
        elif task.layout == "choice":
            y, said = (random.integers(4, size=60) for _ in range(2))
        elif task.layout == "span":
            y, said = [("Rome", "in Rome"), ()], ["Rome", "Rome"]
        else:
            y, said = random.random(60), random.random(60)
        expected = {
            "accuracy": lambda y, said: np.mean(y == said),
            "f1": lambda y, said, task=task: f1_score(y, said, pos_label=task.labels[1]),
            "matthews": matthews_corrcoef,
            "pearson": lambda y, said: pearsonr(y, said)[0],
            "spearman": lambda y, said: spearmanr(y, said)[0],
            "f1_of_answers": lambda y, said: 0.5,
            "exact_match": lambda y, said: 0.5,
        }
        found = task_scores(task, y, said)
        assert tuple(found) == task.metrics
        for name, value in found.items():
            assert value == pytest.approx(expected[name](y, said)), (task.name, name)


def test_the_measures_are_those_of_the_benchmarks():
    measures = {name: task.metrics for name, task in TASKS.items()}
    assert measures["cola"] == ("matthews",)
    assert measures["stsb"] == ("pearson", "spearman")
    assert measures["qqp"] == measures["mrpc"] == ("f1", "accuracy")
    assert measures["squad"] == measures["squad2"] == ("f1_of_answers", "exact_match")
    rest = ("mnli", "qnli", "rte", "sst2", "swag")
    assert {measures[name] for name in rest} == {("accuracy",)}


def test_rows_must_match_and_a_constant_correlates_with_nothing():
    with pytest.raises(ShapeMismatch, match="got 2 and 1"):
        task_scores("rte", ["entailment"] * 2, ["entailment"])
    with pytest.raises(ShapeMismatch, match="got 0 and 0"):
        exact_match([], [])
    with pytest.raises(InvalidData, match="at least two rows"):
        task_scores("stsb", [1.0], [1.0])
    assert task_scores("stsb", [1.0, 2.0], [3.0, 3.0]) == {"pearson": 0.0, "spearman": 0.0}
