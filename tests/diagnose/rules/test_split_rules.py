"""CST206 and CST208 on planted rows."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    BATCHES,
    CLASSES,
    COLUMNS,
    ROWS,
    ask,
    batches,
    classification,
    only,
    regression,
    set_evaluations,
    set_head,
    set_rows,
    standard,
)

from castalia.diagnose.record import Evaluation
from castalia.diagnose.rules.split_rules import leaks, shifted
from castalia.diagnose.thresholds import limit

HELD = 1000


def sharing(share):
    """Validation rows of which a share, spread evenly, was trained on."""
    record = classification()
    held = standard(HELD, COLUMNS, 1)
    train = np.concatenate(record.train.inputs)
    count = round(share * HELD)
    held[:: HELD // max(count, 1)][:count] = train[:count]
    record.validation = batches(held, None, None)
    return record


def test_validation_rows_that_were_trained_on_leak():
    bar = limit("rows.shared")
    found = only(leaks, sharing(bar + 0.005))
    assert (found.code, found.severity, found.where) == ("CST206", "warning", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(bar + 0.005)
    assert evidence.above
    assert evidence.threshold == bar
    assert "Split before" in found.remedy.text


def test_a_last_batch_of_fewer_rows_hides_no_leak():
    record = sharing(0.25)
    last = record.looks[-1]
    fewer = last.head.outputs[0] // 2
    last.size = fewer
    last.head = replace(last.head, outputs=(fewer, *last.head.outputs[1:]))
    assert only(leaks, record).code == "CST206"


def test_a_loss_of_some_of_the_rows_that_are_given_shows_no_leak():
    record = sharing(0.25)  # the nodes of one graph, say: all go through the network
    for look in record.looks:
        look.size = 2 * look.head.outputs[0]
    assert ask(leaks, record) == []


def test_two_rows_that_measure_the_same_are_no_leak():
    record = classification()
    for shared, seen in ((2, 0), (3, 1)):
        held = standard(40, COLUMNS, 1)
        held[:shared] = record.train.inputs[0][:shared]
        record.validation = batches(np.tile(held, (BATCHES, 1)), None, None)
        assert len(ask(leaks, record)) == seen


def test_as_many_shared_rows_as_the_limit_are_no_leak():
    assert ask(leaks, sharing(limit("rows.shared"))) == []


def test_training_rows_evaluated_beside_validation_rows_are_no_leak():
    record = classification()
    record.validation.inputs[0] = record.train.inputs[0]
    assert ask(leaks, record) == []


def test_rows_that_repeat_within_a_batch_may_be_met_again():
    record = sharing(0.25)
    for rows in (record.train, record.validation):
        rows.inputs = [np.round(batch) for batch in rows.inputs]
    for batch in record.train.inputs:
        batch[1] = batch[0]
    assert ask(leaks, record) == []


def test_rows_of_many_digits_that_were_copied_before_the_split_leak():
    record = sharing(0.25)
    for batch in record.train.inputs:
        batch[1] = batch[0]
    assert only(leaks, record).code == "CST206"


def test_training_rows_looked_up_once_at_the_end_are_no_leak():
    record = classification()
    record.validation.select([0, 1])
    record.validation.inputs[1] = np.concatenate(record.train.inputs[:2])
    record.validation.inputs[1][::10] += 1.0
    record.evaluations = []
    assert ask(leaks, record) == []


def test_a_column_of_many_values_does_not_give_the_answer_by_standing_for_single_rows():
    record, n = classification(), BATCHES * ROWS
    y = np.tile(np.random.default_rng(0).integers(0, CLASSES, 24), n)[:n]
    x = np.tile(standard(24, COLUMNS), (n, 1))[:n]
    x[:, 3] = np.arange(n) % 24 % 20  # hardly any value stands for two different rows
    assert ask(leaks, set_rows(record, inputs=x, targets=y)) == []
    x = standard(n, COLUMNS)
    x[:, 3] = np.arange(n) % CLASSES
    found = only(leaks, set_rows(record, inputs=x, targets=np.arange(n) % CLASSES))
    assert found.where == "column 3"


def foretelling(right, rows=1000, classes=5):
    """A column of few values that gives the class of so many rows."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % classes
    x = rng.integers(0, 8, (rows, COLUMNS)).astype(float)
    x[:, 3] = np.where(rng.permutation(rows) < right * rows, y, rng.integers(0, classes, rows))
    x[:, 0] += rng.random(rows)  # no two rows are equal
    return set_rows(classification(), inputs=x, targets=y)


def test_some_rows_rule_out_only_what_all_rows_do():
    bar = limit("rows.alone")
    found = only(leaks, foretelling(bar + 0.01))
    assert found.where == "column 3"
    assert found.evidence[0].value > bar
    for right in (bar + 0.01, bar - 0.02, 0.85, 0.5, 0.0):
        asked = ask(leaks, foretelling(right))
        with patch("castalia.diagnose.rules.split_rules._ruled_out", lambda *_: False):
            assert ask(leaks, foretelling(right)) == asked
        with patch("castalia.diagnose.rules.split_rules._alone", lambda *_: pytest.fail("all")):
            if right == 0:  # some rows are enough
                assert ask(leaks, foretelling(right)) == []


def telling(correlation):
    """A column with that correlation to the target; the others have none."""
    record = regression()
    y = np.concatenate(record.train.targets)[:, 0]
    x = np.concatenate(record.train.inputs)
    x[:, 3] = correlation * y + np.sqrt(1 - correlation**2) * x[:, 3]
    return set_rows(record, inputs=x)


