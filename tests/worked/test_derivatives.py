"""Derivatives worked out in the notes: chain rule, gradient identities, standard error."""

import math

import pytest
import torch
from torch.testing import assert_close

from castalia.autodiff import gradient, jacobian


@pytest.fixture
def draw():
    source = torch.Generator().manual_seed(0)
    return lambda *shape: torch.randn(shape, generator=source, dtype=torch.float64)


def test_the_chain_rule_multiplies_the_gradient_by_the_jacobian():
    def f(g):
        return g[0] ** 2 + 2 * g[1]

    def g(p):
        return torch.stack([p[0] * p[1].sin(), p[0] * p[1].cos()])

    s, t = 2.0, 1.0
    point = torch.tensor([s, t], dtype=torch.float64)
    outer = torch.tensor([2 * s * math.sin(t), 2.0], dtype=torch.float64)
    inner = torch.tensor(
        [[math.sin(t), s * math.cos(t)], [math.cos(t), -s * math.sin(t)]], dtype=torch.float64
    )
    assert_close(gradient(f, g(point)), outer)
    assert_close(jacobian(g, point), inner)
    whole = gradient(lambda p: f(g(p)), point)
    assert_close(whole, outer @ inner)
    printed = [3.9128982848305642, 0.27130576807114126]
    assert whole.tolist() == pytest.approx(printed, rel=1e-14)


def test_gradient_identities(draw):
    a, b, x, scale = draw(4, 4), draw(4), draw(4), 1.7
    f = lambda v: (v**3).sum() + v.prod()  # noqa: E731
    assert_close(gradient(lambda x: x @ a @ x, x), (a + a.T) @ x)
    symmetric = a + a.T
    assert_close(gradient(lambda x: x @ symmetric @ x, x), 2 * symmetric @ x)
    assert_close(gradient(lambda x: x @ x, x), 2 * x)
    assert_close(gradient(lambda x: b @ x, x), b)
    assert_close(gradient(lambda x: f(a @ x), x), a.T @ gradient(f, a @ x))
    assert_close(gradient(lambda x: f(scale * x), x), scale * gradient(f, scale * x))


def test_a_hundred_times_the_rows_make_the_error_of_the_gradient_ten_times_smaller(draw):
    def spread(rows, repeats=400):
        x = draw(repeats, rows)  # each line is a batch; the slope at 0 of mean (w - x)^2 / 2
        found = gradient(lambda w: ((w[:, None] - x) ** 2 / 2).mean(1).sum(), torch.zeros(repeats))
        return found.std().item()

    assert spread(100) / spread(10_000) == pytest.approx(10, rel=0.1)
    assert spread(100) == pytest.approx(1 / math.sqrt(100), rel=0.1)
