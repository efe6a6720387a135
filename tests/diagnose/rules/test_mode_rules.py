"""CST115 and CST116 on planted batch norms and modes."""

import numpy as np
import pytest
from tests.diagnose.rules.records import above, ask, below, classification, only

from castalia.diagnose.record import Layer
from castalia.diagnose.rules.mode_rules import batch_statistics, wrong_mode
from castalia.diagnose.thresholds import limit


def normalised(numbers=64, far=0.1, momentum=0.1):
    record = classification()
    record.layers.append(Layer("norm", "BatchNorm1d", {"momentum": momentum}))
    for look in record.looks:
        look.batch_norms = {"norm": (int(numbers), far)}
    return record


def test_a_batch_norm_on_few_numbers_is_found():
    found = only(batch_statistics, normalised(numbers=limit("batch.norm")))
    assert (found.code, found.severity, found.where) == ("CST115", "warning", "norm")
    (evidence,) = found.evidence
    assert evidence.value == evidence.threshold == limit("batch.norm")
    assert not evidence.above
    assert "GroupNorm" in found.remedy.text


def test_a_batch_norm_on_one_number_more_is_left_alone():
    assert ask(batch_statistics, normalised(numbers=limit("batch.norm") + 1)) == []


def test_running_statistics_far_from_the_batches_are_found():
    found = only(batch_statistics, normalised(far=above("batch.running"), momentum=1e-4))
    assert (found.code, found.where) == ("CST115", "norm")
    assert found.evidence[0].value == pytest.approx(above("batch.running"))
    assert found.evidence[0].threshold == limit("batch.running")
    assert "momentum" in found.remedy.text
    assert "0.0001" in found.remedy.text
    assert ask(batch_statistics, normalised(far=below("batch.running"))) == []


def test_running_statistics_that_are_far_only_at_the_start_are_left_alone():
    record = normalised()
    for look in record.looks[:4]:
        look.batch_norms = {"norm": (64, 10 * limit("batch.running"))}
    assert ask(batch_statistics, record) == []


def test_a_momentum_that_keeps_only_the_last_batch_is_found():
    found = only(batch_statistics, normalised(momentum=0.9))
    assert (found.code, found.where, found.evidence[0].value) == ("CST115", "norm", 0.9)
    assert found.remedy.text.startswith("momentum=0.9 → 0.1")


def test_a_network_without_batch_norm_is_left_alone():
    assert ask(batch_statistics, classification()) == []


def dropping(p=0.5, **modes):
    record = classification()
    record.layers.append(Layer("3", "Dropout", {"p": p}))
    for name, value in modes.items():
        setattr(record, name, value)
    return record


def test_validation_in_training_mode_is_found():
    modes = {"validated_in_training_mode": 3, "validated_in_evaluation_mode": 2}
    found = only(wrong_mode, dropping(**modes))
    assert (found.code, found.severity, found.where) == ("CST116", "warning", "3")
    assert found.evidence[0].value == 3
    assert "model.eval()" in found.remedy.text
    modes = {"validated_in_training_mode": 2, "validated_in_evaluation_mode": 3}
    assert ask(wrong_mode, dropping(**modes)) == []


def test_training_in_evaluation_mode_is_found():
    found = only(wrong_mode, dropping(trained_in_training_mode=100, trained_in_evaluation_mode=100))
    assert found.evidence[0].value == 0.5
    assert "model.train()" in found.remedy.text
    assert found.evidence[0].value > found.evidence[0].threshold
    few = dropping(trained_in_training_mode=190, trained_in_evaluation_mode=10)
    assert ask(wrong_mode, few) == []


def test_calls_without_gradients_in_training_mode_are_found_where_no_validation_was_told():
    record = dropping(silent_in_training_mode=3, validated_in_evaluation_mode=0, evaluations=[])
    found = only(wrong_mode, record)
    assert found.evidence[0].value == 3
    assert "model.eval()" in found.remedy.text
    record.silent_in_training_mode = record.steps  # one a step: a part of the training itself
    assert ask(wrong_mode, record) == []


def test_a_network_that_is_the_same_in_both_modes_is_left_alone():
    modes = {"validated_in_training_mode": 5, "validated_in_evaluation_mode": 0}
    assert ask(wrong_mode, dropping(p=0.0, **modes)) == []
    record = classification()
    record.validated_in_training_mode = 9
    assert ask(wrong_mode, record) == []


def test_a_batch_norm_without_running_statistics_is_left_alone():
    assert ask(batch_statistics, normalised(far=np.nan)) == []
