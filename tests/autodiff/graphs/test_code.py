"""The code of a graph can be read, and computes what the graph computes."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import trace
from castalia.utils.seeds import seed_scope

KINDS = ("input", "parameter", "buffer", "constant")


def run(graph):
    """Execute the code with the tensors of the graph's leaves."""
    space = {}
    exec(graph.code(), space)
    leaves = [graph.tensors[box] for kind in KINDS for box in graph.order if box.kind == kind]
    return space[graph.name](*leaves)


def images():
    torch.manual_seed(0)
    convolve = (nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(*convolve, nn.Flatten(), nn.Linear(8, 2))


CASES = {
    "expression": (lambda x: (x**2 - 3 * x) / (1 + torch.exp(-x)) @ x.t(), (2, 3)),
    "lists and slices": (lambda x: torch.cat([x, -x])[1:, :2].sum(0) + x[0, 0], (2, 3)),
    "infinity": (lambda x: x.masked_fill(x > 0, float("-inf")).softmax(0), (3,)),
    "no gradient": (lambda x: x.detach() * x, (3,)),
    "a tuple": (lambda x: (x.max(), {"a": x.sort()[0]}), (3,)),
    "recurrent": (nn.GRU(2, 3), (4, 2)),
    "images": (images(), (2, 1, 6, 6)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_code_computes_what_the_graph_computes(name):
    fn, shape = CASES[name]
    with seed_scope(0):
        x = torch.randn(*shape)
    graph = trace(fn, x)
    assert_close(run(graph), graph.fprop(x))


def test_the_code_of_a_gradient_computes_the_gradient():
    net, y = images(), torch.tensor([0, 1])
    graph = trace(lambda x: F.cross_entropy(net(x), y), torch.randn(2, 1, 6, 6))
    gradient = graph.gradient(["net.0.weight", "net.5.bias"])
    for each in (gradient, gradient.simplify()):
        assert_close(run(each), gradient.fprop())


def test_the_code_reads_like_the_mathematics():
    graph = trace(nn.Sequential(nn.Linear(2, 1), nn.Tanh()), torch.ones(3, 2))
    assert graph.code().splitlines() == [
        "import torch",
        "",
        "",
        "def Sequential(input, _0_weight, _0_bias):",
        "    # 0 (Linear)",
        "    t = _0_weight.t()",
        "    addmm = torch.addmm(_0_bias, input, t)",
        "    # 1 (Tanh)",
        "    tanh = torch.tanh(addmm)",
        "    return tanh",
    ]


def test_the_second_derivative_of_a_power_is_one_line_of_algebra():
    graph = trace(lambda x: x**5, torch.tensor(2.0)).gradient().gradient().simplify()
    body = graph.code().splitlines()[4:]
    assert body[0].endswith("= x ** 3.0")
    assert body[1].endswith("* 20.0")
