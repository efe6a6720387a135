"""CST103, CST104 and CST112 on planted gradient norms."""

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    above,
    ask,
    below,
    classification,
    geometric,
    network,
    only,
    poor,
    set_gradients,
    set_units,
    units,
)

from castalia.diagnose.record import Weight
from castalia.diagnose.rules.gradient_rules import explodes, never_reset, vanishes
from castalia.diagnose.thresholds import limit

DEEP = 16  # layers enough that each one keeps a healthy share


def deep(record, ratio):
    network(record, DEEP)
    return set_gradients(record, 1e-4 * geometric(ratio, DEEP))


def test_gradients_that_shrink_toward_the_input_vanish():
    ratio = below("gradient.shrinks")
    found = only(vanishes, deep(poor(), ratio))
    assert (found.code, found.severity, found.where) == ("CST103", "error", "0")
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(ratio)
    assert not evidence.above
    assert evidence.threshold == limit("gradient.shrinks")
    assert "through `relu`" in found.summary
    assert "ReLU" not in found.remedy.text  # there are such units already


def test_where_bounded_units_pass_gradients_on_others_are_advised():
    record = deep(poor(), below("gradient.shrinks"))
    set_units(record, units("0", kind="tanh"))
    found = only(vanishes, record)
    assert found.remedy.changes == {"activation": "relu"}
    assert "through `tanh`" in found.summary


def test_gradients_that_shrink_by_a_little_less_do_not_vanish():
    assert ask(vanishes, deep(poor(), above("gradient.shrinks"))) == []


def test_few_layers_that_each_keep_too_little_vanish():
    ratio = (0.9 * limit("gradient.per_layer")) ** 4  # four steps between five layers
    assert ratio > limit("gradient.shrinks")
    found = only(vanishes, set_gradients(poor(), geometric(ratio, 5)))
    assert found.evidence[0].value == pytest.approx(0.9 * limit("gradient.per_layer"))
    kept = (1.1 * limit("gradient.per_layer")) ** 4
    assert ask(vanishes, set_gradients(poor(), geometric(kept, 5))) == []


def test_vanishing_gradients_of_a_network_that_learns_are_only_worth_knowing():
    found = only(vanishes, deep(classification(), below("gradient.shrinks")))
    assert found.severity == "info"
    assert found.confidence <= 0.5


def test_uneven_gradients_without_order_do_not_vanish():
    ragged = np.asarray([1e-4, 1.0, 1e-4, 1.0, 1.0])
    assert ask(vanishes, set_gradients(poor(), ragged)) == []


def recurrent(record, factor, kind="RNN", steps=30):
    name = "rnn.weight_hh_l0"
    record.weights.append(Weight(name, (8, 8), True, True, kind, radius=factor, moved=True))
    record.input_shape = (steps, 5)
    return record


@pytest.mark.parametrize(
    ("value", "kind", "seen"),
    [(below, "RNN", True), (above, "RNN", False), (below, "LSTM", False)],
    ids=["forgets", "just remembers", "has gates"],
)
def test_a_plain_recurrent_layer_that_forgets_vanishes_in_time(value, kind, seen):
    left = value("gradient.shrinks")
    found = ask(vanishes, recurrent(poor(), left ** (1 / 30), kind))
    assert [f.where for f in found] == ["rnn"] * seen
    for f in found:
        assert f.severity == "error"
        assert "LSTM" in f.remedy.text
        assert f.evidence[0].value == pytest.approx(left)
        assert f.evidence[0].threshold == limit("gradient.shrinks")


def test_gradients_that_grow_toward_the_input_explode():
    ratio = above("gradient.grows")
    found = only(explodes, deep(poor(), ratio))
    assert (found.code, found.severity, found.where) == ("CST104", "error", "0")
    assert found.evidence[0].value == pytest.approx(ratio)
    assert found.evidence[0].above
    assert found.evidence[0].threshold == limit("gradient.grows")
    assert found.remedy.changes == {"training__clip": 1.0}
    assert "Clip" in found.remedy.text


def test_growing_gradients_below_the_limit_or_of_a_network_that_learns_do_not_explode():
    assert ask(explodes, deep(poor(), below("gradient.grows"))) == []
    assert ask(explodes, deep(classification(), above("gradient.grows"))) == []


def spike(times, size=1.0):
    """One look whose gradient is so many times the median one."""
    record = set_gradients(poor(), np.full(5, size))
    look = record.looks[3]
    look.gradients = {name: times * norm for name, norm in look.gradients.items()}
    look.applied = dict(look.gradients)
    return record


def test_a_gradient_far_above_the_others_explodes():
    found = only(explodes, spike(above("gradient.spike"), 0.02))
    evidence = next(e for e in found.evidence if e.threshold == limit("gradient.spike"))
    assert evidence.value == pytest.approx(above("gradient.spike"))
    assert ask(explodes, spike(below("gradient.spike"), 0.02)) == []


def test_a_clipped_gradient_does_not_explode():
    record = spike(above("gradient.spike"), 0.02)
    for look in record.looks:
        look.applied = {name: 0.5 * norm for name, norm in look.gradients.items()}
    assert ask(explodes, record) == []


def test_recurrent_weights_that_magnify_explode_over_the_sequence():
    radius = above("gradient.grows") ** (1 / 30)
    found = only(explodes, recurrent(poor(), radius))
    assert found.evidence[0].value == pytest.approx(above("gradient.grows"))
    assert ask(explodes, recurrent(poor(), below("gradient.grows") ** (1 / 30))) == []


def stale(record, share):
    for i, look in enumerate(record.looks):
        look.stale = i + 1 <= share * len(record.looks)
    return record


def test_gradients_left_over_from_most_steps_accumulate():
    found = only(never_reset, stale(classification(), 1.0))
    assert (found.code, found.severity, found.where) == ("CST112", "error", None)
    (evidence,) = found.evidence
    assert (evidence.value, evidence.threshold) == (1.0, limit("steps.stale"))
    assert "zero_grad()" in found.remedy.text


def test_gradients_left_over_now_and_then_do_not_accumulate():
    assert ask(never_reset, stale(classification(), limit("steps.stale"))) == []


def test_gradients_of_no_optimizer_or_of_unknown_age_do_not_accumulate():
    alone, unknown = stale(classification(), 1.0), classification()
    alone.optimizers = []
    for look in unknown.looks:
        look.stale = None
    assert ask(never_reset, alone) == ask(never_reset, unknown) == []


@pytest.mark.parametrize(("kind", "seen"), [("sigmoid", 1), ("tanh", 0)])
def test_sigmoids_in_a_recurrence_forget_though_its_weights_do_not(kind, seen):
    """Half-way values: a sigmoid's slope there is a quarter, a tanh's three quarters."""
    record = recurrent(poor(), 1.0, steps=16)
    set_units(record, units("rnn", kind, std=0.01))
    assert len(ask(vanishes, record)) == seen


def test_the_gates_of_a_recurrence_are_no_depth():
    record = deep(poor(), below("gradient.shrinks"))
    assert only(vanishes, record).code == "CST103"
    for look in record.looks:
        look.structure = look.structure * 8
    assert ask(vanishes, record) == []
