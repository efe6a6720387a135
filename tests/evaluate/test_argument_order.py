"""Every measure takes what is true first and what was said second; old names still work."""

import inspect

import pytest

from castalia import evaluate
from castalia.evaluate import bleu, chrf, exact_match, mean_average_precision, precision_recall

PAIRS = [
    *("answer_f1", "bleu", "bootstrap", "boundary_accuracy", "calibration_error", "chrf"),
    *("class_iou", "coverage_accuracy", "detection_scores", "exact_match", "expected_cost"),
    *("mean_average_precision", "mean_iou", "paired_difference", "pixel_accuracy"),
    *("precision_recall", "rouge", "scores", "task_scores", "worst_mistakes"),
    *("mean_reciprocal_rank", "ndcg", "recall_at"),
]


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_true_comes_before_what_was_said(name):
    names = list(inspect.signature(getattr(evaluate, name)).parameters)
    place = names.index("y_true")
    assert place == (name in ("bootstrap", "paired_difference", "scores", "task_scores"))
    assert names[place + 1] in ("y_pred", "y_score", "probability", "a")


def test_old_names_work_with_a_warning():
    with pytest.warns(FutureWarning, match="`prediction` is now `y_pred`"):
        assert precision_recall([1, 0], prediction=[1, 1]) == (0.5, 1.0)
    with pytest.warns(FutureWarning, match="`targets` is now `y_true`"):
        mean_average_precision(targets=[[[0, 0, 0, 1, 1]]], y_pred=[[[0, 0, 0, 1, 1, 0.5]]])
    with pytest.warns(FutureWarning, match="`(references|translations)` is now"):
        old = bleu(translations=["a b c d e"], references=["a b c d"])
    assert old == bleu(["a b c d"], ["a b c d e"])
    assert old != bleu(["a b c d e"], ["a b c d"])
    assert exact_match(["a"], y_pred=["a"]) == 1


def test_the_old_order_of_bleu_is_seen_by_its_alternatives():
    with pytest.warns(FutureWarning, match="now comes before"):
        old = bleu(["a b c d x"], [["a b c d", "a b c d e"]])
    assert old == bleu([["a b c d", "a b c d e"]], ["a b c d x"])
    assert chrf(["a b c d"], ["a b c d"]) == pytest.approx(100)
