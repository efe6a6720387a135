"""The notes' examples through computation graphs, number by number."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import trace


def number(value):
    return torch.tensor(value, dtype=torch.float64)


def matrix(rows):
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("t, expected", [(1.0, 11.0), (2.0, 40.0)])
def test_the_chain_rule_over_two_paths(t, expected):
    graph = trace(lambda t: t**2 * (3 * t + 1), number(t))
    assert graph.bprop()["t"].item() == expected == 9 * t**2 + 2 * t
    assert graph.gradient().fprop().item() == expected
    (r,) = graph.ends
    u, v = r.parents
    assert (u.value.item(), v.value.item()) == (t**2, 3 * t + 1)
    assert (u.adjoint.item(), v.adjoint.item()) == (3 * t + 1, t**2)  # dr/du = v, dr/dv = u


def test_the_chain_rule_through_a_sine_and_a_cosine():
    graph = trace(lambda t: torch.sin(t) ** 2 + 2 * torch.cos(t), number(1.0))
    assert graph.bprop()["t"].item() == pytest.approx(-0.7736445427901112, abs=1e-15)
    assert graph.adjoints["sin"].item() == pytest.approx(2 * math.sin(1))
    assert graph.adjoints["cos"].item() == 2.0


def test_the_chain_rule_in_two_variables():
    def h(s, t):
        x = torch.stack([s * torch.sin(t), s * torch.cos(t)])  # g(s, t)
        return x[0] ** 2 + 2 * x[1]

    found = trace(h, number(2.0), number(1.0)).bprop()
    assert found["s"].item() == pytest.approx(3.9128982848305642, abs=1e-14)
    assert found["t"].item() == pytest.approx(0.27130576807114126, abs=1e-14)


@pytest.fixture
def draw():
    """Return a function that draws the same numbers in every run."""
    source = torch.Generator().manual_seed(0)
    return lambda *shape: torch.randn(*shape, generator=source, dtype=torch.float64)


def test_a_sigmoid_unit(draw):
    x, t, w = draw(6, 3), draw(6), draw(3)

    def error(w):
        return ((t - torch.sigmoid(x @ w)) ** 2).sum() / (2 * 6)

    graph = trace(error, w)
    out = graph.values["sigmoid"]
    expected = -((t - out) * out * (1 - out)) @ x / 6
    assert_close(graph.bprop()["w"], expected)
    assert_close(graph.gradient("w").simplify().fprop(), expected)


def test_a_network_with_one_hidden_layer(draw):
    x, t = draw(6, 3), draw(6, 2)  # N = 6 rows, d = 3 inputs, 4 hidden units, c = 2 outputs

    def error(first, second):
        y = torch.sigmoid(x @ first.T)
        z = torch.sigmoid(y @ second.T)
        return ((t - z) ** 2).sum() / (2 * 2 * 6)

    graph = trace(error, draw(4, 3), draw(2, 4))
    found = graph.bprop()
    y, z = graph.values["sigmoid"], graph.values["sigmoid_1"]
    delta = (t - z) * z * (1 - z)  # (N, c)
    back = delta @ graph.values["second"] * y * (1 - y)  # (N, 4)
    assert_close(found["second"], -(delta.T @ y) / 12)
    assert_close(found["first"], -(back.T @ x) / 12)
    assert_close(graph.adjoints["mm_1"], -delta / 12)  # what arrives at the net inputs
    assert_close(graph.adjoints["mm"], -back / 12)


@pytest.mark.parametrize("n, d, m", [(2, 3, 4), (5, 1, 7), (1, 6, 1)])
def test_a_matrix_product_takes_n_d_m_multiplications(n, d, m):
    (cost,) = trace(torch.mm, torch.ones(n, d), torch.ones(d, m)).cost().boxes
    by_hand = sum(1 for _ in range(n) for _ in range(m) for _ in range(d))
    assert (cost.multiplications, cost.growth) == (by_hand, "O(N D M)")


class Recurrent(nn.Module):
    """h = tanh(U x + W h + b), o = tanh(V h + c)."""

    def __init__(self):
        super().__init__()
        self.U = nn.Parameter(matrix([[0.5, -0.3], [0.2, 0.4]]))
        self.W = nn.Parameter(matrix([[0.1, 0.2], [-0.3, 0.4]]))
        self.V = nn.Parameter(matrix([[0.7, -0.6]]))
        self.b = nn.Parameter(matrix([0.1, -0.1]))
        self.c = nn.Parameter(matrix([0.05]))

    def forward(self, x, y):
        h, loss = torch.zeros(2, dtype=x.dtype), 0.0
        for x_t, y_t in zip(x, y, strict=True):
            h = torch.tanh(self.U @ x_t + self.W @ h + self.b)
            o = torch.tanh(self.V @ h + self.c)
            loss = loss + ((y_t - o) ** 2).sum()
        return loss


INPUTS = matrix([[1, 0], [0.5, -0.2], [0, 1]]), matrix([1, -1, 1])
HIDDEN = [(0.537050, 0.099668), (0.449153, -0.198574), (-0.192372, 0.085614)]
OUTPUTS = [0.3506054566, 0.4490833474, -0.1351964246]
GRADIENTS = {
    "U": [[0.158316, -1.673485], [-0.150426, 1.549942]],
    "W": [[-0.215674, 0.383570], [-0.000955, -0.374449]],
    "V": [[0.856199, -0.763797]],
    "b": [-0.916676, 0.621089],
    "c": [-1.054354],
}


def test_back_propagation_through_time_is_one_long_graph():
    graph = trace(Recurrent(), *INPUTS)
    assert graph.fprop(*INPUTS).item() == pytest.approx(3.8102267432, abs=1e-10)
    steps = [box for box in graph.order if box.operation == "tanh"]  # h1 o1 h2 o2 h3 o3
    for h, expected in zip(steps[::2], HIDDEN, strict=True):
        assert h.value.tolist() == pytest.approx(expected, abs=5e-7)
    for o, expected in zip(steps[1::2], OUTPUTS, strict=True):
        assert o.value.item() == pytest.approx(expected, abs=5e-11)
    found = graph.bprop()
    for name, expected in GRADIENTS.items():
        assert_close(found[name], matrix(expected), rtol=0, atol=5e-7)


def test_adjoints_of_the_hidden_states_follow_the_recursion_of_the_notes():
    net = Recurrent()
    graph = trace(net, *INPUTS)
    graph.bprop()
    h1, o1, h2, o2, h3, o3 = (box for box in graph.order if box.operation == "tanh")
    later = torch.zeros(2, dtype=torch.float64)  # dL/dh(t+1) through W
    for (h, o), y in reversed(list(zip([(h1, o1), (h2, o2), (h3, o3)], INPUTS[1], strict=True))):
        at_o = -2 * (y - o.value)
        assert_close(o.adjoint, at_o)
        at_h = net.V.detach().T @ (at_o * (1 - o.value**2)) + later
        assert_close(h.adjoint, at_h)
        later = net.W.detach().T @ (at_h * (1 - h.value**2))


def test_the_shared_weights_receive_the_sum_over_the_steps():
    graph = trace(Recurrent(), *INPUTS)
    graph.bprop()
    parts = [
        box.bprop(box.adjoint, *(parent.value for parent in box.parents))[0]
        for box in graph["U"].children
    ]
    assert len(parts) == 3
    assert_close(sum(parts), graph.adjoints["U"])


def test_the_symbolic_gradient_of_the_unrolled_network_is_the_same():
    graph = trace(Recurrent(), *INPUTS).gradient(list(GRADIENTS))
    for found, expected in zip(graph.simplify().fprop(*INPUTS), GRADIENTS.values(), strict=True):
        assert_close(found, matrix(expected), rtol=0, atol=5e-7)
