"""Lanczos against dense eigenvalues and scipy."""

import pickle

import pytest
import torch
from evidence import spectra
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import (
    condition_number,
    critical_point,
    hessian,
    hessian_density,
    hessian_spectrum,
    hvp,
)
from castalia.errors import CastaliaWarning, InvalidData, InvalidParameter, ShapeMismatch


def draw(*shape, number=0):
    source = torch.Generator().manual_seed(number)
    return torch.randn(*shape, generator=source, dtype=torch.float64)


def quadratic(values):
    """Return x -> x^T A x / 2 with these eigenvalues, and A."""
    values = torch.as_tensor(values, dtype=torch.float64)
    q = torch.linalg.qr(draw(len(values), len(values))).Q
    a = q @ torch.diag(values) @ q.T
    a = (a + a.T) / 2
    return lambda x: x @ a @ x / 2, a


@pytest.fixture(scope="module")
def problem():
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    for i, p in enumerate(net.parameters()):
        p.data = 0.5 * draw(*p.shape, number=i)
    x, y = draw(40, 6, number=9), torch.arange(40) % 3
    return (lambda net: nn.functional.cross_entropy(net(x), y)), net


def dense(fn, net):
    h = hessian(fn, net)
    sizes = {k: p.numel() for k, p in net.named_parameters()}
    rows = [torch.cat([h[a][b].reshape(sizes[a], sizes[b]) for b in h], 1) for a in h]
    return torch.cat(rows)


def test_both_ends_equal_the_dense_eigenvalues_of_a_network(problem):
    values = torch.linalg.eigvalsh(dense(*problem))
    found = hessian_spectrum(*problem, k=5, tol=1e-8)
    assert found.converged
    assert_close(found.largest, values.flip(0)[:5], rtol=1e-8, atol=1e-10)
    assert_close(found.smallest, values[:5], rtol=1e-8, atol=1e-10)


def test_the_error_bounds_hold(problem):
    values = torch.linalg.eigvalsh(dense(*problem)).flip(0)[:3]
    found = hessian_spectrum(*problem, k=3, tol=0.05, which="largest")
    assert found.steps < 120  # of 163
    assert ((found.largest - values).abs() <= found.largest_errors + 1e-12).all()


def test_the_top_equals_that_of_scipy(problem):
    fn, net = problem
    n = sum(p.numel() for p in net.parameters())
    shapes = {k: p.shape for k, p in net.named_parameters()}

    def product(v):
        parts = torch.as_tensor(v).reshape(-1).split([s.numel() for s in shapes.values()])
        pairs = zip(shapes.items(), parts, strict=True)
        got = hvp(fn, net, v={k: part.reshape(s) for (k, s), part in pairs})
        return torch.cat([g.reshape(-1) for g in got.values()]).numpy()

    reference = eigsh(LinearOperator((n, n), product, dtype="float64"), k=3, which="LA")[0]
    found = hessian_spectrum(fn, net, k=3, tol=1e-8, which="largest")
    assert found.largest.tolist() == pytest.approx(sorted(reference, reverse=True), rel=1e-7)


def test_vectors_are_eigenvectors_shaped_like_the_parameters(problem):
    fn, net = problem
    found = hessian_spectrum(fn, net, k=2, tol=1e-9, vectors=True)
    for value, v in zip(found.largest, found.largest_vectors, strict=True):
        assert sum(part.square().sum() for part in v.values()).item() == pytest.approx(1)
        for name, product in hvp(fn, net, v=v).items():
            assert_close(product, value * v[name], rtol=1e-6, atol=1e-8)
    assert len(found.smallest_vectors) == 2


def test_repeated_eigenvalues_are_found_as_often_as_they_occur():
    fn, _ = quadratic([3.0, 3.0, 3.0, 1.0, 1.0, 0.0, -2.0, -2.0])
    found = hessian_spectrum(fn, torch.zeros(8).double(), k=4)
    assert found.largest.tolist() == pytest.approx([3, 3, 3, 1])
    assert found.smallest.tolist() == pytest.approx([-2, -2, 0, 1], abs=1e-12)


def test_five_equal_eigenvalues_are_five():
    fn, _ = quadratic([2.0] * 5 + torch.linspace(-1, 1, 295).tolist())
    found = hessian_spectrum(fn, torch.zeros(300).double(), k=6, which="largest", max_steps=1000)
    assert found.converged
    assert found.largest.tolist() == pytest.approx([2.0] * 5 + [1.0], abs=2e-3)


@pytest.mark.parametrize("k", [3, 5])
def test_no_eigenvalue_is_skipped(k):
    for seed in range(6):
        a = draw(60, 60, number=seed)
        a = a @ a.T + 0.01 * torch.eye(60)
        fn = lambda x, a=a: x @ a @ x / 2  # noqa: E731
        found = hessian_spectrum(fn, torch.zeros(60).double(), k=k, random_state=seed)
        truth = torch.linalg.eigvalsh(a)
        assert found.converged
        assert (found.largest - truth.flip(0)[:k]).abs().max() <= 1e-3 * truth[-1]
        assert (found.smallest - truth[:k]).abs().max() <= 1e-3 * truth[-1]


