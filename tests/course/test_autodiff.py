"""Rows of the course on automatic differentiation that belong to no single file."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import trace
from castalia.optim import build_optimizer


@pytest.fixture
def draw():
    """Return a function that draws the same numbers in every run."""
    source = torch.Generator().manual_seed(0)
    return lambda *shape: torch.randn(*shape, generator=source, dtype=torch.float64)


def test_numbers_in_give_numbers_out_that_match_finite_differences(draw):
    x, step = draw(3), 1e-6

    def fn(x):
        return torch.exp(torch.sin(x)).prod() / (1 + x @ x)

    found = trace(fn, x).bprop()["x"]
    moves = step * torch.eye(3, dtype=torch.float64)
    differences = [(fn(x + move) - fn(x - move)) / (2 * step) for move in moves]
    assert_close(found, torch.stack(differences), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("depth", range(2, 7))
def test_errors_go_down_the_layers_as_the_notes_say(depth, draw):
    """e(M) = (y - y_hat) g'(s), e(m) = g'(s(m)) W(m+1)^T e(m+1), -dE/dW(m) = e(m) z(m-1)^T."""
    x, y = draw(3), draw(3)
    layers = [m for _ in range(depth) for m in (nn.Linear(3, 3, bias=False), nn.Tanh())]
    net = nn.Sequential(*layers).double()
    graph = trace(lambda x: ((y - net(x)) ** 2).sum() / 2, x)
    found = graph.bprop()
    z = [x] + [box.value.flatten() for box in graph.order if box.operation == "tanh"]
    error = (y - z[-1]) * (1 - z[-1] ** 2)
    for m in reversed(range(depth)):
        assert_close(-found[f"net.{2 * m}.weight"], torch.outer(error, z[m]))
        error = (1 - z[m] ** 2) * (net[2 * m].weight.detach().T @ error)


def test_reverse_mode_in_vector_form(draw):
    """dc/ds = dc/dz * g'(s), dc/dW = (dc/ds)^T z^T, dc/dz_prev = dc/ds W, rows as gradients."""
    z, weight, seed = draw(1, 4), draw(3, 4), draw(1, 3)
    graph = trace(lambda z, weight: torch.sigmoid(z @ weight.T), z, weight)
    found = graph.bprop(seed)
    out = graph.values["sigmoid"]
    at_s = seed * out * (1 - out)
    assert_close(graph.adjoints["mm"], at_s)
    assert_close(found["weight"], at_s.T @ z)
    assert_close(found["z"], at_s @ weight)


def test_the_graph_of_logistic_regression_forwards_and_backwards(draw):
    w, x = draw(3), draw(3)
    for y in (0.0, 1.0):

        def nll(w, x, y=y):
            p = torch.sigmoid(w @ x)
            return -(y * torch.log(p) + (1 - y) * torch.log(1 - p))

        graph = trace(nll, w, x)
        found = graph.bprop()
        p = graph.values["sigmoid"]
        assert_close(graph.values["dot"], w @ x)
        assert_close(p, torch.sigmoid(w @ x))
        assert_close(graph.adjoints["sigmoid"], -y / p + (1 - y) / (1 - p))
        assert_close(graph.adjoints["dot"], p - y)
        assert_close(found["w"], (p - y) * x)


def test_the_gradient_does_not_depend_on_the_optimizer_that_applies_it(draw):
    x, y, found, after = draw(5, 3), draw(5, 1), {}, {}
    for name in ("sgd", "adam"):
        torch.manual_seed(0)
        net = nn.Linear(3, 1).double()
        optimizer = build_optimizer(name, net.parameters(), lr=0.1)
        before = net.weight.detach().clone()
        graph = trace(lambda x, net=net: ((net(x) - y) ** 2).mean(), x)
        graph.fprop(x)  # forward: outputs
        found[name] = graph.bprop()  # backward: gradients
        assert_close(net.weight.detach(), before, rtol=0, atol=0)
        net.weight.grad, net.bias.grad = found[name]["net.weight"], found[name]["net.bias"]
        optimizer.step()  # applied apart
        after[name] = net.weight.detach()
    assert_close(found["sgd"], found["adam"], rtol=0, atol=0)
    assert not torch.allclose(after["sgd"], after["adam"])


def test_a_sigmoid_unit_learns_where_a_step_unit_has_no_gradient():
    x = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    t = torch.tensor([0.0, 0, 0, 1])  # AND

    def error(g):
        return lambda w, b: ((t - g(x @ w + b)) ** 2).sum()

    step = trace(error(lambda s: (s > 0).float()), torch.zeros(2), torch.zeros(()))
    assert step.bprop() == {}  # no adjoint comes through a step
    w, b = torch.zeros(2), torch.zeros(())
    sigmoid = trace(error(torch.sigmoid), w, b)
    for _ in range(400):
        sigmoid.fprop(w, b)
        found = sigmoid.bprop()
        w, b = w - found["w"], b - found["b"]
    assert ((torch.sigmoid(x @ w + b) > 0.5).float() == t).all()


def test_a_tensor_has_spatial_axes_and_a_feature_vector_at_each_place(draw):
    image = draw(4, 5, 3)  # shape (d1, d2, d3): two spatial axes, three features a place
    graph = trace(lambda image: image[1, 2], image)
    (vector,) = graph.ends
    assert vector.shape == (3,)
    assert_close(graph.fprop(image), torch.tensor(image.numpy()[1, 2]))
    adjoint = graph.bprop(torch.ones(3, dtype=torch.float64))["image"]
    assert adjoint.sum() == adjoint[1, 2].sum() == 3
    band = trace(lambda image: image[..., 1:3, :2], image)
    assert_close(band.fprop(image), torch.tensor(image.numpy()[..., 1:3, :2]))
