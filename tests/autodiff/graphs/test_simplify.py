"""Simplified graphs are shorter and compute the same."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import trace

X = torch.tensor([[1.5, -0.3], [0.2, 2.0]], dtype=torch.float64)


def operations(graph):
    return [box.operation for box in graph.order if not box.is_leaf]


@pytest.mark.parametrize(
    "fn, left",
    [
        (lambda x: x * 1.0, []),
        (lambda x: torch.ones_like(x) * x, []),
        (lambda x: x + 0.0, []),
        (lambda x: torch.zeros_like(x) + x, []),
        (lambda x: x - 0.0, []),
        (lambda x: x / 1.0, []),
        (lambda x: x**1, []),
        (lambda x: torch.neg(torch.neg(x)), []),
        (lambda x: x.t().t(), []),
        (lambda x: x.transpose(0, 1).transpose(1, 0), []),
        (lambda x: x.view(4).view(2, 2), []),
        (lambda x: x.clone().expand(2, 2), []),
        (lambda x: x * 2.0 * 3.0, ["mul"]),
        (lambda x: torch.sin(x) * torch.sin(x), ["sin", "mul"]),
        (lambda x: x.view(4).view(1, 4), ["reshape"]),
        (lambda x: x * (torch.ones_like(x) * 2 + 1), ["mul"]),
        (lambda x: x.detach() * 1.0, ["detach"]),
    ],
    ids=range(17),
)
def test_a_rule_leaves_these_operations_and_the_value(fn, left):
    graph = trace(fn, X)
    short = graph.simplify()
    assert operations(short) == left
    assert_close(short.fprop(X), graph.fprop(X))


@pytest.mark.parametrize(
    "fn, kept",
    [
        (lambda x: x * torch.ones(3, 2, 2, dtype=x.dtype), "mul"),  # broadcasts
        (lambda x: x.float() + 0.0, "_to_copy"),  # another type
        (lambda x: torch.rand_like(x) * 0 + torch.rand_like(x) + x, "rand_like"),
    ],
    ids=["broadcast", "type", "random"],
)
def test_what_changes_shape_type_or_draws_is_kept(fn, kept):
    graph = trace(fn, X)
    short = graph.simplify()
    assert operations(short).count(kept) == operations(graph).count(kept)
    assert_close(short.fprop(X), graph.fprop(X))


def test_the_gradient_of_a_network_gets_shorter_and_stays_equal():
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    graph = trace(lambda x: net(x).pow(2).sum(), X).gradient([f"net.{i}.weight" for i in (0, 2)])
    short = graph.simplify()
    assert len(short) < len(graph)
    assert_close(short.fprop(X), graph.fprop(X))
    assert [box.name for box in short.ends] == ["d_net.0.weight", "d_net.2.weight"]


def test_reshapes_hold_for_whatever_layout_is_left():
    graph = trace(
        lambda x: (x.t() * 1.0).reshape(4).view(2, 2) + x[:1].expand(2, 2).reshape(4)[0], X
    )
    assert_close(graph.simplify().fprop(X.t().contiguous().t()), graph.fprop(X))


def test_the_graph_itself_is_left_as_it_is():
    graph = trace(lambda x: x * 1.0, X)
    graph.simplify()
    assert operations(graph) == ["mul"]
