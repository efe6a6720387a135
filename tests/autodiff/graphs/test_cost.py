"""Costs: the notes' formulas, torch's own counter, memory by hand."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from castalia.autodiff import trace

N, D, M = 3, 4, 5
A, B, C = torch.ones(N, D), torch.ones(D, M), torch.ones(N, M)
U, V = torch.ones(N), torch.ones(M)


def only(fn, *inputs):
    """The cost of the one box that is no view."""
    (cost,) = (box for box in trace(fn, *inputs).cost().boxes if box.bytes or box.flops)
    return cost


@pytest.mark.parametrize(
    "fn, inputs, multiplications, growth",
    [
        (torch.mm, (A, B), N * D * M, "O(N D M)"),
        (lambda u, v: u[:, None] @ v[None], (U, V), N * M, "O(N D M)"),  # outer product, D = 1
        (lambda u, v: u[None] @ v[:, None], (U, U), N, "O(N D M)"),  # inner product, N = M = 1
        (torch.mul, (C, C), N * M, "O(N M)"),  # Hadamard
        (torch.bmm, (torch.ones(2, N, D), torch.ones(2, D, M)), 2 * N * D * M, "O(B N D M)"),
    ],
    ids=["matrix", "outer", "inner", "hadamard", "batch"],
)
def test_products_take_the_multiplications_of_the_notes(fn, inputs, multiplications, growth):
    cost = only(fn, *inputs)
    assert (cost.multiplications, cost.growth) == (multiplications, growth)


@pytest.mark.parametrize(
    "fn, inputs, flops, growth",
    [
        (torch.relu, (C,), N * M, "O(N M)"),
        (torch.add, (C, C), N * M, "O(N M)"),
        (torch.add, (C, V), N * M, "O(N M)"),
        (torch.sum, (C,), N * M, "O(N M)"),
        (torch.exp, (U,), N, "O(N)"),
    ],
    ids=["relu", "sum of two", "broadcast", "sum", "vector"],
)
def test_elementwise_operations_take_one_flop_a_number(fn, inputs, flops, growth):
    cost = only(fn, *inputs)
    assert (cost.flops, cost.growth) == (flops, growth)


def test_transposes_and_diagonals_compute_nothing():
    (transpose,) = trace(torch.t, A).cost().boxes
    assert (transpose.flops, transpose.bytes, transpose.growth) == (0, 0, "O(N D)")
    assert trace(torch.diagonal, torch.ones(3, 3)).cost().flops == 0


def test_a_convolution_takes_a_product_at_each_place():
    image, kernels = torch.ones(2, 3, 8, 8), torch.ones(4, 3, 3, 3)
    cost = only(lambda x, k: F.conv2d(x, k), image, kernels)
    assert cost.multiplications == 2 * 4 * 6 * 6 * 3 * 3 * 3
    assert cost.growth == "O(B K C H W R S)"


NETWORKS = {
    "dense": (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), (5, 4)),
    "images": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3, 2)), (2, 3, 9, 9)),
    "transposed": (nn.ConvTranspose2d(3, 2, 3), (1, 3, 5, 5)),
    "recurrent": (nn.GRUCell(4, 3), (2, 4)),
    "attention": (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), (2, 3, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_totals_agree_with_torchs_own_counter_forwards_and_backwards(name):
    net, shape = NETWORKS[name]
    x = torch.ones(*shape)

    def loss(x):
        return net(x).sum()

    graph = trace(loss, x)
    with FlopCounterMode(display=False) as counter:
        out = loss(x)
    assert graph.cost().product_flops == counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        torch.autograd.grad(out, list(net.parameters()))
    gradient = graph.gradient([box.name for box in graph.parameters])
    both = graph.cost().product_flops + counter.get_total_flops()
    last = graph.cost().product_flops - kept_products(graph, gradient)
    assert gradient.cost().product_flops == both - last


def kept_products(graph, gradient):
    """FLOPs of the forward products that the gradient needs; the last ones it may not."""
    names = {box.name for box in gradient.order}
    return sum(b.flops for b in graph.cost().boxes if b.counted and b.name in names)


def test_memory_is_what_is_alive_while_a_box_runs():
    x = torch.ones(100)  # 400 bytes
    cost = trace(lambda x: (torch.sin(x).cos().exp() * x).sum(), x).cost()
    assert [box.memory for box in cost.boxes] == [800, 1200, 1200, 1200, 804]
    assert cost.peak_memory == 1200
    assert cost["sin"].bytes == 800


def test_a_view_takes_no_memory_and_keeps_what_it_shows_alive():
    x = torch.ones(100)
    cost = trace(lambda x: x.exp().view(10, 10).t().sum(0), x).cost()
    assert [box.memory for box in cost.boxes] == [800, 800, 800, 840]


def test_the_table_has_a_line_for_each_box_and_one_for_the_total():
    cost = trace(nn.Linear(2, 1), torch.ones(3, 2)).cost()
    lines = str(cost).splitlines()
    assert len(lines) == 4
    assert lines[0].split() == ["box", "growth", "FLOPs", "bytes", "memory"]
    assert lines[-1].split()[:2] == ["total", "12"]
