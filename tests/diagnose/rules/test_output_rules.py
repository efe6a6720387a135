"""CST301, CST305 and CST306 on planted heads."""

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    CLASSES,
    ROWS,
    ask,
    batches,
    classification,
    only,
    regression,
    set_head,
    set_rows,
)

from castalia.diagnose.record import Activation, Weight
from castalia.diagnose.rules.output_rules import wrong_activation, wrong_axis, wrong_size

SHAPE = (ROWS, CLASSES)


def ending(loss, kind, shape=SHAPE, dim=None, record=None, **changes):
    """A network whose outputs go through an activation into a loss."""
    chain = (Activation(kind, shape, dim),) if kind else ()
    record = record or classification()
    return set_head(record, loss=loss, chain=chain, outputs=shape, **changes)


WRONG = {
    "softmax before a cross-entropy": ("cross_entropy", "softmax", "Remove the softmax"),
    "ReLU before a cross-entropy": ("cross_entropy", "relu", "Remove the relu"),
    "sigmoid before a loss of logits": ("bce_logits", "sigmoid", "Remove the sigmoid"),
    "probabilities in kl_div": ("kl_div", "softmax", "log_softmax"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_an_activation_that_the_loss_applies_itself_is_wrong(case):
    loss, kind, cure = WRONG[case]
    found = only(wrong_activation, ending(loss, kind, dim=1 if kind == "softmax" else None))
    assert (found.code, found.severity, found.where) == ("CST301", "error", "8")
    assert cure in found.remedy.text
    assert found.evidence[0].what == "loss at the end"


RIGHT = {
    "logits in a cross-entropy": ("cross_entropy", ""),
    "logits in a loss of logits": ("bce_logits", ""),
    "log-probabilities in nll": ("nll", "log_softmax"),
    "a sigmoid before bce": ("bce", "sigmoid"),
    "log-probabilities in kl_div": ("kl_div", "log_softmax"),
    "a linear end of a regression": ("mse", ""),
}


@pytest.mark.parametrize("case", list(RIGHT))
def test_the_right_activation_is_left_alone(case):
    loss, kind = RIGHT[case]
    assert ask(wrong_activation, ending(loss, kind, dim=1 if "softmax" in kind else None)) == []


def test_a_softmax_over_one_unit_is_always_one():
    found = only(wrong_activation, ending("bce", "softmax", (ROWS, 1), 1))
    assert found.severity == "error"
    assert "over one unit" in found.summary
    assert "sigmoid" in found.remedy.text


@pytest.mark.parametrize("loss", ["cross_entropy", "soft_cross_entropy"])
def test_a_cross_entropy_over_one_output_is_always_zero(loss):
    record = ending(loss, "", (ROWS, 1), log_softmax=Activation("log_softmax"))
    assert "always 0" in only(wrong_activation, record).summary


def test_log_probabilities_in_a_cross_entropy_are_only_worth_knowing():
    found = only(wrong_activation, ending("cross_entropy", "log_softmax", dim=1))
    assert found.severity == "info"
    assert "nll_loss" in found.remedy.text


@pytest.mark.parametrize("sign", [-1, 1])
def test_nll_of_no_log_probabilities_shows_by_its_negative_loss(sign):
    record = ending("nll", "softmax", dim=1)
    record.losses = [sign * loss for loss in record.losses]
    found = ask(wrong_activation, record)
    assert len(found) == (sign < 0)
    assert all("negative" in f.summary and "cross_entropy" in f.remedy.text for f in found)


def reaching(kind, share):
    """A regression of which that share of targets is -2, and the others lie in 0.1 to 0.9."""
    n = 1000
    y = np.linspace(0.1, 0.9, n)
    y[: round(share * n)] = -2.0
    record = regression()
    return ending("mse", kind, (ROWS, 1), record=set_rows(record, targets=y[:, None]))


@pytest.mark.parametrize("kind", ["relu", "sigmoid", "tanh"])
def test_targets_that_the_output_cannot_reach_make_it_wrong(kind):
    found = only(wrong_activation, reaching(kind, 0.2))
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(0.2)
    assert evidence.value > evidence.threshold
    assert "linear" in found.remedy.text
    assert ask(wrong_activation, reaching(kind, evidence.threshold)) == []


def test_a_tuple_of_optimizers_is_not_judged_by_its_output():
    record = ending("cross_entropy", "softmax", dim=1)
    record.optimizers *= 2
    assert ask(wrong_activation, record) == []


def normalising(shape, dim, **kind):
    record = classification()
    for look in record.looks:
        look.softmaxes = [Activation("softmax", shape, dim, **kind)]
    return record


@pytest.mark.parametrize(
    ("shape", "dim", "weighs", "axis"),
    [(SHAPE, 0, False, "batch"), ((ROWS, 6, 6), 1, True, "queries")],
    ids=["batch", "queries"],
)
def test_a_softmax_over_a_wrong_axis_is_found(shape, dim, weighs, axis):
    found = only(wrong_axis, normalising(shape, dim, weighs=weighs))
    assert (found.code, found.severity, found.where) == ("CST305", "error", "8")
    assert f"over the {axis}" in found.summary
    assert found.evidence[0].value == dim
    assert found.remedy.text == f"Use dim={len(shape) - 1}."


def test_probabilities_over_time_are_found():
    shape = (ROWS, 7, CLASSES)
    record = normalising(shape, 1)
    record = set_head(record, loss="nll", chain=(Activation("softmax", shape, 1),), outputs=shape)
    assert "over the positions" in only(wrong_axis, record).summary


@pytest.mark.parametrize(
    ("shape", "dim", "weighs"),
    [(SHAPE, 1, False), ((ROWS, 6, 6), 2, True), ((ROWS, 6, 6), 1, False), ((CLASSES,), 0, False)],
    ids=["classes", "keys", "no attention", "one row"],
)
def test_a_softmax_over_a_right_axis_is_left_alone(shape, dim, weighs):
    assert ask(wrong_axis, normalising(shape, dim, weighs=weighs)) == []


def test_fewer_outputs_than_classes_that_made_the_loss_fail_are_found():
    record = classification()
    record.failed = ((ROWS, 3), (ROWS,), 9)
    found = only(wrong_size, record)
    assert (found.code, found.severity, found.where) == ("CST306", "error", "8")
    (evidence,) = found.evidence
    assert (evidence.value, evidence.threshold, evidence.above) == (3, 10, False)
    assert found.remedy.text == "Give the last layer 10 outputs."
    record.failed = ((ROWS, 10), (ROWS,), 9)
    assert ask(wrong_size, record) == []


def test_more_outputs_than_classes_are_a_warning():
    found = only(wrong_size, set_head(classification(0.7), outputs=(ROWS, 10)))
    assert (found.severity, found.remedy.text) == ("warning", "Give the last layer 4 outputs.")
    assert (found.evidence[0].value, found.evidence[0].threshold) == (10, CLASSES)
    assert ask(wrong_size, classification()) == []


def test_outputs_that_have_fallen_silent_are_only_mentioned():
    found = only(wrong_size, set_head(classification(0.9), outputs=(ROWS, 10)))
    assert (found.code, found.severity) == ("CST306", "info")


def test_some_of_a_set_of_answers_are_no_wrong_number_of_classes():
    record = set_head(classification(0.7), outputs=(ROWS, 10))
    nodes = np.array([1, 2, 5, 8])[np.arange(320) % CLASSES]
    assert only(wrong_size, set_rows(record, targets=nodes)).severity == "info"
    assert (
        only(wrong_size, set_rows(record, targets=1 + np.arange(320) % CLASSES)).severity != "info"
    )


def test_classes_that_are_still_coming_in_do_not_make_the_output_too_large():
    record = set_head(classification(), outputs=(ROWS, 10))
    labels = np.arange(320) % CLASSES
    labels[0] = 7
    assert ask(wrong_size, set_rows(record, targets=labels)) == []


def test_one_output_for_several_columns_of_targets_is_found():
    record = set_head(regression(), broadcast=((ROWS, 1), (ROWS, 3)))
    found = only(wrong_size, record)
    assert found.severity == "error"
    assert found.remedy.text == "Give the last layer 3 outputs."


def test_numbers_that_are_stretched_elsewhere_than_at_the_loss_say_nothing_of_outputs():
    outputs = {"loss": "bce", "outputs": (ROWS, 784), "targets": (ROWS, 784)}
    assert (
        ask(wrong_size, set_head(regression(), broadcast=((ROWS, 1), (ROWS, 20)), **outputs)) == []
    )
    assert only(wrong_size, set_head(regression(), broadcast=((ROWS, 1), (ROWS, 784)), **outputs))


def test_one_logit_for_several_classes_is_found():
    record = set_head(classification(), loss="bce_logits", outputs=(ROWS,))
    found = only(wrong_size, record)
    assert found.severity == "error"
    assert found.evidence[0].value == 1
    two = set_rows(record, targets=np.arange(320) % 2)
    assert ask(wrong_size, two) == []


def test_a_softmax_over_labels_that_go_together_is_wrong():
    several = np.tile([[1.0, 1, 0, 0], [0, 0, 0, 0]], (160, 1))
    one = np.tile(np.eye(4), (80, 1))
    found = only(wrong_activation, ending("bce", "softmax", dim=1, record=labelled(several)))
    assert (found.code, found.severity) == ("CST301", "error")
    assert "sigmoid for each label" in found.remedy.text
    assert ask(wrong_activation, ending("bce", "softmax", dim=1, record=labelled(one))) == []


def labelled(targets):
    return set_rows(classification(), targets=targets)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_log_probabilities_of_pictures_sum_to_one_over_the_classes(dim):
    shape = (ROWS, CLASSES, 6, 6)
    record, last = classification(), Activation("log_softmax", shape, dim)
    for look in record.looks:
        look.softmaxes = [last]
    set_head(record, loss="cross_entropy", log_softmax=last, outputs=shape)
    if dim == 1:
        assert ask(wrong_axis, record) == []
    else:
        assert "dim=1" in only(wrong_axis, record).remedy.text


@pytest.mark.parametrize(("words", "seen"), [(30, 1), (60, 0)], ids=["few", "as many"])
def test_a_language_model_with_outputs_beyond_its_embedding_is_found(words, seen):
    tokens = np.random.default_rng(0).integers(0, 30, (320, 7))
    record = set_head(classification(), outputs=(ROWS, 100))
    record.train = batches(tokens[:, :-1], None, tokens[:, 1:])
    record.weights.append(Weight("embed.weight", (words, 8), True, True, "Embedding"))
    found = ask(wrong_size, record)
    assert [f.code for f in found] == ["CST306"] * seen
    assert all(f.evidence[0].threshold == words for f in found)


@pytest.mark.parametrize(
    ("loss", "kind", "broken", "seen"),
    [
        ("poisson", "exp", False, 1),
        ("poisson", "", False, 0),
        ("poisson_rate", "softplus", True, 0),
        ("poisson_rate", "", True, 1),
        ("poisson_rate", "", False, 0),
        ("poisson_rate", "relu", False, 1),
    ],
    ids=["rate for log", "log", "rate", "no rate and broken", "no rate, unharmed", "rate of 0"],
)
def test_a_poisson_loss_wants_what_it_was_told_to_expect(loss, kind, broken, seen):
    record = ending(loss, kind)
    if broken:
        record.losses[-1] = np.nan
    found = ask(wrong_activation, record)
    assert [f.code for f in found] == ["CST301"] * seen


@pytest.mark.parametrize(("twice", "codes"), [(True, ["CST301"]), (False, [])])
def test_classes_of_a_game_go_through_one_softmax(twice, codes):
    record = classification()
    record.task = "gan"
    record.looks[1].softmaxes = [Activation("log_softmax", SHAPE, 1, twice=twice)]
    assert [found.code for found in ask(wrong_activation, record)] == codes