def test_what_converged_is_never_wrong():
    found = [spectra.outcome(spectra.trial(seed), seed) for seed in range(700, 716)]
    assert not any(one.wrong for one in found)
    assert sum(one.converged for one in found) >= 7


def test_an_end_that_was_not_asked_for_is_empty(problem):
    assert len(hessian_spectrum(*problem, k=2, which="smallest").largest) == 0


def test_bounds_are_infinite_where_values_may_be_missing():
    fn, _ = quadratic(torch.linspace(0, 1, 200))
    found = hessian_spectrum(fn, torch.zeros(200).double(), k=4, max_steps=30)
    assert not found.converged
    assert found.largest_errors.isinf().all()


def test_a_multiple_of_the_identity_needs_only_a_few_steps():
    found = hessian_spectrum(lambda x: x @ x, torch.zeros(5000), k=2)
    assert [*found.largest, *found.smallest] == pytest.approx([2.0] * 4, rel=1e-5)
    assert found.steps <= 20


def test_float32_of_ten_thousand_parameters_is_close_to_float64():
    net = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10))
    for i, p in enumerate(net.parameters()):
        p.data = 0.1 * draw(*p.shape, number=i).float()
    x, y = draw(32, 64), torch.arange(32) % 10
    loss = lambda net: nn.functional.cross_entropy(net(x.to(net[0].weight)), y)  # noqa: E731
    narrow = hessian_spectrum(loss, net, which="largest")
    wide = hessian_spectrum(loss, net.double(), which="largest", tol=1e-8)
    assert_close(narrow.largest, wide.largest, rtol=1e-4, atol=0.0)


def test_the_same_seed_gives_the_same_answer_and_global_randomness_is_left_alone(problem):
    before = torch.get_rng_state()
    first, second = (hessian_spectrum(*problem, k=1) for _ in range(2))
    assert torch.equal(first.largest, second.largest)
    assert torch.equal(before, torch.get_rng_state())


def test_too_few_steps_are_admitted(problem):
    found = hessian_spectrum(*problem, k=3, max_steps=8)
    assert not found.converged
    assert "not converged" in repr(found)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_finds_what_the_cpu_finds():
    fn = lambda x: (torch.arange(50.0, device=x.device) * x**2).sum() / 2  # noqa: E731
    here = hessian_spectrum(fn, torch.ones(50), vectors=True)
    there = hessian_spectrum(fn, torch.ones(50).cuda(), vectors=True)
    assert_close(there.largest, here.largest, rtol=1e-4, atol=1e-4)
    assert there.largest_vectors[0].is_cuda
    assert condition_number(lambda x: fn(x) + x @ x / 2, torch.ones(50).cuda()) == pytest.approx(
        50, rel=1e-3
    )


# ---- density ----


def test_the_density_has_the_trace_and_the_shares_of_the_spectrum():
    values = torch.cat([torch.zeros(150), torch.full((50,), 2.0)])
    fn, _ = quadratic(values)
    found = hessian_density(fn, torch.zeros(200).double(), n_vectors=30)
    assert found.trace == pytest.approx(100, rel=0.05)
    assert found.share(low=1.0) == pytest.approx(0.25, abs=0.02)
    assert found.weights.sum().item() == pytest.approx(1)


def test_the_curve_of_the_density_integrates_to_one(problem):
    grid, height = hessian_density(*problem, n_vectors=2, max_steps=20).curve()
    assert torch.trapezoid(height, grid).item() == pytest.approx(1, abs=1e-3)


def test_the_density_is_drawn(problem):
    import matplotlib

    matplotlib.use("Agg")
    ax = hessian_density(*problem, n_vectors=1, max_steps=10).plot()
    assert len(ax.get_lines()[0].get_xdata()) == 400
    matplotlib.pyplot.close(ax.figure)


# ---- condition number ----


def test_the_condition_number_of_known_matrices():
    assert condition_number(torch.diag(torch.tensor([1.0, 100.0]))) == pytest.approx(100)
    assert condition_number(torch.diag(torch.tensor([-4.0, 2.0]))) == pytest.approx(2)
    assert condition_number(torch.eye(4)) == 1
    hilbert = 1 / (torch.arange(5.0).double()[:, None] + torch.arange(5.0) + 1)
    assert condition_number(hilbert) == pytest.approx(torch.linalg.cond(hilbert).item())


def test_the_condition_number_of_a_hessian_is_that_of_its_matrix():
    fn, a = quadratic(10 ** torch.linspace(-5, 0, 90).double())
    found = condition_number(fn, torch.zeros(90).double())
    assert found == pytest.approx(torch.linalg.cond(a).item(), rel=1e-6)
    assert found.low <= 1e5 <= found.high < 1.0001e5


