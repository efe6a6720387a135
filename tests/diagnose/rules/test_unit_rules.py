"""CST106, CST107 and CST108 on planted activities and rows of weights."""

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    above,
    ask,
    below,
    classification,
    only,
    poor,
    set_units,
    share_of,
    units,
)

from castalia.diagnose.record import Weight
from castalia.diagnose.rules import judge
from castalia.diagnose.rules.not_training_rules import frozen
from castalia.diagnose.rules.unit_rules import alike, dead, saturated
from castalia.diagnose.thresholds import limit


def silent(record, share, kind="relu", gate=False, of=1000):
    return set_units(record, units("0"), units("2", kind, active=share_of(share, of), gate=gate))


def test_units_that_are_zero_on_every_row_are_dead():
    share = limit("units.dead") + 0.001
    found = only(dead, silent(classification(), share))
    assert (found.code, found.severity, found.where) == ("CST106", "info", "2")  # it fits
    assert only(dead, silent(poor(), 0.65, of=40)).severity == "warning"
    assert only(dead, silent(poor(), share)).severity == "info"  # hundreds of others live
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(share)
    assert evidence.threshold == limit("units.dead")
    assert evidence.above
    assert found.remedy.changes == {"activation": "leaky_relu"}
    assert "leaky" in found.remedy.text


def test_units_that_died_in_training_are_a_warning_unless_the_rest_has_learnt_all():
    assert limit("case.poor") < 0.8 < limit("case.well") < 0.95
    record = silent(classification(0.8), 0.8, of=40)
    for look in record.looks[:2]:
        look.units = [units("0"), units("2")]
    assert only(dead, record).severity == "warning"


def test_one_dead_unit_less_is_allowed():
    assert ask(dead, silent(classification(), limit("units.dead") - 0.001)) == []


def test_fewer_dead_units_matter_when_nothing_is_learnt():
    share = limit("units.dead_hurting") + 0.001
    assert ask(dead, silent(classification(), share)) == []
    assert only(dead, silent(poor(), share)).evidence[0].threshold == limit("units.dead_hurting")
    assert ask(dead, silent(poor(), limit("units.dead_hurting") - 0.001)) == []
    assert only(dead, silent(poor(), 0.45, of=40)).severity == "warning"
    learns = silent(classification(0.3), 0.45, of=40)
    assert only(dead, learns).severity == "info"


def test_almost_all_units_dead_and_nothing_learnt_is_an_error():
    assert only(dead, silent(poor(), 0.95)).severity == "error"


@pytest.mark.parametrize("kind", ["leaky_relu", "gelu", "tanh"])
def test_other_units_are_never_called_dead(kind):
    assert ask(dead, silent(poor(), 1.0, kind)) == []


def test_shut_gates_are_not_dead():
    assert ask(dead, silent(poor(), 1.0, gate=True)) == []


def test_units_that_live_on_one_of_the_last_batches_are_not_dead():
    record = silent(poor(), 1.0)
    record.looks[-2].units = [units("2", active=share_of(0.0))]
    assert ask(dead, record) == []


def pinned(record, share, kind="tanh", gate=False):
    return set_units(record, units("2", kind, saturated=[share] * 8, gate=gate))


def test_units_at_their_limits_are_saturated():
    found = only(saturated, pinned(poor(), above("units.saturated")))
    assert (found.code, found.severity, found.where) == ("CST107", "warning", "2")
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(above("units.saturated"))
    assert evidence.threshold == limit("units.saturated")
    assert evidence.above
    assert found.remedy.changes == {"activation": "relu"}
    assert "Scale" in found.remedy.text


def test_units_almost_always_at_their_limits_are_an_error_where_nothing_is_learnt():
    assert only(saturated, pinned(poor(), 0.95)).severity == "error"
    assert only(saturated, pinned(classification(), 0.95)).severity == "warning"


def test_units_short_of_the_limit_and_gates_are_not_saturated():
    assert ask(saturated, pinned(poor(), below("units.saturated"))) == []
    assert ask(saturated, pinned(poor(), 1.0, "sigmoid", gate=True)) == []


