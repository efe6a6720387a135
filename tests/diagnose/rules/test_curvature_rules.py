"""CST114 on planted turns of the gradient and axes of the inputs."""

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    CLASSES,
    COLUMNS,
    LR,
    above,
    ask,
    below,
    classification,
    logits,
    only,
    regression,
    set_rows,
    set_turning,
    set_updates,
    standard,
)

from castalia.diagnose.record import OptimizerFacts, Weight
from castalia.diagnose.rules.curvature_rules import zigzag
from castalia.diagnose.thresholds import limit


def creeping():
    record = regression(0.7, list(np.linspace(1.4, 0.7, 200)))
    return set_updates(record, above("curvature.steps"))


def stretched(ratio):
    """Inputs of unit scale, equally correlated: eigenvalues 1 + (p - 1)r and 1 - r."""
    r = (ratio - 1) / (ratio + COLUMNS - 1)
    correlation = np.full((COLUMNS, COLUMNS), r) + (1 - r) * np.eye(COLUMNS)
    x = standard(320, COLUMNS) @ np.linalg.cholesky(correlation).T
    return set_rows(creeping(), inputs=x)


def test_steps_too_short_to_feel_a_steep_direction_do_not_zigzag():
    record = stretched(above("curvature.ratio"))
    assert only(zigzag, record).code == "CST114"
    assert ask(zigzag, set_updates(record, below("curvature.steps"))) == []


def test_gradients_that_turn_back_each_step_zigzag():
    found = only(zigzag, set_turning(creeping(), below("turning.zigzag")))
    assert (found.code, found.severity, found.where) == ("CST114", "warning", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(below("turning.zigzag"))
    assert not evidence.above
    assert evidence.threshold == limit("turning.zigzag")
    assert found.remedy.changes == {"training__optimizer": "adam"}
    assert "Adam" in found.remedy.text


def test_gradients_that_turn_a_little_less_do_not_zigzag():
    assert ask(zigzag, set_turning(creeping(), above("turning.zigzag"))) == []


def test_inputs_far_longer_in_one_direction_are_ill_conditioned():
    (evidence,) = only(zigzag, stretched(above("curvature.ratio"))).evidence
    assert evidence.value == pytest.approx(above("curvature.ratio"))
    assert evidence.threshold == limit("curvature.ratio")
    assert evidence.above
    assert ask(zigzag, stretched(below("curvature.ratio"))) == []


def test_both_signs_together_are_surer():
    one = only(zigzag, stretched(above("curvature.ratio")))
    record = set_turning(stretched(above("curvature.ratio")), -0.99)
    assert only(zigzag, record).confidence > one.confidence


@pytest.mark.parametrize(
    "optimizer",
    [OptimizerFacts("Adam", LR, first=LR), OptimizerFacts("SGD", LR, momentum=0.9, first=LR)],
    ids=["Adam", "momentum"],
)
def test_turning_gradients_of_a_better_optimizer_are_no_fault(optimizer):
    record = set_turning(creeping(), -0.99)
    record.optimizers = [optimizer]
    assert ask(zigzag, record) == []


def test_a_loss_that_rose_is_not_called_ill_conditioned():
    record = set_turning(creeping(), -0.99)
    record.losses.reverse()
    assert ask(zigzag, record) == []


def test_a_training_that_learnt_all_is_not_ill_conditioned():
    assert ask(zigzag, set_turning(regression(0.99), -0.99)) == []


def test_what_is_answered_rightly_needs_no_better_conditioning():
    losses = list(np.linspace(1.4, 0.7, 200))
    right = set_turning(classification(0.7, losses), below("turning.zigzag"))
    assert ask(zigzag, right) == []
    labels = np.concatenate(right.train.targets)
    mistaken = np.where(np.arange(len(labels)) % 10, labels, (labels + 1) % CLASSES)
    assert only(zigzag, set_rows(right, outputs=logits(mistaken, 0.4))).code == "CST114"


def one_layer(learnt, flat):
    """A linear network, and inputs of which one direction is flat and gives the answer."""
    record = regression(learnt, list(np.linspace(1.4, 0.7, 200)))
    record.weights = [Weight("weight", (1, COLUMNS), True, True, "Linear")]
    x = np.concatenate(record.train.inputs).astype(float)
    x[:, 0] = flat * np.concatenate(record.train.targets)[:, 0]
    return set_rows(record, inputs=x)


def test_a_linear_network_short_of_the_least_squares_of_flat_inputs_is_ill_conditioned():
    flat = 0.9 / np.sqrt(limit("curvature.ratio"))
    found = only(zigzag, one_layer(0.5, flat))
    short, ratio = found.evidence
    assert short.value == pytest.approx(0.5, abs=0.02)
    assert ratio.value > limit("curvature.ratio")
    assert found.confidence < 1
    assert ask(zigzag, one_layer(0.97, flat)) == []  # it has got there
    assert ask(zigzag, one_layer(0.5, 0.5)) == []  # nothing is flat: the cause is another
