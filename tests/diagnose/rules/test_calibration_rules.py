"""CST405 on planted confidences."""

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    CLASSES,
    ask,
    batches,
    classification,
    logits,
    only,
    poor,
    set_head,
    stairs,
    standard,
)

from castalia.diagnose.rules.calibration_rules import miscalibrated
from castalia.diagnose.thresholds import limit

N = 4000


def sure(confidence, accuracy, rows=N, record=None):
    """Validation rows answered with one confidence, of which a share is right."""
    record = record or classification()
    labels = np.arange(rows) % CLASSES
    right = np.random.default_rng(0).permutation(rows) < round(accuracy * rows)
    outputs = logits(np.where(right, labels, (labels + 1) % CLASSES), -np.log(confidence))
    # All rows in the last batches, which are the ones read.
    record.validation = batches(standard(rows, 5, 1), outputs, labels)
    for name in ("inputs", "outputs", "targets"):
        values = getattr(record.validation, name)
        setattr(record.validation, name, [v[:0] for v in values[:-1]] + [np.concatenate(values)])
    return record


@pytest.mark.parametrize("sign", [1, -1], ids=["too sure", "not sure enough"])
def test_confidence_far_from_accuracy_is_miscalibrated(sign, request):
    gap = sign * (limit("calibration.error") + 0.01)
    found = only(miscalibrated, sure(0.7 + gap, 0.7))
    assert (found.code, found.severity, found.where) == ("CST405", "warning", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(gap, abs=1e-6)
    assert evidence.above == (sign > 0)
    assert evidence.threshold == pytest.approx(sign * limit("calibration.error"))
    assert "temperature" in found.remedy.text
    assert f"is {request.node.callspec.id}:" in found.summary


@pytest.mark.parametrize("sign", [1, -1], ids=["surer", "less sure"])
def test_confidence_near_accuracy_is_left_alone(sign):
    assert ask(miscalibrated, sure(0.7 + sign * (limit("calibration.error") - 0.01), 0.7)) == []


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_labels_smoothed_as_usual_are_meant_to_leave_it_unsure(share):
    gap = limit("calibration.error") + 0.03
    record = sure(0.9 - gap, 0.9)
    assert only(miscalibrated, record).code == "CST405"
    rows = record.train
    for step, o, t in zip(rows.steps, rows.outputs, rows.targets, strict=True):
        log_p = o - np.log(np.exp(o).sum(axis=1, keepdims=True))
        plain = -log_p[np.arange(len(t)), t].mean()
        record.losses[step] = (1 - share) * plain - share * log_p.mean()
    assert len(ask(miscalibrated, record)) == (share > 0.2)
    assert len(ask(miscalibrated, sure(0.7 + gap, 0.7, record=record))) == 1


def test_a_network_that_still_learns_grows_surer_by_itself():
    gap = limit("calibration.error") + 0.03
    for bias, severity in ((-gap, "info"), (gap, "warning")):
        record = sure(0.7 + bias, 0.7)
        record.losses[:] = stairs(3.0, 2.0, 1.5, 1.0, 0.85)
        assert only(miscalibrated, record).severity == severity


def test_few_rows_may_differ_by_chance():
    gap = limit("calibration.error") + 0.01
    assert ask(miscalibrated, sure(0.6 + gap, 0.6, rows=80)) == []


def test_a_network_that_learnt_nothing_is_not_called_miscalibrated():
    assert ask(miscalibrated, sure(0.9, 0.5, record=poor())) == []


def test_a_weighted_loss_above_that_of_guessing_may_still_be_miscalibrated():
    record = set_head(sure(0.9, 0.5, record=poor()), weighted=True)
    assert only(miscalibrated, record).code == "CST405"
