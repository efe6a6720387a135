"""CST105 on planted numbers that are none."""

import numpy as np
import pytest
from tests.diagnose.rules.records import ask, classification, falling, only, regression

from castalia.diagnose.rules.non_finite_rules import REMEDIES, not_a_number

BROKEN_AT = 120


def broken():
    return classification(losses=[*falling()[:BROKEN_AT], *[np.nan] * 80])


def test_a_loss_that_is_no_number_to_the_end_is_found_at_its_first_step():
    found = only(not_a_number, broken())
    assert (found.code, found.severity, found.where) == ("CST105", "error", None)
    assert found.evidence[0].value == BROKEN_AT
    assert found.evidence[0].threshold is None
    assert found.step == BROKEN_AT  # where the studio marks its curves
    assert f"from step {BROKEN_AT}" in found.summary
    assert "overflowed" in found.summary
    assert "learning rate" in found.remedy.text


def test_an_infinite_loss_is_found_even_if_later_ones_are_finite():
    record = classification()
    record.losses[7] = np.inf
    assert only(not_a_number, record).evidence[0].value == 7


def test_a_loss_that_was_not_seen_at_some_steps_is_no_fault():
    record = classification()
    record.losses[40:60] = [np.nan] * 20
    assert ask(not_a_number, record) == []


@pytest.mark.parametrize("words", list(REMEDIES))
def test_the_operation_that_gave_it_is_named_with_its_cure(words):
    record = broken()
    record.looks[-1].suspects = (f"{words} in `4`",)
    found = only(not_a_number, record)
    assert f"{words} in `4`" in found.summary
    assert found.remedy.text == REMEDIES[words]


@pytest.mark.parametrize("which", ["inputs", "targets"])
def test_missing_data_are_the_origin_where_there_are_any(which):
    record = regression(losses=[np.nan] * 200)
    values = getattr(record.train, which)
    values[0] = values[0].copy()
    values[0][:32] = np.nan
    found = only(not_a_number, record)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(32 / 320)
    assert evidence.threshold == 0.0
    assert f"the {which} hold" in found.summary
    assert f"missing {which}" in found.remedy.text


def test_a_gradient_that_is_no_number_is_found_before_the_loss_is_none():
    record = classification()
    record.looks[-1].gradients["4.weight"] = record.looks[-1].applied["4.weight"] = np.inf
    found = only(not_a_number, record)
    assert found.where == "4.weight"
    assert "gradient" in found.summary


def test_a_gradient_that_was_finite_when_the_optimizer_got_it_is_no_fault():
    record = classification()
    record.looks[-1].gradients["4.weight"] = np.inf
    record.looks[-1].applied["4.weight"] = 0.3
    assert ask(not_a_number, record) == []


def test_parameters_that_ended_as_no_number_are_found():
    record = classification()
    record.final["broken_parameters"] = 3
    assert only(not_a_number, record).severity == "error"


def test_losses_that_are_not_known_to_the_end_are_no_fault():
    record = classification(losses=[*falling()[:120], *[np.nan] * 80])
    record.unknown = set(range(120, 200))
    assert ask(not_a_number, record) == []
    record.unknown = set(range(120, 199))
    assert only(not_a_number, record).code == "CST105"
