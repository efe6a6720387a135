"""Passes through a graph: seeds, readings, single boxes."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import trace
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch

X = torch.tensor([[0.5, -1.0], [2.0, 0.3]], dtype=torch.float64)


def test_values_and_adjoints_are_read_by_box_and_by_name():
    graph = trace(lambda x: (torch.sin(x) * 2).sum(), X)
    graph.fprop(X)
    graph.bprop()
    assert_close(graph.values["sin"], X.sin())
    assert_close(graph.values[graph["sin"]], graph["sin"].value)
    assert_close(graph.adjoints["sin"], torch.full_like(X, 2.0))
    assert_close(graph.adjoints["x"], 2 * X.cos())
    assert len(graph.values) == len(graph.adjoints) == len(graph) == 4
    assert not graph.values["sin"].requires_grad


def test_a_forward_pass_forgets_the_adjoints_of_the_last_one():
    graph = trace(lambda x: x.sum(), X)
    graph.bprop()
    graph.fprop(X)
    assert len(graph.adjoints) == 0
    with pytest.raises(InvalidParameter, match="Call `bprop` after `fprop`"):
        graph.adjoints["x"]


def test_a_name_nobody_has_is_refused_with_the_nearest_one():
    with pytest.raises(InvalidParameter, match=r"got `sun_1`\. Did you mean `sum_1`\?"):
        trace(lambda x: x.sum(), X).values["sun_1"]


def test_one_box_alone_maps_values_forwards_and_adjoints_backwards():
    graph = trace(lambda a, b: a @ b, X, X + 1)
    (mm,) = (box for box in graph.order if not box.is_leaf)
    adjoint = torch.ones(2, 2, dtype=torch.float64)
    assert_close(mm.fprop(X, X + 1), X @ (X + 1))
    to_a, to_b = mm.bprop(adjoint, X, X + 1)
    assert_close(to_a, adjoint @ (X + 1).T)
    assert_close(to_b, X.T @ adjoint)


def test_an_output_that_is_no_scalar_needs_a_seed_of_its_shape():
    graph = trace(torch.sin, X)
    with pytest.raises(InvalidData, match=r"one scalar or `seed`.*got `\(2, 2\)`.*\.sum\(\)"):
        graph.bprop()
    with pytest.raises(ShapeMismatch, match=r"output's shape \(2, 2\); got \(2,\)"):
        graph.bprop(torch.ones(2))
    assert_close(graph.bprop(2 * torch.ones_like(X))["input_0"], 2 * X.cos())


def test_several_outputs_take_a_seed_each_and_none_counts_for_nothing():
    graph = trace(lambda x: {"a": x.sin(), "b": x.cos()}, X)
    assert_close(graph.fprop(X), {"a": X.sin(), "b": X.cos()})
    assert_close(graph.bprop({"a": torch.ones_like(X), "b": None})["x"], X.cos())
    with pytest.raises(ShapeMismatch, match="each of 2 outputs; got 1"):
        graph.bprop([torch.ones_like(X)])


def test_an_integer_output_has_no_gradient():
    with pytest.raises(InvalidData, match="floating-point numbers; got torch.int64"):
        trace(lambda x: x.argmax(), X).bprop()


def test_leaves_that_the_output_does_not_use_are_left_out():
    net = nn.ModuleDict({"used": nn.Linear(2, 1), "idle": nn.Linear(2, 1)}).double()
    graph = trace(lambda x: net["used"](x).sum(), X)
    assert set(graph.bprop()) == {"x", "net.used.weight", "net.used.bias"}


def test_a_second_backward_pass_with_another_seed_starts_anew():
    graph = trace(torch.sin, X)
    graph.bprop(torch.ones_like(X))
    assert_close(graph.bprop(3 * torch.ones_like(X))["input_0"], 3 * X.cos())


def test_an_operation_without_a_derivative_is_named():
    graph = trace(lambda x: torch.special.zeta(x, x + 1).sum(), X.abs() + 2)
    with pytest.raises(InvalidData, match="box `special_zeta` must have a derivative"):
        graph.bprop()
    with pytest.raises(InvalidData, match="box `special_zeta` must have a derivative"):
        graph.gradient()
