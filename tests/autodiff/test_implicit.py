"""The adjoint equation of implicit constraints."""

import pytest
import torch
from torch.testing import assert_close

from castalia.autodiff import adjoint_gradient, adjoint_multipliers
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch, SolverFailed

double = {"dtype": torch.float64}


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), **double)


# ---- a network written as constraints ----

WIDTHS = (3, 5, 4, 2)
X, Y = random(6, 3, seed=1), random(6, 2, seed=2)


def weights():
    return [random(b, a, seed=a) / a for a, b in zip(WIDTHS, WIDTHS[1:], strict=False)]


def layers(w):
    """z_i = F_i(z_{i-1}, w_i), recorded."""
    z, found = X, []
    for i, matrix in enumerate(w):
        z = z @ matrix.T if i == len(w) - 1 else torch.tanh(z @ matrix.T)
        found.append(z)
    return found


def constraints(z, w):
    """g_i = z_i - F_i(z_{i-1}, w_i)."""
    before = [X, *z[:-1]]
    after = [torch.tanh(b @ m.T) for b, m in zip(before[:-1], w[:-1], strict=True)]
    after.append(before[-1] @ w[-1].T)
    return [a - b for a, b in zip(z, after, strict=True)]


def cost(z, w):
    return (z[-1] - Y).square().mean()


@pytest.mark.parametrize("solver", ["dense", "gmres"])
def test_adjoint_gradients_of_a_network_equal_backprop_layer_by_layer(solver):
    w = [m.requires_grad_() for m in weights()]
    z = layers(w)
    backprop = torch.autograd.grad(cost(z, w), [*z, *w])
    plain = [x.detach() for x in z], [m.detach() for m in w]
    multipliers = adjoint_multipliers(constraints, cost, *plain, solver=solver)
    found = adjoint_gradient(constraints, cost, *plain, solver=solver)
    for ours, autograd in zip([*multipliers, *found], backprop, strict=True):
        assert_close(ours, autograd, rtol=1e-8, atol=1e-10)


def test_the_multipliers_obey_the_recursion_of_backprop():
    w = weights()
    z = layers(w)
    last, middle, first = adjoint_multipliers(constraints, cost, z, w)[::-1]
    assert_close(last, 2 * (z[-1] - Y) / Y.numel())  # dc/dz_l
    assert_close(middle, last @ w[2])  # lambda_{i+1}^T dF_{i+1}/dz_i
    assert_close(first, (middle * (1 - z[1] ** 2)) @ w[1])
    assert_close(adjoint_gradient(constraints, cost, z, w)[1], (middle * (1 - z[1] ** 2)).T @ z[0])


def test_the_sign_is_that_of_c_minus_lambda_g():
    """g = z - w x, c = z: dc/dw = x, and lambda = 1."""
    z, w = torch.tensor([6.0]), torch.tensor([2.0])
    found = adjoint_gradient(lambda z, w: z - 3 * w, lambda z, w: z.sum(), z, w)
    assert_close(found, torch.tensor([3.0]))
    lam = adjoint_multipliers(lambda z, w: z - 3 * w, lambda z, w: z.sum(), z, w)
    assert_close(lam, torch.tensor([1.0]))


def test_a_cost_that_depends_on_w_directly_keeps_that_part():
    z, w = torch.tensor([3.0]), torch.tensor([9.0])
    found = adjoint_gradient(lambda z, w: z**2 - w, lambda z, w: (z * w).sum(), z, w)
    assert_close(found, torch.tensor([3.0 + 9.0 / 6.0]))  # z + w / (2 z)


def test_large_systems_are_solved_without_their_matrix():
    n = 5000  # a dense Jacobian would take 200 MB
    w = random(n).requires_grad_()
    coupling = 0.3

    def g(z, w):
        return z - coupling * torch.tanh(z.roll(1)) - w

    z = w.detach().clone()
    for _ in range(60):
        z = coupling * torch.tanh(z.roll(1)) + w.detach()
    found = adjoint_gradient(g, lambda z, w: z.square().mean(), z, w)
    unrolled = w.clone()
    for _ in range(60):
        unrolled = coupling * torch.tanh(unrolled.roll(1)) + w
    (expected,) = torch.autograd.grad(unrolled.square().mean(), w)
    assert_close(found, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    "g, c, settings, error, said",
    [
        (
            lambda z, w: z[:1] - w[:1],
            None,
            {},
            ShapeMismatch,
            r"for each of the 2 numbers of `z`; got 1",
        ),
        (
            None,
            lambda z, w: z,
            {},
            ShapeMismatch,
            r"`c\(z, w\)` must be a tensor of one number.*\(2,\)",
        ),
        (lambda z, w: z - w - 1, None, {}, InvalidData, r"largest residual of 1"),
        (lambda z, w: (z - w).sum().expand(2), None, {}, SolverFailed, r"singular Jacobian of 2"),
        (None, None, {"solver": "gmress"}, InvalidParameter, r"Did you mean `gmres`\?"),
    ],
    ids=["few", "vector", "unsolved", "singular", "solver"],
)
def test_systems_that_make_no_sense_are_refused(g, c, settings, error, said):
    z = w = torch.ones(2)
    with pytest.raises(error, match=said):
        adjoint_gradient(g or (lambda z, w: z - w), c or (lambda z, w: z.sum()), z, w, **settings)
