"""Linear algebra and probability of the course: torch's own, seen through derivatives."""

import math

import pytest
import torch
from scipy.integrate import quad
from sklearn.decomposition import PCA
from torch import distributions as laws
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import gradient, hessian, hessian_spectrum, jacobian
from castalia.objectives import L2


def draw(*shape, number=0):
    source = torch.Generator().manual_seed(number)
    return torch.randn(shape, generator=source, dtype=torch.float64)


def decomposition(a):
    """A = U S V^T from the Hessian A^T A of |A x|^2 / 2: its eigenvectors are the columns of V."""
    n = a.shape[1]
    curvature = lambda x: (a @ x).square().sum() / 2  # noqa: E731
    found = hessian_spectrum(curvature, torch.zeros(n).double(), k=n, vectors=True)
    v = torch.stack(list(found.largest_vectors), 1)
    s = found.largest.sqrt()
    return a @ v / s, s, v


def test_singular_values_are_the_roots_of_the_eigenvalues_of_the_gram_matrix():
    a = draw(6, 4)
    u, s, v = decomposition(a)
    assert_close(s, torch.linalg.svdvals(a), rtol=1e-10, atol=0.0)
    assert (u @ torch.diag(s) @ v.T - a).abs().max() < 1e-12
    eye = torch.eye(4).double()
    assert (u.T @ u - eye).abs().max() < 1e-12
    assert (v.T @ v - eye).abs().max() < 1e-12


def test_cutting_the_decomposition_is_the_best_approximation_of_low_rank():
    a, rank = draw(6, 4), 2
    u, s, v = decomposition(a)
    best = u[:, :rank] @ torch.diag(s[:rank]) @ v[:, :rank].T
    error = (a - best).square().sum()
    assert_close(error, s[rank:].square().sum())
    for number in range(50):  # the best fit within a random row space of that rank
        q = torch.linalg.qr(draw(4, rank, number=number)).Q
        assert (a - a @ q @ q.T).square().sum() > error
    loss = lambda w, z: (a - w @ z).square().sum()  # noqa: E731
    slopes = gradient(loss, u[:, :rank] * s[:rank], v[:, :rank].T, wrt=(0, 1))
    assert max(g.abs().max() for g in slopes) < 1e-12


def test_the_l2_penalty_is_the_squared_frobenius_norm():
    net = nn.Linear(3, 4, bias=False).double()
    w = net.weight.detach()
    value = L2(1.0, half=False).value(net)
    assert_close(value.detach(), (w.T @ w).trace())
    assert_close(value.detach().sqrt(), torch.linalg.matrix_norm(w))
    assert_close(gradient(L2(1.0, half=False).value, net)["weight"], 2 * w)


def test_principal_components_are_the_top_of_the_hessian_of_the_variance():
    x = draw(50, 5) @ torch.diag(torch.tensor([3.0, 2.0, 1.0, 0.5, 0.1]).double())
    centred = x - x.mean(0)
    variance = lambda w: (centred @ w).square().sum() / (2 * 49)  # noqa: E731
    found = hessian_spectrum(variance, torch.zeros(5).double(), k=2, vectors=True)
    reference = PCA(2).fit(x.numpy())
    assert found.largest.tolist() == pytest.approx(list(reference.explained_variance_))
    axes = torch.stack(list(found.largest_vectors))
    signs = (axes * torch.as_tensor(reference.components_)).sum(1, keepdim=True).sign()
    assert_close(axes * signs, torch.as_tensor(reference.components_), rtol=1e-7, atol=1e-9)
    projected = torch.as_tensor(reference.transform(x.numpy()))
    assert_close(centred @ (axes * signs).T, projected, rtol=1e-7, atol=1e-9)


def test_a_symmetric_matrix_has_real_values_and_orthogonal_vectors():
    a = draw(5, 5)
    a = a + a.T
    h = hessian(lambda x: x @ a @ x / 2, torch.zeros(5).double())
    found = hessian_spectrum(lambda x: x @ a @ x / 2, torch.zeros(5).double(), vectors=True)
    u = torch.stack(list(found.largest_vectors), 1)
    assert_close(u @ torch.diag(found.largest) @ u.T, h)
    assert_close(u.T @ u, torch.eye(5).double())
    assert_close(found.largest.flip(0), torch.linalg.eigvalsh(h))


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
    x, kernel = draw(8), draw(8, number=1)

    def convolve(x):  # around the circle; conv1d does not flip its kernel
        padded = nn.functional.pad(x[None, None], (7, 0), mode="circular")
        return nn.functional.conv1d(padded, kernel.flip(0)[None, None])[0, 0]

    direct = convolve(x)
    product = torch.fft.ifft(torch.fft.fft(x) * torch.fft.fft(kernel)).real
    assert_close(direct, product)
    circulant = jacobian(convolve, x)  # a convolution is linear: its eigenvalues are the spectrum
    f = torch.fft.fft(torch.eye(8, dtype=torch.complex128))
    diagonal = f @ circulant.to(f) @ torch.linalg.inv(f)
    assert_close(diagonal, torch.diag(torch.fft.fft(kernel)), rtol=1e-10, atol=1e-10)


def test_the_gaussian_density_integrates_to_one_and_has_a_linear_score():
    m, s = 1.3, 0.6
    normal = laws.Normal(*torch.tensor([m, s], dtype=torch.float64))
    density = lambda x: normal.log_prob(torch.tensor(x, dtype=torch.float64)).exp().item()  # noqa: E731
    formula = math.exp(-((0.25 - m) ** 2) / (2 * s**2)) / (s * math.sqrt(2 * math.pi))
    assert density(0.25) == pytest.approx(formula, rel=1e-12)
    assert quad(density, -10, 12)[0] == pytest.approx(1, abs=1e-9)
    score = gradient(lambda x: normal.log_prob(x), 0.2)
    assert score.item() == pytest.approx(-(0.2 - m) / s**2)


@pytest.mark.parametrize(
    "pmf, parameter",
    [
        (lambda p: torch.stack([(laws.Bernoulli(p).log_prob(x)).exp() for x in BITS]), 0.3),
        (lambda p: laws.Categorical(torch.stack([p, 1 - p]) / 1.0).probs, 0.8),
        (lambda p: laws.Categorical(logits=p * torch.arange(4.0)).probs, 0.7),
    ],
    ids=["Bernoulli", "two classes", "four classes"],
)
def test_masses_sum_to_one_whatever_the_parameter(pmf, parameter):
    point = torch.tensor(parameter, dtype=torch.float64)
    assert pmf(point).min() >= 0
    assert pmf(point).sum().item() == pytest.approx(1)
    assert gradient(lambda p: pmf(p).sum(), parameter).abs() < 1e-12


BITS = torch.tensor([0.0, 1.0], dtype=torch.float64)


def test_bernoulli_and_uniform_masses_are_those_of_the_formulas():
    phi = torch.tensor(0.3, dtype=torch.float64)
    for x in BITS:
        expected = phi**x * (1 - phi) ** (1 - x)
        assert_close(laws.Bernoulli(phi).log_prob(x).exp(), expected)
    uniform = laws.Categorical(torch.ones(5).double())
    assert_close(uniform.log_prob(torch.arange(5)).exp(), torch.full((5,), 0.2).double())
