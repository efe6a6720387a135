"""Gaussian processes against scikit-learn's, closed forms and finite differences."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessClassifier as SkClassifier
from sklearn.gaussian_process import GaussianProcessRegressor as SkRegressor
from sklearn.gaussian_process import kernels as sk

from castalia import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelRidge,
    SparseGaussianProcess,
)
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch, TrainingWarning
from castalia.models.kernel import (
    RBF,
    Constant,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    White,
    kernel_matrix,
)
from castalia.models.kernel.evidence_maximiser import climb

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 2))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RANDOM.normal(size=60)
Z = RANDOM.normal(size=(7, 2))
NOISE, SK_NOISE = White(0.05), sk.WhiteKernel(0.05)
PAIRS = [
    (2.0 * RBF((0.7, 1.3)) + NOISE, sk.ConstantKernel(2.0) * sk.RBF([0.7, 1.3]) + SK_NOISE),
    (Matern(1.2, nu=0.5) + NOISE, sk.Matern(1.2, nu=0.5) + SK_NOISE),
    (Matern(1.2, nu=1.5) + NOISE, sk.Matern(1.2, nu=1.5) + SK_NOISE),
    (
        Matern(1.2) * Linear(0.5) + NOISE + Constant(0.3),
        sk.Matern(1.2, nu=2.5) * sk.ConstantKernel(0.5) * sk.DotProduct(1e-9)
        + SK_NOISE
        + sk.ConstantKernel(0.3),
    ),
    (RationalQuadratic(0.8, alpha=0.6) + NOISE, sk.RationalQuadratic(0.8, 0.6) + SK_NOISE),
]


def fixed(kernel, rows=X, y=Y, **settings):
    return GaussianProcessRegressor(kernel=kernel, learn=False, normalize_y=False, **settings).fit(
        rows, y
    )


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda k: type(k).__name__)
def test_predictions_and_likelihood_equal_scikit_learn_s(ours, theirs):
    model = fixed(ours)
    other = SkRegressor(theirs, alpha=0, optimizer=None).fit(X, Y)
    for mine, his in zip(
        model.predict(Z, return_std=True), other.predict(Z, return_std=True), strict=True
    ):
        np.testing.assert_allclose(mine, his, atol=1e-10)
    cov, his = model.predict(Z, return_cov=True)[1], other.predict(Z, return_cov=True)[1]
    np.testing.assert_allclose(cov, his, atol=1e-10)
    wanted = other.log_marginal_likelihood_value_
    assert model.log_marginal_likelihood() == pytest.approx(wanted, abs=1e-9)


def test_the_periodic_kernel_equals_scikit_learn_s_on_one_column():
    ours, theirs = Periodic(0.7, period=1.3), sk.ExpSineSquared(0.7, 1.3)
    np.testing.assert_allclose(ours(X[:, :1]), theirs(X[:, :1]), atol=1e-12)
    two = Periodic(0.7, period=1.3)(X)  # a product over columns: a kernel in any dimension
    np.testing.assert_allclose(two, ours(X[:, :1]) * ours(X[:, 1:]), atol=1e-12)
    assert np.linalg.eigvalsh(two).min() > -1e-10


def test_the_equations_of_the_notes():
    kernel = 1.5 * RBF(0.8) + White(0.1)
    k = lambda a, b: 1.5 * np.exp(-((a[:, None] - b) ** 2).sum(-1) / 2 / 0.64)  # noqa: E731
    inverse = np.linalg.inv(k(X, X) + 0.1 * np.eye(60))
    mean, std = fixed(kernel).predict(Z, return_std=True)
    np.testing.assert_allclose(mean, k(Z, X) @ inverse @ Y, atol=1e-12)
    wanted = 1.5 + 0.1 - np.einsum("ij,jk,ik->i", k(Z, X), inverse, k(Z, X))
    np.testing.assert_allclose(std**2, wanted, atol=1e-12)
    model = GaussianProcessRegressor(kernel=kernel, learn=False).fit(X, 100 + 10 * Y)
    m, s = 100 + 10 * Y.mean(), 10 * Y.std()  # y is standardised, and put back
    mean, cov = model.predict(Z, return_cov=True)
    np.testing.assert_allclose(mean, m + k(Z, X) @ inverse @ (100 + 10 * Y - m), atol=1e-10)
    wanted = k(Z, Z) + 0.1 * np.eye(7) - k(Z, X) @ inverse @ k(X, Z)
    np.testing.assert_allclose(cov, s**2 * wanted, atol=1e-9)


def test_without_noise_it_goes_through_the_points():
    x = np.linspace(0, 3, 8)[:, None]
    model = fixed(Constant(1.0) * RBF(0.6), x, np.sin(3 * x[:, 0]))
    mean, std = model.predict(x, return_std=True)
    np.testing.assert_allclose(mean, np.sin(3 * x[:, 0]), atol=1e-9)
    assert std.max() < 1e-6
    assert model.predict([[1.7]], return_std=True)[1][0] > 1e-3


@pytest.mark.parametrize(
    "kernel",
    [
        Constant(0.7) * RBF((0.7, 1.3)) + White(0.05),
        (Matern(0.9, nu=1.5) + Linear(0.4)) * Periodic(1.1, period=2.0) + White(0.1),
        RationalQuadratic(0.8, alpha=0.6, ard=True) + White(0.05),
    ],
    ids=["rbf", "algebra", "rational"],
)
@pytest.mark.parametrize("weight", [None, np.arange(60) % 3 + 1.0], ids=["plain", "weighted"])
def test_the_gradient_of_the_marginal_likelihood(kernel, weight, monkeypatch):
    monkeypatch.setattr(kernel_matrix, "ENTRIES", 1)  # blocks of 64 rows: here one, see below
    model = GaussianProcessRegressor(kernel=kernel, learn=False).fit(X, Y, weight)
    theta = model.kernel_.theta(2).numpy()
    value, slope = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood(), abs=1e-9)
    for i, step in enumerate(1e-5 * np.eye(len(theta))):
        ends = [model.log_marginal_likelihood(theta + s * step) for s in (1, -1)]
        assert slope[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-6)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.7), RBF((0.7, 1.3)), Matern(0.8, nu=0.5), Matern(0.8, nu=1.5, ard=True), Matern(1.4),
        RationalQuadratic(0.8, alpha=0.6), Periodic(1.1, period=2.0, ard=True), Linear(0.4),
        (Constant(0.5) + White(0.2)) * (Matern(0.9) + White(0.3)),
    ],
    ids=repr,
)  # fmt: skip
def test_pulls_equal_automatic_differentiation_at_many_settings(kernel):
    start, noise = kernel.theta(2), torch.from_numpy(RANDOM.normal(size=(3, 9)))
    theta = (start + 0.3 * noise[:, : len(start)]).requires_grad_()
    x, z = torch.from_numpy(X[:9]), torch.from_numpy(Z)
    slope = torch.from_numpy(RANDOM.normal(size=(3, 9, 7)))
    for (found, pull), G in [
        (kernel.cross_and_pull(theta, x, z), slope),
        (kernel.diag_and_pull(theta, x), slope[..., 0]),
        (kernel.diag_and_pull(theta, x, noise=False), slope[..., 1]),
    ]:
        ask = kernel.cross(theta, x, z) if G.ndim == 3 else found
        if not ask.requires_grad:  # by automatic differentiation itself, or it is constant
            ask = kernel.diag(theta, x, noise=False) + 0 * theta.sum(dim=1, keepdim=True)
        total = (ask * G).sum()
        (wanted,) = torch.autograd.grad(total, theta)
        torch.testing.assert_close(pull(G).detach(), wanted, atol=1e-11, rtol=1e-9)


def test_blocks_of_rows_change_nothing(monkeypatch):
    rows = RANDOM.normal(size=(150, 2))
    y = np.sin(rows.sum(axis=1))
    kernel = RBF((0.9, 0.8)) + White(0.1)
    whole = fixed(kernel, rows, y)
    wanted = whole.log_marginal_likelihood(whole.kernel_.theta(2).numpy(), eval_gradient=True)
    monkeypatch.setattr(kernel_matrix, "ENTRIES", 1)
    parts = fixed(kernel, rows, y)
    found = parts.log_marginal_likelihood(whole.kernel_.theta(2).numpy(), eval_gradient=True)
    assert found[0] == pytest.approx(wanted[0], abs=1e-10)
    np.testing.assert_allclose(found[1], wanted[1], atol=1e-9)


def test_learning_finds_the_true_length_scale_and_noise():
    random = np.random.default_rng(1)
    rows = random.uniform(0, 20, (300, 1))
    K = np.exp(-((rows - rows.T) ** 2) / 2 / 0.7**2) + 0.04 * np.eye(300)
    y = np.linalg.cholesky(K) @ random.normal(size=300)
    model = GaussianProcessRegressor(normalize_y=False, random_state=0).fit(rows, y)
    assert model.kernel_.left.right.length_scale[0] == pytest.approx(0.7, rel=0.15)
    assert model.kernel_.right.variance == pytest.approx(0.04, rel=0.3)
    theirs = SkRegressor(
        sk.ConstantKernel() * sk.RBF(1.0) + sk.WhiteKernel(0.1), n_restarts_optimizer=1,
        random_state=0,
    ).fit(rows, y)  # fmt: skip
    assert model.log_marginal_likelihood() > theirs.log_marginal_likelihood_value_ - 0.01
    assert model.kernel_.left.right.length_scale[0] == pytest.approx(
        theirs.kernel_.k1.k2.length_scale, rel=0.01
    )
    for scale in (0.3, 2.0):
        other = model.kernel_.theta(1).numpy()
        other[1] = np.log(scale)
        assert model.log_marginal_likelihood(other) < model.log_marginal_likelihood() - 10


def test_restarts_leave_a_bad_start_behind():
    bad = Constant(1.0) * RBF(1e-3) + White(1.0)  # all noise
    stuck = GaussianProcessRegressor(kernel=bad, restarts=0, random_state=0).fit(X, Y)
    free = GaussianProcessRegressor(kernel=bad, restarts=20, random_state=0).fit(X, Y)
    assert free.log_marginal_likelihood() > stuck.log_marginal_likelihood() + 20


def test_the_curvature_of_an_earlier_climb_saves_steps():
    H, c = np.diag([100.0, 1.0, 0.01]) + 0.005, np.array([1.0, -2.0, 3.0])
    asked = []

    def value(theta):
        asked.append(theta)
        return -0.5 * (theta - c) @ H @ (theta - c), -H @ (theta - c)

    settings = {"steps": 100, "tol": 1e-12, "bounds": [(-9.0, 9.0)] * 3}
    plain = climb(value, np.zeros(3), **settings)
    np.testing.assert_allclose(plain.theta, c, atol=1e-2)
    alone = len(asked)
    known = climb(value, np.zeros(3), **settings, metric=np.linalg.inv(H))
    np.testing.assert_allclose(known.theta, c, atol=1e-4)
    assert len(asked) - alone < 8 < alone
    settings["bounds"] = [(-9.0, 9.0), (-1.5, 9.0), (-9.0, 9.0)]
    assert climb(value, np.zeros(3), **settings, metric=np.linalg.inv(H)).theta[1] == -1.5


def test_a_climb_on_a_quarter_of_the_rows_first_ends_as_high(monkeypatch):
    rows, y = np.tile(X, (4, 1)) + 0.1 * RANDOM.normal(size=(240, 2)), np.tile(Y, 4)
    whole = GaussianProcessRegressor(restarts=0).fit(rows, y).log_marginal_likelihood_
    monkeypatch.setattr("castalia.models.kernel.gaussian_process_regressor.FEW", 20)
    staged = GaussianProcessRegressor(restarts=0, random_state=0).fit(rows, y)
    assert staged.log_marginal_likelihood_ == pytest.approx(whole, abs=0.02)


def test_leaving_a_row_out_is_refitting_without_it():
    model = GaussianProcessRegressor(
        kernel=RBF(1.0) + White(0.05), learn=False, normalize_y=False
    ).fit(X, Y)
    mean, std = model.leave_one_out()
    for i in (0, 17, 59):
        rest = np.arange(60) != i
        one = fixed(RBF(1.0) + White(0.05), X[rest], Y[rest]).predict(X[[i]], return_std=True)
        assert (mean[i], std[i]) == pytest.approx((one[0][0], one[1][0]), abs=1e-9)


def test_intervals_hold_what_they_promise():
    random = np.random.default_rng(2)
    rows = random.uniform(-3, 3, (400, 1))
    y = np.sin(2 * rows[:, 0]) + 0.2 * random.normal(size=400)
    model = GaussianProcessRegressor(random_state=0).fit(rows[:150], y[:150])
    low, high = model.predict_interval(rows[150:], 0.8)
    held = ((y[150:] > low) & (y[150:] < high)).mean()
    assert 0.7 < held < 0.9
    normal = model.log_likelihood(rows[150:], y[150:]).mean()
    assert normal == pytest.approx(-0.5 * np.log(2 * np.pi * np.e * 0.04), abs=0.15)
    draws = model.sample_y(rows[:5], 4000)
    mean, std = model.predict(rows[:5], return_std=True)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=0.02)
    np.testing.assert_allclose(draws.std(axis=1), std, rtol=0.06)


@pytest.mark.parametrize(
    "model",
    [
        GaussianProcessRegressor(kernel=RBF(0.8) + White(0.1), learn=False),
        SparseGaussianProcess(
            kernel=RBF(0.8) + White(0.1), learn=False, inducing=9, random_state=0
        ),
        GaussianProcessClassifier(kernel=RBF(0.8), learn=False),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_weight_is_a_number_of_repetitions(model):
    times = np.arange(60) % 4  # rows of weight 0 are left out
    y = (Y > 0).astype(int) if isinstance(model, GaussianProcessClassifier) else Y
    ask = "predict_proba" if isinstance(model, GaussianProcessClassifier) else "predict"
    weighted = getattr(model.fit(X, y, times.astype(float)), ask)(Z)
    evidence = getattr(model, "log_marginal_likelihood_", getattr(model, "elbo_", None))
    repeated = getattr(model.fit(X.repeat(times, axis=0), y.repeat(times)), ask)(Z)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)
    same = getattr(model, "log_marginal_likelihood_", getattr(model, "elbo_", None))
    assert evidence == pytest.approx(same, abs=1e-4)


def test_several_targets_share_a_kernel():
    both = np.stack([Y, 100 + 10 * Y], axis=1)
    model = GaussianProcessRegressor(kernel=RBF(1.0) + White(0.05), learn=False).fit(X, both)
    mean, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(mean[:, 1], 100 + 10 * mean[:, 0], atol=1e-9)
    np.testing.assert_allclose(std[:, 1], 10 * std[:, 0], atol=1e-9)
    assert model.sample_y(Z, 3).shape == (7, 2, 3)


def test_bad_kernels_and_rows_are_refused():
    twins = np.array([[0.0], [1.0], [1.0]])
    with pytest.raises(InvalidData, match="rows 1 and 2 of X are equal and their y differ.*White"):
        fixed(RBF(1.0), twins, [0.0, 1.0, 2.0])
    with pytest.warns(TrainingWarning, match="not positive definite, so .* was added"):
        fixed(RBF(1.0), twins, [0.0, 1.0, 1.0])
    with pytest.raises(ShapeMismatch, match="one entry for each of 2 columns; got 3"):
        fixed(RBF((1.0, 1.0, 1.0)))
    with pytest.raises(InvalidParameter, match="hyperparameters must be above 0"):
        fixed(RBF(-1.0))
    with pytest.raises(InvalidParameter, match="`nu` must be 0.5, 1.5 or 2.5"):
        fixed(Matern(1.0, nu=2.0))
    with pytest.raises(InvalidParameter, match="must be a kernel or a number above 0"):
        RBF() + "white"
    with pytest.raises(InvalidParameter, match="`level` must lie between 0 and 1"):
        fixed(RBF() + White()).predict_interval(X, 1.5)
    with pytest.raises(InvalidParameter, match="must have White noise among its terms"):
        SparseGaussianProcess(kernel=RBF()).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fixed(RBF(1.0) + White(0.1), twins, [0.0, 1.0, 2.0])


@pytest.mark.parametrize("kind", [GaussianProcessRegressor, GaussianProcessClassifier, KernelRidge])
def test_more_rows_than_memory_holds_are_refused_before_anything_is_tried(kind, monkeypatch):
    monkeypatch.setattr(kernel_matrix, "_memory", lambda: 1000)
    with pytest.raises(InvalidData, match="rows need matrices of .* Use SparseGaussianProcess"):
        kind(device="cpu").fit(np.eye(8), np.arange(8) % 2)


def test_a_kernel_reads_as_it_is_written_and_can_be_searched():
    kernel = RBF(2.0) * Periodic() + Linear()
    assert repr(kernel).startswith("RBF(length_scale=2, ard=False) * Periodic(")
    assert repr((RBF() + White()) * 2.0).startswith("(RBF(")
    model = GaussianProcessRegressor(kernel=kernel)
    model.set_params(kernel__left__left__length_scale=3.0)
    assert model.kernel.left.left.length_scale == 3.0


# -- classification --


@pytest.fixture(scope="module")
def classes():
    return (Y + 0.3 * np.random.default_rng(0).normal(size=60) > 0.2).astype(int)


def test_the_classifier_s_likelihood_and_latent_mean_equal_scikit_learn_s(classes):
    ours = GaussianProcessClassifier(kernel=Constant(2.0) * RBF(1.1), learn=False).fit(X, classes)
    kernel = sk.ConstantKernel(2.0) * sk.RBF(1.1)
    theirs = SkClassifier(kernel, optimizer=None).fit(X, classes)
    wanted = theirs.log_marginal_likelihood_value_
    assert ours.log_marginal_likelihood() == pytest.approx(wanted, abs=1e-8)
    inner = theirs.base_estimator_
    latent = kernel(Z, X) @ (inner.y_train_ - inner.pi_)
    np.testing.assert_allclose(ours.latent(Z)[0][:, 0], latent, atol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=2e-3)


def test_the_gradient_of_laplace_s_likelihood(classes):
    weight = np.arange(60) % 2 + 1.0
    three = classes + (X[:, 1] > 0.8)
    model = GaussianProcessClassifier(kernel=Constant(2.0) * RBF((1.1, 0.7)), learn=False)
    model.fit(X, three, weight)
    theta = model.kernel_.theta(2).numpy()
    _, slope = model.log_marginal_likelihood(theta, eval_gradient=True)
    for i, step in enumerate(1e-4 * np.eye(3)):
        ends = [model.log_marginal_likelihood(theta + s * step) for s in (1, -1)]
        assert slope[i] == pytest.approx((ends[0] - ends[1]) / 2e-4, abs=1e-5)


def test_the_classifier_learns_its_kernel_and_knows_its_limits(classes):
    start = GaussianProcessClassifier(learn=False).fit(X, classes).log_marginal_likelihood_
    model = GaussianProcessClassifier(random_state=0).fit(X, classes)
    theirs = SkClassifier(sk.ConstantKernel(4.0) * sk.RBF(1.4)).fit(X, classes)
    assert model.log_marginal_likelihood_ > max(start, theirs.log_marginal_likelihood_value_ - 0.01)
    far = model.predict_proba([[100.0, 100.0]])[0]
    assert far == pytest.approx([0.5, 0.5], abs=0.01)


# -- inducing points --


def test_a_point_at_every_row_is_the_exact_process():
    kernel = 1.5 * RBF(0.9) + White(0.05)
    sparse = SparseGaussianProcess(kernel=kernel, inducing=60, learn=False, normalize_y=False)
    sparse.fit(X, Y)
    exact = fixed(kernel)
    assert sparse.elbo_ == pytest.approx(exact.log_marginal_likelihood(), abs=1e-3)
    for mine, his in zip(
        sparse.predict(Z, return_std=True), exact.predict(Z, return_std=True), strict=True
    ):
        np.testing.assert_allclose(mine, his, atol=1e-4)


def test_the_bound_is_below_the_likelihood_and_rises_with_points():
    kernel = 1.5 * RBF(0.9) + White(0.05)
    bounds = [
        SparseGaussianProcess(
            kernel=kernel, inducing=m, learn=False, normalize_y=False, random_state=0
        ).fit(X, Y).elbo_
        for m in (5, 15, 30)
    ]  # fmt: skip
    assert bounds == sorted(bounds)
    assert bounds[-1] < fixed(kernel).log_marginal_likelihood()


def test_few_points_do_for_many_rows(monkeypatch):
    monkeypatch.setattr("castalia.models.kernel.sparse_gaussian_process.ROWS", 500)
    random = np.random.default_rng(0)
    rows = random.uniform(-3, 3, (1500, 1))
    y = np.sin(3 * rows[:, 0]) + 0.1 * random.normal(size=1500)
    model = SparseGaussianProcess(inducing=20, steps=20, random_state=0).fit(rows[:1200], y[:1200])
    assert model.score(rows[1200:], y[1200:]) > 0.96
    low, high = model.predict_interval(rows[1200:], 0.9)
    assert 0.83 < ((y[1200:] > low) & (y[1200:] < high)).mean() < 0.96
