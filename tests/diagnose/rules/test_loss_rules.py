"""CST302 and CST304 on planted heads and targets."""

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    CLASSES,
    ROWS,
    ask,
    classification,
    only,
    regression,
    set_head,
    set_rows,
)

from castalia.diagnose.rules.loss_rules import broadcasts, wrong_loss

N = 320


def fitting(loss, targets, outputs=(ROWS, 1)):
    return set_head(set_rows(regression(), targets=targets), loss=loss, outputs=outputs)


LABELS = np.arange(N) % CLASSES
ONE_HOT = np.eye(CLASSES)[LABELS]
NUMBERS = np.linspace(-1, 3, N)[:, None]

WRONG = {
    "one-hot classes by mse": ("mse", ONE_HOT, "cross_entropy"),
    "two classes by mse": ("mse", (LABELS % 2.0)[:, None], "BCEWithLogitsLoss"),
    "two signs by l1": ("l1", (2.0 * (LABELS % 2) - 1)[:, None], "BCEWithLogitsLoss"),
    "class numbers by mse": ("mse", LABELS.astype(float), "cross_entropy with 4 outputs"),
    "exclusive classes by bce": ("bce_logits", ONE_HOT, "cross_entropy"),
    "numbers by bce": ("bce_logits", NUMBERS, "mse_loss"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_a_loss_that_does_not_suit_the_targets_is_wrong(case):
    loss, targets, cure = WRONG[case]
    found = only(wrong_loss, fitting(loss, targets, (ROWS, *targets.shape[1:])))
    assert (found.code, found.severity, found.where) == ("CST302", "warning", "8")
    assert cure in found.remedy.text
    assert found.evidence[0].what == "loss at the end"


TWO_OF_FOUR = ONE_HOT + np.roll(ONE_HOT, 1, axis=1)
RIGHT = {
    "numbers by mse": ("mse", NUMBERS),
    "several labels by bce": ("bce_logits", TWO_OF_FOUR),
    "two classes by bce": ("bce", (LABELS % 2.0)[:, None]),
    "probabilities by bce": ("bce", np.linspace(0, 1, N)[:, None]),
    "classes by cross-entropy": ("cross_entropy", LABELS),
    "many counts by mse": ("mse", (np.arange(N) % 40.0)[:, None]),
}


@pytest.mark.parametrize("case", list(RIGHT))
def test_a_loss_that_suits_the_targets_is_left_alone(case):
    loss, targets = RIGHT[case]
    assert ask(wrong_loss, fitting(loss, targets, (ROWS, *targets.shape[1:]))) == []


@pytest.mark.parametrize(("task", "case"), [("regression", 0), ("multilabel", 4)])
def test_a_task_that_the_user_named_is_believed(task, case):
    loss, targets, _ = list(WRONG.values())[case]
    record = fitting(loss, targets, (ROWS, CLASSES))
    record.task = task
    assert ask(wrong_loss, record) == []


def test_an_autoencoder_of_zeros_and_ones_may_use_a_squared_error():
    x = np.eye(12)[np.arange(N) % 12]
    record = fitting("mse", x, (ROWS, 12))
    record.input_shape = (12,)
    assert ask(wrong_loss, record) == []


def test_a_loss_with_the_wrong_sign_is_found():
    record = set_head(classification(), negated=True)
    record.losses = list(np.linspace(-1.4, -9.0, 200))
    found = only(wrong_loss, record)
    assert found.code == "CST302"
    assert found.remedy.text == "Remove the minus sign."
    record.losses.reverse()
    assert ask(wrong_loss, record) == []


def test_a_batch_broadcast_against_itself_is_found():
    record = set_head(regression(), broadcast=((ROWS, 1), (ROWS, ROWS)))
    found = only(broadcasts, record)
    assert (found.code, found.severity, found.where) == ("CST304", "error", "8")
    (evidence,) = found.evidence
    assert (evidence.value, evidence.threshold) == (ROWS, 1.0)
    assert "squeeze(-1)" in found.remedy.text
    assert f"({ROWS}, {ROWS})" in found.summary


@pytest.mark.parametrize(
    "shapes",
    [None, ((ROWS, 1), (ROWS, 3)), ((1, 1), (1, 1)), ((ROWS, 3), (ROWS, 3)), ((), (ROWS,))],
    ids=["none", "columns", "one row", "equal", "a scalar"],
)
def test_other_shapes_do_not_multiply_the_rows(shapes):
    assert ask(broadcasts, set_head(regression(), broadcast=shapes)) == []
