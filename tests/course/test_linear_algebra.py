"""Linear algebra and probability of the course."""

import math

import pytest
import torch
from scipy.integrate import quad
from torch import distributions as laws
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import gradient, hessian, hessian_spectrum, jacobian
from castalia.nn import convolve
from castalia.objectives import (
    L2,
    BernoulliLikelihood,
    GaussianLikelihood,
    MultinoulliLikelihood,
)
from castalia.objectives.likelihood import FLOOR


def draw(*shape, number=0):
    source = torch.Generator().manual_seed(number)
    return torch.randn(shape, generator=source, dtype=torch.float64)


def test_singular_values_are_the_roots_of_the_eigenvalues_of_the_gram_matrix():
    a = draw(6, 4)
    u, s, vt = torch.linalg.svd(a, full_matrices=False)
    assert_close(s, torch.linalg.eigvalsh(a.T @ a).flip(0).sqrt(), rtol=1e-10, atol=0.0)
    assert (u @ torch.diag(s) @ vt - a).abs().max() < 1e-12
    eye = torch.eye(4).double()
    assert (u.T @ u - eye).abs().max() < 1e-12
    assert (vt @ vt.T - eye).abs().max() < 1e-12


def test_cutting_the_decomposition_is_the_best_approximation_of_low_rank():
    a, rank = draw(6, 4), 2
    u, s, vt = torch.linalg.svd(a, full_matrices=False)
    best = u[:, :rank] @ torch.diag(s[:rank]) @ vt[:rank]
    error = (a - best).square().sum()
    assert_close(error, s[rank:].square().sum())
    for number in range(50):  # the best fit within a random row space of that rank
        q = torch.linalg.qr(draw(4, rank, number=number)).Q
        assert (a - a @ q @ q.T).square().sum() > error
    loss = lambda w, z: (a - w @ z).square().sum()  # noqa: E731
    slopes = gradient(loss, u[:, :rank] * s[:rank], vt[:rank], wrt=(0, 1))
    assert max(g.abs().max() for g in slopes) < 1e-12


def test_the_l2_penalty_is_the_squared_frobenius_norm():
    net = nn.Linear(3, 4, bias=False).double()
    w = net.weight.detach()
    value = L2(1.0, half=False).value(net)
    assert_close(value.detach(), (w.T @ w).trace())
    assert_close(value.detach().sqrt(), torch.linalg.matrix_norm(w))
    assert_close(gradient(L2(1.0, half=False).value, net)["weight"], 2 * w)


def test_a_symmetric_matrix_has_real_values_and_orthogonal_vectors():
    a = draw(5, 5)
    a = a + a.T
    found = hessian_spectrum(lambda x: x @ a @ x / 2, torch.zeros(5).double(), vectors=True)
    u = torch.stack(list(found.largest_vectors), 1)
    assert_close(u @ torch.diag(found.largest) @ u.T, a)
    assert_close(u.T @ u, torch.eye(5).double())
    assert_close(found.largest, torch.linalg.eigvalsh(a).flip(0))
    assert_close(found.smallest, torch.linalg.eigvalsh(a))
    assert found.converged
    assert max(*found.largest_errors, *found.smallest_errors) < 1e-9


def test_the_curvature_of_a_gaussian_is_the_inverse_of_its_cholesky_square():
    root = draw(3, 3)
    sigma = root @ root.T + torch.eye(3).double()
    factor = torch.linalg.cholesky(sigma)
    assert factor.triu(1).abs().sum() == 0
    assert_close(factor @ factor.T, sigma)
    gaussian = laws.MultivariateNormal(torch.zeros(3).double(), scale_tril=factor)
    curvature = hessian(lambda x: -gaussian.log_prob(x), torch.zeros(3).double())
    assert_close(curvature @ sigma, torch.eye(3).double())


