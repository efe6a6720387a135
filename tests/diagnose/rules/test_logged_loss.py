"""Losses that only their values tell, on records made by hand."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.diagnose.rules.records import ask, only

from castalia.diagnose.record import Head, Look, Record
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.loss_rules import wrong_loss
from castalia.diagnose.rules.output_rules import wrong_activation

RNG = np.random.default_rng(0)
CLASSES = RNG.integers(0, 4, (5, 40))
YES = RNG.integers(0, 2, (5, 40)).astype(np.float32)
LABELS = (RNG.random((5, 40, 4)) < 0.5).astype(np.float32)


def record(loss, outputs, targets):
    """Return the record of a training whose loss was not recognised, with rows that were logged."""
    found = Record(looks=[Look(0, head=Head())])
    for step, (o, t) in enumerate(zip(outputs, targets, strict=True)):
        found.losses.append(float(loss(torch.tensor(o), torch.tensor(t))))
        found.train.add(step, None, o.astype(np.float32), t)
    return found


def logits(*shape):
    return RNG.normal(size=(5, 40, *shape)).astype(np.float32)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(
    ("name", "loss", "outputs", "targets"),
    [
        ("mse", F.mse_loss, logits(), logits()),
        ("l1", F.l1_loss, logits(2), logits(2)),
        ("bce", F.binary_cross_entropy, RNG.random((5, 40)).astype(np.float32), YES),
        ("bce_logits", F.binary_cross_entropy_with_logits, logits(4), LABELS),
        ("cross_entropy", F.cross_entropy, logits(4), CLASSES),
        ("nll", F.nll_loss, logits(4), CLASSES),
    ],
)
def test_a_loss_written_by_hand_is_recognised_by_its_values(
    name, loss, outputs, targets, reduction
):
    seen = record(lambda o, t: loss(o, t, reduction=reduction), outputs, targets)
    head = Case(seen).head
    assert (head.loss, head.reduction) == (name, reduction)
    other = record(lambda o, t: 1.7 * loss(o, t, reduction=reduction), outputs, targets)
    assert Case(other).head.loss == "unknown"


def test_classes_fitted_by_squares_written_by_hand_are_a_wrong_loss():
    seen = record(lambda o, t: ((o - t) ** 2).mean(), logits(), YES)
    assert only(wrong_loss, seen).code == "CST302"


def test_rectified_outputs_are_no_probabilities_whatever_the_loss():
    seen = record(lambda o, t: (o - t).abs().pow(1.5).mean(), logits().clip(0), YES)
    found = only(wrong_activation, seen)
    assert found.code == "CST301"
    assert "Rectified" in found.summary
    assert ask(wrong_activation, record(lambda o, t: (o - t).abs().mean(), logits(), YES)) == []


def test_a_softmax_over_labels_that_go_together_is_found_in_logged_outputs():
    shares = np.exp(logits(4))
    shares /= shares.sum(axis=2, keepdims=True)
    seen = record(lambda o, t: (o - t).abs().pow(1.5).mean(), shares, LABELS)
    assert "share a probability" in only(wrong_activation, seen).summary


def test_logits_that_happen_to_lie_between_0_and_1_are_not_taken_for_probabilities():
    few = RNG.random((5, 40, 4)).astype(np.float32)
    assert ask(wrong_activation, record(F.cross_entropy, few, CLASSES)) == []
