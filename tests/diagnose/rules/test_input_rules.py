"""CST201, CST202 and CST203 on planted columns."""

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    BATCHES,
    COLUMNS,
    ROWS,
    above,
    ask,
    below,
    classification,
    only,
    poor,
    regression,
    set_head,
    set_rows,
    standard,
)

from castalia.diagnose.rules.input_rules import degenerate, inputs_unscaled, targets_unscaled
from castalia.diagnose.thresholds import limit

N = 320


def scaled(*sizes, record=None):
    """Columns of mean 0 and those spreads."""
    return set_rows(record or classification(0.8), inputs=standard(N, COLUMNS) * np.asarray(sizes))


def test_a_large_column_is_named():
    found = only(inputs_unscaled, scaled(1, 1, above("inputs.large"), 1, 1))
    assert (found.code, found.severity, found.where) == ("CST201", "warning", "column 2")
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(above("inputs.large"))
    assert evidence.threshold == limit("inputs.large")
    assert evidence.above
    assert "Standardise" in found.remedy.text


def test_a_column_just_below_the_limit_is_left_alone():
    assert ask(inputs_unscaled, scaled(1, 1, below("inputs.large"), 1, 1)) == []


def test_inputs_that_are_all_tiny_are_found():
    (evidence,) = only(inputs_unscaled, scaled(*[below("inputs.small")] * 5)).evidence
    assert evidence.value == pytest.approx(below("inputs.small"))
    assert not evidence.above
    assert evidence.threshold == limit("inputs.small")
    assert ask(inputs_unscaled, scaled(*[above("inputs.small")] * 5)) == []


def test_columns_of_very_different_spread_are_found():
    large = 0.9 * limit("inputs.large")
    small = large / above("inputs.apart")
    (evidence,) = only(inputs_unscaled, scaled(small, small, large, small, small)).evidence
    assert evidence.value == pytest.approx(above("inputs.apart"))
    assert evidence.threshold == limit("inputs.apart")
    near = large / below("inputs.apart")
    assert ask(inputs_unscaled, scaled(near, near, large, near, near)) == []


def test_inputs_are_the_surer_cause_the_farther_off_and_the_worse_the_training():
    mild = only(inputs_unscaled, scaled(1, 1, above("inputs.large"), 1, 1))
    far = only(inputs_unscaled, scaled(1, 1, 100 * limit("inputs.large"), 1, 1, record=poor()))
    assert far.confidence > mild.confidence


def test_a_network_that_normalises_its_data_may_be_given_any():
    record = scaled(1, 1, 100 * limit("inputs.large"), 1, 1)
    record.data_normalised = True
    assert ask(inputs_unscaled, record) == []


def test_tokens_have_no_scale():
    tokens = np.arange(N * COLUMNS).reshape(N, COLUMNS)
    assert ask(inputs_unscaled, set_rows(classification(), inputs=tokens)) == []


def aiming(scale, offset=0.0):
    record = regression()
    return set_rows(record, targets=offset + scale * np.concatenate(record.train.targets))


