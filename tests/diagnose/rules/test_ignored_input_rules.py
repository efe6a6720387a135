"""CST406 on planted spreads of the outputs."""

import pytest
from tests.diagnose.rules.records import above, ask, below, classification, only, poor, regression

from castalia.diagnose.rules.ignored_input_rules import ignores_input
from castalia.diagnose.thresholds import limit


def spreading(record, spread):
    for look in record.looks:
        look.output_spread = spread
    return record


def test_outputs_that_are_the_same_for_every_row_ignore_the_input():
    found = only(ignores_input, spreading(poor(), below("outputs.same")))
    assert (found.code, found.severity, found.where) == ("CST406", "warning", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(below("outputs.same"))
    assert not evidence.above
    assert evidence.threshold == limit("outputs.same")
    assert "input" in found.remedy.text


def test_outputs_that_differ_a_little_more_do_not_ignore_the_input():
    assert ask(ignores_input, spreading(poor(), above("outputs.same"))) == []


def test_the_spread_of_a_regression_is_held_against_that_of_its_targets():
    record = regression(0.0)
    record.train.targets = [0.1 * t for t in record.train.targets]
    record.train.outputs = [0.0 * t for t in record.train.targets]
    found = only(ignores_input, spreading(record, 0.1 * below("outputs.same")))
    assert found.evidence[0].value == pytest.approx(below("outputs.same"))
    assert ask(ignores_input, spreading(record, 0.1 * above("outputs.same"))) == []


def test_a_network_that_learnt_does_not_ignore_its_input():
    assert ask(ignores_input, spreading(classification(), 0.0)) == []