def test_units_that_learnt_to_be_sure_are_not_saturated():
    record = pinned(classification(), 1.0)
    for look in record.looks[:3]:
        look.units = [units("2", "tanh", saturated=[0.0] * 8)]
    assert ask(saturated, record) == []


def equal(start, end, which=2):
    record = classification()
    weight = record.weights[which]
    weight.rows_equal_at_start, weight.rows_equal_at_end = start, end
    return record


def test_units_that_began_equal_and_stayed_so_are_alike():
    found = only(alike, equal(above("units.equal"), above("units.equal")))
    assert (found.code, found.severity, found.where) == ("CST108", "error", "2")
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(above("units.equal"))
    assert evidence.threshold == limit("units.equal")
    assert "nn.init" in found.remedy.text
    assert found.remedy.changes == {}


@pytest.mark.parametrize(
    ("start", "end", "which"),
    [(1.0, "below", 2), ("below", 1.0, 2), (1.0, 1.0, 8)],
    ids=["grew apart", "began apart", "last layer"],
)
def test_units_that_differ_at_one_end_or_are_the_outputs_are_not_alike(start, end, which):
    start, end = (below("units.equal") if v == "below" else v for v in (start, end))
    assert ask(alike, equal(start, end, which)) == []


def test_frozen_rows_are_not_called_alike():
    record = equal(1.0, 1.0)
    record.weights[2].trainable = False
    assert ask(alike, record) == []


def test_a_layer_whose_width_changes_from_look_to_look_is_read_at_its_last_width():
    record = silent(poor(), 1.0)
    record.looks[-2].units = [units("2", active=np.full(7, 0.5))]
    assert only(dead, record).evidence[0].value == 1.0


def test_dead_units_are_not_blamed_for_a_training_that_has_only_begun():
    losses, share = list(np.linspace(1.4, 1.3, 40)), above("units.dead_hurting")
    assert ask(dead, silent(poor(losses), share)) == []
    assert only(dead, silent(poor(losses[::-1]), share)).code == "CST106"
    assert only(dead, silent(poor(), share)).confidence == 0.75
    assert only(dead, silent(poor(losses), above("units.dead"))).code == "CST106"
    assert only(dead, silent(classification(), above("units.dead"))).confidence == 0.6


def test_units_that_are_on_for_all_rows_or_for_none_say_nothing():
    half = np.repeat([0.0, 1.0], [700, 300])  # every row looks alike to this layer
    assert ask(dead, set_units(poor(), units("2", active=half))) == []
    half[-1] = 0.5
    assert only(dead, set_units(poor(), units("2", active=half))).code == "CST106"


def test_tables_of_vectors_that_all_begin_at_zero_get_no_gradient():
    record = poor()
    record.weights = [Weight(f"{n}.weight", (50, 8), True, True, "Embedding") for n in "uv"]
    for look in record.looks:
        look.structure, look.weights = [], {"u.weight": 0.0, "v.weight": 0.0}
    assert only(alike, record).where == "u"
    record.looks[0].weights["v.weight"] = 0.1  # as word2vec begins
    assert ask(alike, record) == []


@pytest.mark.parametrize(("moved", "seen"), [(False, 1), (True, 0)])
def test_a_line_of_products_of_vectors_that_begin_at_zero_gets_no_gradient(moved, seen):
    record = poor()
    line = Weight("8.weight", (1, 8), True, True, "Linear")
    tables = [Weight(f"{n}.weight", (50, 8), True, True, "Embedding", moved=moved) for n in "uv"]
    record.weights = [*tables, line]
    for look in record.looks:
        look.structure = [("8", "Addmm", ())]
        look.weights = {weight.name: 0.0 for weight in record.weights}
    assert len(ask(alike, record)) == seen


@pytest.mark.parametrize(("held", "first"), [(False, "CST110"), (True, "CST108")])
def test_equal_units_that_no_optimizer_holds_are_not_kept_equal_by_their_gradients(held, first):
    record = poor()
    for weight in record.weights:
        weight.moved, weight.optimized = False, held
        weight.rows_equal_at_start = weight.rows_equal_at_end = 1.0
    assert judge(record, rules=(alike, frozen)).codes[0] == first