def test_at_a_constrained_minimum_the_lagrangian_is_stationary():
    a, b = draw(3, 3), draw(3)
    h = a @ a.T + torch.eye(3).double()

    def lagrangian(z, w, multiplier):  # min z^T h z / 2 + |w|^2 / 2 with z = w, sum z = 1
        ties = torch.cat([z - w, (z.sum() - 1)[None]])
        return z @ h @ z / 2 + w @ w / 2 - b @ z + multiplier @ ties

    point = [torch.zeros(3).double(), torch.zeros(3).double(), torch.zeros(4).double()]
    blocks = hessian(lagrangian, *point, wrt=(0, 1, 2))
    system = torch.cat([torch.cat(list(row), 1) for row in blocks])
    slope = torch.cat(gradient(lagrangian, *point, wrt=(0, 1, 2)))
    solved = torch.linalg.solve(system, -slope).split([3, 3, 4])
    residual = gradient(lagrangian, *solved, wrt=(0, 1, 2))
    assert max(r.abs().max() for r in residual) < 1e-12
    z, _, _ = solved
    cost = lambda z: z @ h @ z / 2 + z @ z / 2 - b @ z  # noqa: E731
    for number in range(20):
        step = draw(3, number=number)
        assert cost(z + 0.1 * (step - step.mean())) > cost(z)


def test_the_fourier_transform_turns_a_convolution_into_a_product():
    x, kernel = draw(8), draw(5, number=1)
    product = torch.fft.irfft(torch.fft.rfft(x, 12) * torch.fft.rfft(kernel, 12), 12)
    assert_close(convolve(x, kernel, padding="full"), product)  # 8 + 5 - 1 = 12 places
    middle = convolve(x, kernel, padding="same", border="circular")
    around = torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(kernel, 8), 8)
    assert_close(middle, around.roll(-2))  # "same" begins at the middle tap
    circulant = jacobian(lambda x: convolve(x, kernel, padding="same", border="circular"), x)
    f = torch.fft.fft(torch.eye(8, dtype=torch.complex128))
    shift = torch.exp(0.5j * torch.pi * torch.arange(8, dtype=torch.float64))  # of the two places
    diagonal = f @ circulant.to(f) @ torch.linalg.inv(f)
    assert_close(diagonal, torch.diag(shift * torch.fft.fft(kernel, 8)), rtol=1e-10, atol=1e-10)


def test_the_gaussian_density_integrates_to_one_and_has_a_linear_score():
    m, s = 1.3, 0.6
    both = torch.tensor([[m, math.log(math.expm1(s - FLOOR))]], dtype=torch.float64)
    known = GaussianLikelihood(s).distribution(both[:, :1])
    for law in (GaussianLikelihood().distribution(both), known):

        def density(x, law=law):
            return law.log_prob(torch.tensor([[x]], dtype=torch.float64)).exp().item()

        formula = math.exp(-((0.25 - m) ** 2) / (2 * s**2)) / (s * math.sqrt(2 * math.pi))
        assert density(0.25) == pytest.approx(formula, rel=1e-12)
        assert quad(density, -10, 12)[0] == pytest.approx(1, abs=1e-9)
        score = gradient(lambda x, law=law: law.log_prob(x.view(1, 1)).sum(), 0.2)
        assert score.item() == pytest.approx(-(0.2 - m) / s**2)


def test_masses_are_those_of_the_formulas_and_sum_to_one():
    phi = 0.3
    yes_or_no = BernoulliLikelihood().distribution(torch.tensor([[math.log(phi / (1 - phi))]]))
    masses = [yes_or_no.log_prob(torch.tensor([[x]])).exp().item() for x in (0.0, 1.0)]
    assert masses == pytest.approx([1 - phi, phi])
    for classes in (2, 5):
        scores, codes = draw(1, classes), torch.arange(classes)
        law = MultinoulliLikelihood().distribution(scores.expand(classes, -1))
        mass = law.log_prob(codes).exp()
        assert_close(mass, scores[0].exp() / scores[0].exp().sum())
        assert mass.sum().item() == pytest.approx(1)
        equal = MultinoulliLikelihood().distribution(torch.full((classes, classes), 7.0).double())
        assert_close(equal.log_prob(codes).exp(), torch.full((classes,), 1 / classes).double())
