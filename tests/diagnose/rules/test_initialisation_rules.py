"""CST109 on planted first losses, spreads and weights."""

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    CLASSES,
    ROWS,
    above,
    ask,
    below,
    classification,
    falling,
    only,
    poor,
    regression,
    set_head,
    set_units,
    units,
)

from castalia.diagnose.record import Activation, Layer
from castalia.diagnose.rules.initialisation_rules import poor_start
from castalia.diagnose.thresholds import limit


def starting(over_guessing):
    return blank(classification(losses=falling(over_guessing * np.log(CLASSES))))


def blank(record):
    """Forget the outputs of the first batch, which are as good as the last ones."""
    record.train.outputs[0] = None
    return record


def test_a_penalty_is_not_held_against_the_start():
    record = classification(0.0, falling(above("start.loss") * np.log(CLASSES)))
    assert ask(poor_start, record) == []  # the outputs themselves cost what guessing does
    assert len(ask(poor_start, blank(record))) == 1


def test_a_first_loss_far_above_guessing_is_a_poor_start():
    found = only(poor_start, starting(above("start.loss")))
    assert (found.code, found.severity, found.where) == ("CST109", "warning", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(above("start.loss"))
    assert evidence.threshold == limit("start.loss")
    assert evidence.above
    assert "He for ReLU" in found.remedy.text


def test_a_first_loss_just_below_the_limit_is_no_poor_start():
    assert ask(poor_start, starting(below("start.loss"))) == []


def test_a_sum_or_a_weighted_loss_is_not_held_against_guessing():
    for change in ({"reduction": "sum"}, {"weighted": True}, {"others": ("mse",)}):
        assert ask(poor_start, set_head(starting(above("start.loss")), **change)) == []


def test_a_regression_is_held_against_an_answer_of_zero():
    found = only(poor_start, blank(regression(losses=falling(30 * limit("start.loss")))))
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(30 * limit("start.loss"))  # the mean square is 1
    assert ask(poor_start, regression(losses=falling(above("start.loss")))) == []


def test_absolute_errors_are_held_against_an_answer_of_zero():
    record = set_head(blank(regression(losses=falling(above("start.loss")))), loss="l1")
    (evidence,) = only(poor_start, record).evidence
    mean = np.abs(np.concatenate(record.train.targets)).mean()
    assert evidence.value == pytest.approx(above("start.loss") / mean)


def test_logits_that_are_no_plain_results_of_a_layer_may_begin_anywhere():
    chain = (Activation("cos", (ROWS, CLASSES)),)
    assert ask(poor_start, set_head(starting(above("start.loss")), chain=chain)) == []


def spreading(record, change):
    """Five activations whose spread grows geometrically."""
    spreads = change ** np.linspace(0, 1, 5)
    return set_units(record, *(units(str(2 * i), std=s) for i, s in enumerate(spreads)))


def test_a_spread_that_grows_with_depth_is_a_poor_start():
    (evidence,) = only(poor_start, spreading(classification(), above("start.depth"))).evidence
    assert evidence.value == pytest.approx(above("start.depth"))
    assert evidence.threshold == limit("start.depth")
    assert evidence.above
    assert ask(poor_start, spreading(classification(), below("start.depth"))) == []


def test_a_spread_that_dies_out_is_a_poor_start_where_nothing_is_learnt():
    (evidence,) = only(poor_start, spreading(poor(), 1 / above("start.depth"))).evidence
    assert evidence.threshold == pytest.approx(1 / limit("start.depth"))
    assert not evidence.above
    assert ask(poor_start, spreading(poor(), 1 / below("start.depth"))) == []
    assert ask(poor_start, spreading(classification(), 1 / above("start.depth"))) == []


def test_a_normalised_network_may_spread_as_it_likes():
    record = spreading(classification(), above("start.depth"))
    record.layers.append(Layer("1", "LayerNorm"))
    assert ask(poor_start, record) == []


@pytest.mark.parametrize("rms", [1e-4, 3.0])
def test_weights_far_from_their_fan_in_are_a_poor_start_where_nothing_is_learnt(rms):
    for record, seen in ((poor(), 1), (classification(), 0)):
        record.looks[0].weights["2.weight"] = rms
        found = ask(poor_start, record)
        assert len(found) == seen
    record = poor()
    record.looks[0].weights["2.weight"] = rms
    assert only(poor_start, record).evidence[0].value == pytest.approx(rms * np.sqrt(8))


def test_weights_all_beyond_custom_are_a_poor_start_of_a_normalised_network_too():
    record = classification()
    record.layers.append(Layer("1", "LayerNorm"))
    names = [name for name in record.looks[0].weights if name.endswith("weight")]
    for name in names[:-2]:
        record.looks[0].weights[name] = above("start.huge")  # times a root of the fan-in
    (evidence,) = only(poor_start, record).evidence
    assert evidence.threshold == limit("start.huge")
    for name in names[1:]:
        record.looks[0].weights[name] = 0.3
    assert ask(poor_start, record) == []  # one large layer of them, which is normalised


def test_what_begins_beyond_all_custom_is_surer_than_what_is_only_large():
    large, drowned = poor(), poor()
    large.looks[0].weights["2.weight"] = above("start.large") / np.sqrt(8)
    drowned.looks[0].weights["2.bias"] = above("start.bias")
    assert only(poor_start, drowned).confidence > only(poor_start, large).confidence


def test_a_layer_that_gives_answers_may_begin_small():
    record = poor()
    record.looks[0].weights["2.weight"] = 1e-4
    assert only(poor_start, set_head(record, last=("8",))).code == "CST109"
    assert ask(poor_start, set_head(record, last=("2", "8"))) == []


def test_a_start_that_was_not_seen_is_not_judged():
    record = starting(above("start.loss"))
    record.looks = record.looks[1:]
    assert ask(poor_start, record) == []
