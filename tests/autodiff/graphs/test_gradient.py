"""Graphs of gradients: rules, orders, and what cannot be asked for."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import trace
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch

T = torch.tensor(0.7, dtype=torch.float64)
RULES = {
    "constant": (lambda x: 3.0 + 0 * x, lambda x: 0 * x),
    "power": (lambda x: x**3, lambda x: 3 * x**2),
    "exponential": (torch.exp, torch.exp),
    "power of a base": (lambda x: 2.0**x, lambda x: 2.0**x * math.log(2)),
    "logarithm": (torch.log, lambda x: 1 / x),
    "sine": (torch.sin, torch.cos),
    "cosine": (torch.cos, lambda x: -torch.sin(x)),
    "chain": (lambda x: torch.sin(x**2), lambda x: 2 * x * torch.cos(x**2)),
    "product": (lambda x: x**2 * torch.exp(x), lambda x: (x**2 + 2 * x) * torch.exp(x)),
    "quotient": (lambda x: torch.sin(x) / x, lambda x: (x * torch.cos(x) - torch.sin(x)) / x**2),
    "sum": (lambda x: x**2 + torch.exp(x), lambda x: 2 * x + torch.exp(x)),
    "product of n": (
        lambda x: torch.stack([x, x + 1, x**2, torch.sin(x)]).prod(),
        lambda x: (
            (x + 1) * x**2 * torch.sin(x)
            + x**3 * torch.sin(x)
            + 2 * x**2 * (x + 1) * torch.sin(x)
            + x**3 * (x + 1) * torch.cos(x)
        ),
    ),  # fmt: skip
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_of_derivatives_equals_its_formula_and_finite_differences(rule):
    fn, derivative = RULES[rule]
    found = trace(fn, T).gradient().fprop(T)
    assert_close(found, derivative(T), rtol=1e-12, atol=1e-12)
    step = 1e-6
    assert_close(found, (fn(T + step) - fn(T - step)) / (2 * step), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    "fn, derivatives",
    [
        (lambda x: x**5, [lambda x: 5 * x**4, lambda x: 20 * x**3, lambda x: 60 * x**2]),
        (torch.sin, [torch.cos, lambda x: -torch.sin(x), lambda x: -torch.cos(x)]),
        (torch.exp, [torch.exp] * 3),
        (
            torch.tanh,
            [
                lambda x: 1 - torch.tanh(x) ** 2,
                lambda x: -2 * torch.tanh(x) * (1 - torch.tanh(x) ** 2),
                lambda x: (6 * torch.tanh(x) ** 2 - 2) * (1 - torch.tanh(x) ** 2),
            ],
        ),
        (lambda x: 1 / x, [lambda x: -1 / x**2, lambda x: 2 / x**3, lambda x: -6 / x**4]),
    ],
    ids=["power", "sine", "exponential", "tanh", "reciprocal"],
)
def test_first_second_and_third_derivatives_equal_closed_forms(fn, derivatives):
    graph = trace(fn, T)
    for derivative in derivatives:
        graph = graph.gradient()
        assert_close(graph.fprop(T), derivative(T))
        assert_close(graph.simplify().fprop(T), derivative(T))


def network():
    torch.manual_seed(0)
    layers = (nn.Linear(3, 4), nn.Tanh(), nn.BatchNorm1d(4), nn.Dropout(0.2), nn.Linear(4, 2))
    return nn.Sequential(*layers).double()


def test_gradients_of_a_networks_parameters_equal_the_backward_pass():
    net, y, x = network(), torch.tensor([0, 1, 1]), torch.randn(3, 3, dtype=torch.float64)
    graph = trace(lambda x: F.cross_entropy(net(x), y), x)
    names = [box.name for box in graph.parameters]
    found = dict(zip(names, graph.gradient(names).fprop(x), strict=True))
    expected = graph.bprop()
    assert_close(found, {name: expected[name] for name in names})


def test_a_hessian_vector_product_equals_torchs():
    net, y, x = network().eval(), torch.tensor([0, 1, 1]), torch.randn(3, 3, dtype=torch.float64)
    weight, direction = net[0].weight, torch.randn(4, 3, dtype=torch.float64)
    graph = trace(lambda x: F.cross_entropy(net(x), y), x).gradient("net.0.weight")
    (slope,) = torch.autograd.grad(F.cross_entropy(net(x), y), weight, create_graph=True)
    expected = torch.autograd.grad(slope, weight, direction)[0]
    assert_close(graph.gradient("net.0.weight", seed=direction).fprop(x), expected)
    assert_close(graph.bprop(direction)["net.0.weight"], expected)


def test_gradients_flow_through_an_unrolled_recurrent_layer():
    lstm, x = nn.LSTM(2, 3).double(), torch.randn(4, 2, dtype=torch.float64)
    graph = trace(lambda x: lstm(x)[0].pow(2).sum(), x)
    lstm(x)[0].pow(2).sum().backward()
    assert_close(graph.gradient("lstm.weight_hh_l0").fprop(), lstm.weight_hh_l0.grad)


def test_any_box_can_be_differentiated_by():
    graph = trace(lambda x: torch.sin(x) ** 2, T)
    assert_close(graph.gradient("sin").fprop(), 2 * torch.sin(T))
    assert_close(graph.gradient(graph["x"]).fprop(), torch.sin(2 * T))


def test_adjoints_are_named_after_what_they_belong_to():
    graph = trace(lambda x: torch.sin(x) ** 2, T).gradient()
    assert {"d_sin", "d_x"} <= {box.name for box in graph.order}
    assert graph.outputs.name == "d_x"


# ---- what is refused ----


@pytest.fixture
def graph():
    return trace(lambda x, unused, n: (x * n).sum(), T, T, torch.tensor([1, 2]))


def test_what_the_output_does_not_use_is_refused(graph):
    with pytest.raises(InvalidParameter, match="output must depend on `unused`; got one that does"):
        graph.gradient("unused")
    with pytest.raises(InvalidParameter, match="must depend on `x`.*detached"):
        trace(lambda x: x.detach() * 2, T).gradient()


def test_integers_are_refused(graph):
    with pytest.raises(InvalidParameter, match="`n` must be of floating-point.*got torch.int64"):
        graph.gradient("n")
    net = nn.Module()
    net.table = nn.Parameter(torch.tensor([1, 2]), requires_grad=False)
    net.forward = lambda x: (x * net.table).sum()
    with pytest.raises(InvalidParameter, match="`table` must be of floating-point numbers"):
        trace(net, T).gradient("table")


def test_a_number_or_name_nobody_has_is_refused(graph):
    with pytest.raises(InvalidParameter, match="`wrt` must number one of 3 inputs; got 3"):
        graph.gradient(3)
    with pytest.raises(InvalidParameter, match=r"got `unusd`\. Did you mean `unused`\?"):
        graph.gradient("unusd")


def test_an_output_that_is_no_scalar_needs_a_seed():
    graph = trace(torch.sin, torch.ones(2))
    with pytest.raises(InvalidData, match=r"Graph.gradient: the output must be one scalar"):
        graph.gradient()
    with pytest.raises(ShapeMismatch, match=r"shape \(2,\); got \(3,\)"):
        graph.gradient(seed=torch.ones(3))
