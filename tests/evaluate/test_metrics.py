import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

import castalia.evaluate
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.evaluate import (
    calibration_error,
    coverage_accuracy,
    higher_is_better,
    primary_metric,
    scores,
)

RNG = np.random.default_rng(0)
TABLE = RNG.dirichlet(np.ones(3), size=200)
CODE = (TABLE.cumsum(axis=1) > RNG.random((200, 1))).argmax(axis=1)
SAID = TABLE.argmax(axis=1)


def test_classification_scores_are_scikit_learns():
    found = scores("classification", CODE, SAID, TABLE)
    assert found["accuracy"] == (CODE == SAID).mean()
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(CODE, SAID))
    assert found["log_loss"] == pytest.approx(log_loss(CODE, TABLE))
    assert found["roc_auc"] == pytest.approx(roc_auc_score(CODE, TABLE, multi_class="ovr"))
    assert list(found) == [
        "accuracy",
        "balanced_accuracy",
        "f1",
        "log_loss",
        "roc_auc",
        "calibration_error",
    ]


def test_binary_auc_takes_one_column_or_two():
    y, p = np.array([0, 0, 1, 1]), np.array([0.1, 0.6, 0.4, 0.9])
    one = scores("classification", y, p > 0.5, p)
    assert one["roc_auc"] == pytest.approx(roc_auc_score(y, p))
    assert one == scores("classification", y, p > 0.5, np.column_stack([1 - p, p]))


def test_classes_need_not_be_sorted():
    names = np.array(["z", "a", "m"])
    named = scores("classification", names[CODE], names[SAID], TABLE, classes=names)
    assert named == pytest.approx(scores("classification", CODE, SAID, TABLE))


def test_a_class_missing_from_the_test_rows_does_no_harm():
    few = CODE < 2
    found = scores("classification", CODE[few], SAID[few], TABLE[few], classes=[0, 1, 2])
    assert all(np.isfinite(v) for v in found.values())
    assert "roc_auc" in found


def test_auc_is_left_out_when_there_is_one_class():
    assert "roc_auc" not in scores("classification", [1, 1], [1, 0], [0.9, 0.4], classes=[0, 1])


def test_float32_probabilities_are_accepted():
    assert scores("classification", CODE, SAID, TABLE.astype(np.float32))["log_loss"] > 0


def test_regression_scores():
    found = scores("regression", [1, 2, 3, 4], [1, 2, 3, 6])
    assert found == pytest.approx({"r2": 1 - 4 / 5, "rmse": 1, "mae": 0.5})


def test_errors_name_the_values():
    with pytest.raises(InvalidParameter, match=r"got 'clasification'. Did you mean"):
        scores("clasification", [1], [1])
    with pytest.raises(ShapeMismatch, match=r"\(2\); got 1"):
        scores("regression", [1, 2], [1])
    with pytest.raises(InvalidData, match="must sum to 1; got 3 to 3. Apply a softmax"):
        scores("classification", [0, 1], [0, 1], [[1, 2], [2, 1]])
    with pytest.raises(InvalidData, match="got `c`"):
        scores("classification", ["a", "c"], ["a", "a"], [0.1, 0.2], classes=["a", "b"])
    with pytest.raises(ShapeMismatch, match=r"one column per class \(2\); got 3"):
        scores("classification", ["a", "b"], ["a", "a"], [[1, 0, 0], [0, 1, 0]])
    with pytest.raises(InvalidParameter, match="Did you mean `accuracy`"):
        higher_is_better("acuracy")
    with pytest.raises(InvalidParameter, match="`task` must be"):
        primary_metric("ranking")


def test_calibration_error_of_a_constant_confidence_is_its_distance_from_the_accuracy():
    y = np.array([1] * 60 + [0] * 40)
    assert calibration_error(y, np.full(100, 0.9)) == pytest.approx(0.3)
    assert calibration_error(y, np.full(100, 0.6)) == pytest.approx(0.0)


def test_true_probabilities_are_calibrated():
    rng = np.random.default_rng(1)
    p = rng.random(20_000)
    assert calibration_error(rng.random(20_000) < p, p) < 0.02


def test_full_confidence_falls_into_the_last_bin():
    assert calibration_error([1, 1], [1.0, 1.0], classes=[0, 1]) == 0


def test_coverage_answers_ties_together_whatever_their_order():
    y, said = np.array([1, 1, 1, 1]), np.array([1, 0, 1, 0])
    sure = np.array([0.9, 0.5, 0.5, 0.5])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]):
        coverage, accuracy = coverage_accuracy(y[order], said[order], sure[order])
        assert coverage.tolist() == [0.25, 1.0]
        assert accuracy.tolist() == [1.0, 0.5]


def test_coverage_refuses_confidences_that_do_not_fit():
    with pytest.raises(ShapeMismatch, match="one entry per row"):
        coverage_accuracy([1, 2], [1, 2], [0.5])
    with pytest.raises(InvalidData, match="must hold numbers"):
        coverage_accuracy([1, 2], [1, 2], [0.5, np.nan])


def test_primary_metric_and_direction():
    assert higher_is_better(primary_metric("classification"))
    assert higher_is_better(primary_metric("regression"))
    assert not higher_is_better("log_loss")


def test_scikit_learns_metrics_are_found_by_name():
    assert castalia.evaluate.roc_auc_score is roc_auc_score
    assert "f1_score" in dir(castalia.evaluate)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        castalia.evaluate.nonsense  # noqa: B018
