"""CST303 on planted orders of layers."""

import pytest
from tests.diagnose.rules.records import ask, classification, only

from castalia.diagnose.record import Layer
from castalia.diagnose.rules.layer_rules import linear_in_a_row


def feeding(*pairs, kind="Linear"):
    record = classification()
    for look in record.looks:
        look.structure = [
            (layer, kind, tuple(b for b, a in pairs if a == layer)) for layer, *_ in look.structure
        ]
    return record


def test_two_linear_layers_with_nothing_between_are_found():
    found = only(linear_in_a_row, feeding(("2", "4")))
    assert (found.code, found.severity, found.where) == ("CST303", "warning", "4")
    (evidence,) = found.evidence
    assert (evidence.value, evidence.threshold) == (1, 0.0)
    assert found.remedy.changes == {"activation": "relu"}
    assert "activation" in found.remedy.text


def test_each_pair_is_counted_and_a_network_without_any_activation_is_surer():
    some = only(linear_in_a_row, feeding(("2", "4")))
    record = feeding(("0", "2"), ("2", "4"), ("4", "6"), ("6", "8"))
    for look in record.looks:
        look.units = []
    found = only(linear_in_a_row, record)
    assert found.evidence[0].value == 4
    assert found.confidence > 0.9 > 0.7 > some.confidence  # most of what does harm stands above


@pytest.mark.parametrize("width", [7, 8])
def test_a_factorised_layer_narrower_than_both_sides_is_meant(width):
    record = feeding(("2", "4"))
    weights = {w.name: w for w in record.weights}
    weights["2.weight"].shape, weights["4.weight"].shape = (width, 8), (8, width)
    assert len(ask(linear_in_a_row, record)) == (width == 8)


def test_the_first_term_of_a_sum_of_residual_blocks_may_feed_a_block():
    assert ask(linear_in_a_row, feeding(("2", "4"), ("2", "8"), ("6", "8"))) == []
    assert only(linear_in_a_row, feeding(("2", "4"), ("2", "8"))).where == "4"


def test_layers_with_activations_between_are_left_alone():
    assert ask(linear_in_a_row, feeding()) == []


def test_a_transposed_convolution_that_widens_may_feed_another_layer():
    record = feeding(("2", "4"), kind="Convolution")  # as the graph names both kinds
    record.layers = [Layer("2", "ConvTranspose2d"), Layer("4", "Conv2d")]
    assert ask(linear_in_a_row, record) == []
    record.layers = [Layer("2", "Conv2d"), Layer("4", "Conv2d")]
    assert only(linear_in_a_row, record).where == "4"