def test_the_condition_number_of_a_singular_matrix_is_infinite(problem):
    fn, net = problem
    for found in (condition_number(dense(fn, net)), condition_number(fn, net)):
        assert found == torch.inf  # softmax: some directions are exactly flat
        assert 1e6 < found.low < found.high == torch.inf
    assert condition_number(torch.diag(torch.tensor([-4.0, 2.0, 0.0]))) == torch.inf


def test_fewer_products_than_inputs_give_an_interval():
    fn, _ = quadratic(torch.linspace(1, 1000, 80))
    found = [condition_number(fn, torch.zeros(80).double(), max_steps=m) for m in (5, 20, 60)]
    assert found[0].low < found[1].low < found[2].low <= 1000
    assert found[0] == found[0].high == torch.inf
    fn, _ = quadratic(torch.linspace(-100, -1, 600))
    found = condition_number(fn, torch.zeros(600).double(), max_steps=300)
    assert found.low <= 100 <= found.high < 110


@pytest.mark.parametrize("seed", range(12))
def test_the_interval_holds_the_condition_number(seed):
    assert spectra.condition_is_inside(seed)


def test_a_condition_number_survives_pickling():
    found = condition_number(torch.diag(torch.tensor([3.0, 0.0])))
    again = pickle.loads(pickle.dumps(found))
    assert (again, again.low, again.high) == (found, found.low, found.high)


def test_a_function_without_curvature_may_have_any_condition_number():
    found = condition_number(lambda x: x.sum(), torch.ones(3))
    assert (found, found.low, found.high) == (torch.inf, 1, torch.inf)


# ---- critical points ----


@pytest.mark.parametrize(
    "values, kind",
    [
        ([1.0, 2.0, 3.0], "minimum"),
        ([-1.0, -2.0], "maximum"),
        ([1.0, -1.0, 5.0], "saddle"),
        ([1.0, 0.0, -1.0], "saddle"),
        ([1.0, 0.0], "flat"),
        ([-1.0, 0.0], "flat"),
        ([0.0, 0.0], "flat"),
    ],
)
def test_the_signs_of_the_curvature_name_the_point(values, kind):
    fn, _ = quadratic(values)
    assert critical_point(fn, torch.zeros(len(values)).double()) == kind


def test_known_points_of_known_functions():
    monkey = lambda x: x[0] ** 3 - 3 * x[0] * x[1] ** 2  # noqa: E731
    rosenbrock = lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2  # noqa: E731
    himmelblau = lambda x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2  # noqa: E731
    assert critical_point(monkey, torch.zeros(2)) == "flat"
    assert critical_point(rosenbrock, torch.ones(2).double()) == "minimum"
    assert critical_point(rosenbrock, torch.zeros(2).double()) == "not critical"
    assert critical_point(himmelblau, torch.tensor([3.0, 2.0]).double()) == "minimum"
    top = torch.tensor([-0.270844590667, -0.923038522385]).double()
    assert critical_point(himmelblau, top) == "maximum"


def test_signs_that_are_not_certain_are_said_to_be():
    fn, _ = quadratic(torch.linspace(0.001, 1, 300))
    with pytest.warns(CastaliaWarning, match="not certain after 40 products"):
        critical_point(fn, torch.zeros(300).double(), max_steps=40)


def test_a_network_of_zeros_sits_on_a_saddle():
    net = nn.Sequential(nn.Linear(2, 3, bias=False), nn.Tanh(), nn.Linear(3, 1, bias=False))
    for p in net.parameters():
        nn.init.zeros_(p)
    x = draw(20, 2).float()
    assert critical_point(lambda net: (net(x) - x[:, :1]).square().mean(), net) == "saddle"


# ---- bad input ----

X = torch.ones(2)


@pytest.mark.parametrize(
    "ask, error, said",
    [
        (lambda: hessian_spectrum(lambda x: x.sum(), X, k=0), InvalidParameter, "`k`.*got 0"),
        (lambda: hessian_spectrum(lambda x: x.sum(), X, which="top"), InvalidParameter, "'top'"),
        (lambda: hessian_spectrum(lambda x: x, X), ShapeMismatch, r"one number; got shape \(2,\)"),
        (lambda: hessian_spectrum(lambda x: x.norm(), 0 * X), InvalidData, "must be finite"),
        (lambda: hessian_density(lambda x: x.sum(), X, n_vectors=0), InvalidParameter, "n_vectors"),
        (lambda: condition_number(torch.ones(2, 3)), ShapeMismatch, r"square; got shape \(2, 3\)"),
        (lambda: condition_number(torch.tensor([[1.0, 2.0], [0.0, 1.0]])), InvalidData, "up to 2 "),
        (lambda: condition_number(torch.eye(2).long()), InvalidData, "got torch.int64"),
    ],
    ids=range(8),
)
def test_a_bad_question_gets_a_sentence(ask, error, said):
    with pytest.raises(error, match=said):
        ask()