def test_large_targets_are_found():
    found = only(targets_unscaled, aiming(above("targets.large")))
    assert (found.code, found.severity, found.where) == ("CST202", "warning", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(above("targets.large"))
    assert evidence.threshold == limit("targets.large")
    assert evidence.above
    assert "Standardise the targets" in found.remedy.text
    assert ask(targets_unscaled, aiming(below("targets.large"))) == []


def test_targets_that_hardly_differ_are_found():
    (evidence,) = only(targets_unscaled, aiming(below("targets.small"))).evidence
    assert evidence.value == pytest.approx(below("targets.small"))
    assert not evidence.above
    assert evidence.threshold == limit("targets.small")
    assert ask(targets_unscaled, aiming(above("targets.small"))) == []


def test_targets_far_from_zero_against_their_spread_are_found():
    (evidence,) = only(targets_unscaled, aiming(0.5, 10.0)).evidence
    assert evidence.value > evidence.threshold
    assert ask(targets_unscaled, aiming(2.0, 10.0)) == []


def test_targets_that_are_classes_have_no_scale():
    record = set_head(aiming(100.0), loss="cross_entropy")
    assert ask(targets_unscaled, record) == []


def with_column(values, column=1):
    x = standard(N, COLUMNS)
    x[:, column] = values
    return set_rows(classification(), inputs=x)


def holey():
    x = standard(N, COLUMNS)
    x[:32, 1] = np.nan
    return set_rows(classification(), inputs=x)


def test_missing_values_are_an_error_with_their_share():
    found = only(degenerate, holey())
    assert (found.code, found.severity, found.where) == ("CST203", "error", "column 1")
    (evidence,) = found.evidence
    assert (evidence.what, evidence.threshold) == ("share missing", 0.0)
    assert evidence.value == pytest.approx(0.1)
    assert "Impute" in found.remedy.text


def test_a_column_that_numbers_the_rows_is_found():
    numbers = np.random.default_rng(0).permutation(N).astype(float)
    found = only(degenerate, with_column(numbers))
    assert (found.severity, found.where) == ("warning", "column 1")
    assert "numbers the rows" in found.summary
    assert "Drop" in found.remedy.text


def test_a_column_that_numbers_the_rows_after_scaling_is_found():
    numbers = np.random.default_rng(0).permutation(N) / 100 - 1.6
    assert "numbers the rows" in only(degenerate, with_column(numbers)).summary


def test_whole_numbers_that_tell_the_target_are_no_identifier():
    labels = np.arange(N) % 4
    numbers = np.argsort(np.argsort(labels, kind="stable"), kind="stable").astype(float)
    assert ask(degenerate, with_column(numbers)) == []


def test_a_column_that_never_changes_is_found():
    found = only(degenerate, with_column(3.0))
    assert (found.severity, found.where) == ("warning", "column 1")
    assert found.evidence[0].value == 1
    assert found.summary == "Column 1 of the inputs never changes."


def test_a_column_that_repeats_another_up_to_scale_is_found():
    found = only(degenerate, with_column(5 - 2 * standard(N, COLUMNS)[:, 0]))
    assert (found.severity, found.where) == ("warning", "column 1")
    assert "repeat" in found.summary
    assert "Keep one" in found.remedy.text


def test_a_column_that_nearly_repeats_another_is_left_alone():
    x = standard(N, COLUMNS)
    assert ask(degenerate, with_column(x[:, 0] + 0.1 * x[:, 1])) == []


def test_the_dark_border_of_a_picture_is_only_worth_knowing():
    x = np.abs(standard(N, 64))
    x[:, :8] = 0.0
    record = set_rows(classification(), inputs=x)
    record.input_shape = (64,)
    found = only(degenerate, record)
    assert found.severity == "info"
    assert found.evidence[0].value == 8


def test_rare_words_that_the_rows_kept_do_not_have_are_only_worth_knowing():
    words = (np.random.default_rng(0).random((N, 300)) < 1 / N).astype(float)
    never = words.max(axis=0) == 0
    assert never.mean() > limit("columns.constant_share")
    record = set_rows(classification(), inputs=np.hstack([standard(N, COLUMNS), words]))
    record.input_shape = (300 + COLUMNS,)
    assert only(degenerate, record).severity == "info"
    words[:, ~never] = standard(N, int((~never).sum()), 1)  # all others are met all the time
    record = set_rows(record, inputs=np.hstack([standard(N, COLUMNS), words]))
    assert only(degenerate, record).severity == "warning"


def test_pictures_and_few_rows_have_no_degenerate_columns():
    record = with_column(3.0)
    record.input_shape = (1, 1, COLUMNS)
    few = set_rows(classification(), inputs=with_column(3.0).train.inputs[0][:32])
    assert ask(degenerate, record) == ask(degenerate, few) == []


def test_a_state_that_is_never_met_is_no_degenerate_column():
    record = classification()
    states = np.eye(5)[np.arange(BATCHES * ROWS) % 4]  # the last of five never comes
    assert ask(degenerate, set_rows(record, inputs=states)) == []
    states[0, 0] = 2.0
    assert only(degenerate, set_rows(record, inputs=states)).where == "column 4"


def test_columns_that_are_to_be_made_cannot_be_dropped():
    record = with_column(0.0)
    x = np.concatenate(record.train.inputs)
    x[:, 1] = 2 * x[:, 0]
    assert only(degenerate, set_rows(record, x)).severity == "warning"
    record.optimizers *= 2  # a game
    assert only(degenerate, record).severity == "info"


def test_targets_that_differ_where_a_row_comes_again_are_reckoned():
    record = aiming(above("targets.large"))
    half = np.concatenate(record.train.inputs)
    half[len(half) // 2 :] = half[: len(half) // 2]
    y = np.concatenate(record.train.targets)
    y[len(y) // 2 :] += 1
    assert ask(targets_unscaled, set_rows(record, half, targets=y)) == []
