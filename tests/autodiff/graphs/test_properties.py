"""Random expression graphs: both passes and both orders of derivatives against autograd."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from castalia.autodiff import trace

UNARY = (
    torch.sin, torch.tanh, torch.sigmoid, lambda a: a * a, lambda a: torch.exp(-a * a), torch.neg,
    lambda a: a.sum() * a, lambda a: a[..., :1] + a, lambda a: torch.softmax(a, -1),
    lambda a: a.mean(0, keepdim=True) - a, lambda a: torch.nn.functional.softplus(a),
)  # fmt: skip
BINARY = (
    torch.add, torch.sub, torch.mul, lambda a, b: a / (1 + b * b), lambda a, b: a @ b.T @ b,
    lambda a, b: torch.where(a > b, a * b, a + b), lambda a, b: torch.cat([a, b])[: len(a)] * b,
)  # fmt: skip
steps = st.lists(
    st.tuples(st.integers(0, len(UNARY) + len(BINARY) - 1), st.integers(0, 9), st.integers(0, 9)),
    min_size=1,
    max_size=6,
)
calm = settings(max_examples=8, deadline=None, derandomize=True)


def program(plan):
    """A function of two matrices: each step reads two earlier results, so results are shared."""

    def fn(x, y):
        pool = [x, y]
        for op, i, j in plan:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            value = UNARY[op](a) if op < len(UNARY) else BINARY[op - len(UNARY)](a, b)
            pool.append(torch.tanh(value))
        return (sum(pool) * torch.sin(x) * torch.cos(y)).sum()

    return fn


def matrices(seed):
    source = torch.Generator().manual_seed(seed)
    return [torch.randn(2, 3, generator=source, dtype=torch.float64) for _ in range(4)]


@calm
@given(steps, st.integers(0, 99))
def test_both_passes_equal_the_function_and_autograd(plan, seed):
    fn, (x, y, *other) = program(plan), matrices(seed)
    graph = trace(fn, x, y)
    for pair in ((x, y), other):
        a, b = (t.clone().requires_grad_() for t in pair)
        out = fn(a, b)
        expected = torch.autograd.grad(out, (a, b))
        assert_close(graph.fprop(*pair), out.detach(), rtol=0, atol=0)
        assert_close(tuple(graph.bprop()[n] for n in "xy"), expected, rtol=1e-10, atol=1e-10)


@calm
@given(steps, st.integers(0, 99))
def test_the_graph_of_the_gradient_equals_autograd_before_and_after_simplification(plan, seed):
    fn, (x, y, *other) = program(plan), matrices(seed)
    graph = trace(fn, x, y).gradient(["x", "y"])
    short = graph.simplify()
    a, b = (t.clone().requires_grad_() for t in other)
    expected = torch.autograd.grad(fn(a, b), (a, b))
    assert_close(graph.fprop(*other), expected, rtol=1e-10, atol=1e-10)
    assert_close(short.fprop(*other), expected, rtol=1e-10, atol=1e-10)
    assert len(short) <= len(graph)


@settings(calm, max_examples=4)
@given(steps, st.integers(0, 99))
def test_the_gradient_of_the_gradient_is_symmetric_and_equals_autograd(plan, seed):
    fn, (x, y, u, v) = program(plan), matrices(seed)
    gradient = trace(fn, x, y).gradient("x")

    def product(direction):
        return gradient.gradient("x", seed=direction).fprop(x, y)

    a = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(fn(a, y), a, create_graph=True)
    expected = torch.autograd.grad(slope, a, u, materialize_grads=True)[0]
    assert_close(product(u), expected, rtol=1e-9, atol=1e-9)
    assert_close((product(u) * v).sum(), (product(v) * u).sum(), rtol=1e-9, atol=1e-9)