def test_a_column_that_alone_gives_the_number_leaks():
    bar = limit("rows.alone")
    score = (1 + bar) / 2
    found = only(leaks, telling(np.sqrt(score)))
    assert (found.code, found.severity, found.where) == ("CST206", "warning", "column 3")
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(score)
    assert evidence.threshold == bar
    assert "drop it" in found.remedy.text
    assert ask(leaks, telling(np.sqrt(0.99 * bar))) == []


def test_a_column_that_alone_gives_the_class_leaks():
    record = classification()
    labels = np.concatenate(record.train.targets) % 2
    x = np.concatenate(record.train.inputs)
    x[:, 2] = labels + 0.1 * np.tanh(x[:, 2])
    found = only(leaks, set_rows(record, inputs=x, targets=labels))
    assert found.where == "column 2"
    assert found.evidence[0].value == 1.0


def test_a_column_that_gives_one_number_of_many_is_no_leak():
    record = telling(1.0)
    y = np.concatenate(record.train.targets)
    assert ask(leaks, set_rows(record, targets=np.hstack([y, np.roll(y, 1)]))) == []


def test_two_columns_that_give_the_answer_are_an_easy_task():
    record = telling(1.0)
    x = np.concatenate(record.train.inputs)
    x[:, 1] = x[:, 3]
    assert ask(leaks, set_rows(record, inputs=x)) == []


def moved(by):
    record = classification()
    held = np.concatenate(record.validation.inputs)
    held[:, 3] += by
    record.validation = batches(held, None, None)
    return record


def test_validation_rows_that_lie_elsewhere_are_a_shift():
    found = only(shifted, moved(3.0))
    assert (found.code, found.severity, found.where) == ("CST208", "warning", "column 3")
    (evidence,) = found.evidence
    # The area under the curve of two normal columns three spreads apart is Φ(3/√2).
    assert evidence.value == pytest.approx(0.983, abs=0.02)
    assert evidence.above
    assert evidence.threshold == limit("rows.shift")
    assert "Split at random" in found.remedy.text


def test_without_validation_rows_nothing_is_compared():
    record = classification()
    record.validation = batches(np.zeros((0, COLUMNS)), None, None)
    record.validation.select([])
    with patch("castalia.diagnose.rules.split_rules._separation", lambda *_: pytest.fail("asked")):
        assert ask(shifted, record) == []


def test_rows_put_through_without_a_loss_or_a_score_are_no_shift():
    record = moved(3.0)
    record.evaluations = []  # a grid that is drawn, say
    assert ask(shifted, record) == []


def test_rows_of_one_distribution_or_nearly_so_are_no_shift():
    assert ask(shifted, classification()) == ask(shifted, moved(0.5)) == []


def test_validation_rows_of_another_shape_are_not_compared():
    record = classification()
    record.validation = batches(standard(320, 3, 1) + 9, None, None)
    assert ask(shifted, record) == ask(leaks, record) == []


def test_rows_of_which_the_loss_takes_a_part_are_no_leak():
    record = sharing(0.2)
    assert only(leaks, record).code == "CST206"
    set_head(record, outputs=(ROWS // 2, CLASSES))  # the loss of half of the nodes of a graph
    assert ask(leaks, record) == []


def spoken(shift):
    """Rows of twenty tokens; those of validation are moved by some numbers."""
    record, tokens = classification(), np.random.default_rng(0).integers(0, 20, (320, 6))
    record.train = batches(tokens, None, None)
    record.validation = batches(tokens[::-1] + shift, None, None)
    return record


def test_tokens_that_training_never_met_are_a_shift():
    found = only(shifted, spoken(10))
    assert (found.code, found.severity) == ("CST208", "warning")
    assert found.evidence[0].value == pytest.approx(0.5, abs=0.05)
    assert found.evidence[0].threshold == limit("tokens.unseen")
    assert "one vocabulary" in found.remedy.text
    assert ask(shifted, spoken(0)) == []


def test_validation_on_some_training_rows_leaks_whatever_is_tested_after_the_end():
    record = classification()
    some, others = record.train.inputs[0], record.validation.inputs[0]
    y = np.zeros(BATCHES * ROWS, int)
    record.validation = batches(np.tile(some, (BATCHES, 1)), None, y)
    record.validation.add(record.steps, others, None, None)
    assert only(leaks, record).code == "CST206"
    record.validation.targets = [np.zeros(2 * ROWS, int)] * (BATCHES + 1)
    assert ask(leaks, record) == []  # more rows than were kept
    record.validation = batches(np.concatenate(record.train.inputs), None, y)
    record.validation.add(record.steps, others, None, None)
    assert ask(leaks, record) == []  # the training loss, logged on purpose


def test_pictures_altered_in_training_may_differ_from_those_of_validation():
    record = classification()
    record.input_shape = (1, 1, COLUMNS)
    shift = np.concatenate(record.validation.inputs)
    shift[:, 0] += 1.2
    record.validation = batches(shift, None, None)
    set_evaluations(record, [0.5, 0.4, 0.3])
    record.evaluations[0] = Evaluation(10_000, 0.5)  # a long epoch: no row would have come again
    assert only(shifted, record).code == "CST208"
    record.evaluations[0] = Evaluation(4, 0.5)
    assert ask(shifted, record) == []
    record.train.inputs[1][:12] = record.train.inputs[0][:12]  # a shift by nothing, now and then
    assert ask(shifted, record) == []
    shift[:, 0] += 20.0
    record.validation = batches(shift, None, None)
    assert only(shifted, record).severity == "info"  # as borders of shifted pictures do
