"""CST110 on parameters that were planted still."""

import pytest
from tests.diagnose.rules.records import ask, classification, only, poor

from castalia.diagnose.record import OptimizerFacts, Weight
from castalia.diagnose.rules.not_training_rules import frozen

TOTAL = (8 * 5 + 8) + 3 * (8 * 8 + 8) + (4 * 8 + 4)


def still(record, layer="2", **facts):
    for weight in record.weights:
        if weight.name.startswith(f"{layer}."):
            weight.moved = False
            for name, value in facts.items():
                setattr(weight, name, value)
    return record


def all_still(**facts):
    record = poor()
    for weight in record.weights:
        still(record, weight.name.partition(".")[0], **facts)
    return record


def test_parameters_that_the_optimizer_does_not_hold_are_named():
    found = only(frozen, still(classification(), optimized=False))
    assert (found.code, found.severity, found.where) == ("CST110", "error", "2.weight")
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(72 / TOTAL)
    assert evidence.threshold == 0.0
    assert "`2.weight` and `2.bias`" in found.summary
    assert "optimizer" in found.summary
    assert "Build the optimizer" in found.remedy.text


def test_parameters_cut_off_from_the_loss_are_named():
    record = still(classification())
    record.used -= {"2.weight", "2.bias"}
    for look in record.looks:
        look.gradients |= {"2.weight": None, "2.bias": None}
    found = only(frozen, record)
    assert "cut off" in found.summary
    assert "detach()" in found.remedy.text


def test_layers_frozen_as_they_were_initialised_are_named_but_not_trained_ones():
    found = only(frozen, still(classification(), trainable=False, fresh=True))
    assert "frozen" in found.summary
    assert "requires_grad_(True)" in found.remedy.text
    trained = {"trainable": False, "fresh": False}
    assert ask(frozen, still(classification(), **trained, optimized=False)) == []
    found = only(frozen, still(classification(), **trained))  # too small to tell, and optimized
    assert (found.code, found.severity) == ("CST110", "info")
    large = still(classification(), **trained)
    large.weights[0].shape = (40, 5)
    large.weights[0].trainable = large.weights[0].moved = False
    assert ask(frozen, large) == []


def test_a_frozen_layer_too_small_to_tell_is_a_fault_where_the_optimizer_was_given_it():
    drawn = {"trainable": False, "fresh": True}
    assert only(frozen, still(classification(), **drawn)).severity == "warning"
    assert ask(frozen, still(classification(), **drawn, optimized=False)) == []
    large = still(classification(), **drawn, optimized=False)
    next(w for w in large.weights if not w.trainable).shape = (80, 80)
    assert only(frozen, large).severity == "warning"


def test_a_frozen_table_of_zeros_beside_a_frozen_layer_was_not_learnt():
    record = still(classification(), trainable=False, fresh=True)
    zeros = Weight("shift", (12, 8, 8), False, True, "Net", rows_equal_at_start=1.0, moved=False)
    record.weights.append(zeros)
    assert only(frozen, record).code == "CST110"
    zeros.rows_equal_at_start = 0.0  # but numbers that are no draw were
    assert ask(frozen, record) == []


@pytest.mark.parametrize(("kind", "seen"), [("TokenEmbedding", 1), ("Linear", 0)])
def test_a_frozen_table_of_words_tells_nothing_whatever_its_class_is_called(kind, seen):
    record = still(classification(), trainable=False, fresh=True)
    table = Weight("words.weight", (50, 8), False, True, kind, rows_equal_at_start=0.0, moved=False)
    record.weights.append(table)  # not as drawn: the row of the padding is zero
    assert len(ask(frozen, record)) == seen


def test_a_parameter_that_gets_a_gradient_but_has_not_moved_yet_is_no_fault():
    assert ask(frozen, still(classification())) == []


def test_a_few_parameters_are_a_warning_where_all_goes_well():
    record = classification()
    record.weights[1].moved, record.weights[1].optimized = False, False  # 8 of 300
    big = record.weights[2]
    big.shape = (80, 80)
    found = only(frozen, record)
    assert found.severity == "warning"
    assert found.where == "0.bias"


def without_gradient():
    record = all_still()
    for look in record.looks:
        look.gradients = dict.fromkeys(look.gradients)
    return record


def rate_of_zero():
    record = all_still()
    record.optimizers = [OptimizerFacts("SGD", 0.0)]
    return record


NOTHING_MOVES = {
    "the optimizer holds none": (lambda: all_still(optimized=False), "Build the optimizer"),
    "all are frozen": (lambda: all_still(trainable=False), "requires_grad_(True)"),
    "the learning rate is 0": (rate_of_zero, "above 0"),
    "none of them gets a gradient": (without_gradient, "detach()"),
    "no step of the optimizer": (all_still, "optimizer.step()"),
}


@pytest.mark.parametrize("why", list(NOTHING_MOVES))
def test_where_nothing_moves_the_reason_is_told(why):
    build, cure = NOTHING_MOVES[why]
    found = only(frozen, build())
    assert found.severity == "error"
    assert found.evidence[0].value == 1.0
    assert why in found.summary
    assert cure in found.remedy.text


def test_a_player_without_gradients_may_be_the_other_one_s_victim():
    alone, game = without_gradient(), without_gradient()
    game.task = "gan"
    sure = [only(frozen, record).confidence for record in (alone, game)]
    assert sure[0] > 0.9 > sure[1]  # below what a rate too high is said with
    assert only(frozen, all_still(optimized=False)).confidence == sure[0]


def test_one_step_is_too_few_to_say():
    record = all_still(optimized=False)
    record.losses = record.losses[:1]
    assert ask(frozen, record) == []


@pytest.mark.parametrize("make", [classification, poor])
def test_a_small_layer_that_nothing_depends_on_is_only_mentioned(make):
    record = make()
    record.weights[2].shape = (80, 80)
    record.weights[1].moved = False
    record.used -= {"0.bias"}
    for look in record.looks:
        look.gradients["0.bias"] = None
    assert only(frozen, record).severity == "info"
