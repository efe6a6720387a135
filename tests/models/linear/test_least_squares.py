"""Least squares: equal to scikit-learn's, on good problems and on bad ones."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn import linear_model as reference

from castalia import Lasso, LinearRegression, Ridge, Training
from castalia.errors import DataWarning, Diverged, InvalidData, InvalidParameter

SILENT = {"singular": "min_norm"}


def problem(kind: str) -> np.ndarray:
    """Rows whose columns are independent, or not, or of very different size."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 5)) + [0.0, 10.0, 100.0, 0.0, -3.0]
    if kind == "wide":
        return random.normal(size=(10, 30))
    if kind == "square":
        return random.normal(size=(6, 6))
    if kind == "collinear":
        X[:, 4] = X[:, 0] + 2 * X[:, 1]
    if kind == "constant":
        X[:, 2] = 7.3
    if kind == "repeated rows":
        X = np.repeat(X[:3], 20, axis=0)
    if kind == "scales":
        X = X * [1, 1e5, 1e-5, 1, 1]
    if kind == "far from zero":
        X = X + 1e5
    return X


def targets(X: np.ndarray) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(len(X), 2)) + X[:, :1] - 5


KINDS = (
    *("random", "wide", "square", "collinear", "constant"),
    *("repeated rows", "scales", "far from zero"),
)


def same(found, expected, X, tolerance=1e-8):
    """Coefficients agree, each measured in the units of its column."""
    unit = np.abs(X).max(axis=0) + 1e-300
    size = np.abs(expected.coef_ * unit).max()
    np.testing.assert_allclose(found.coef_ * unit, expected.coef_ * unit, atol=tolerance * size)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=tolerance * size)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("intercept", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize("kind", KINDS)
def test_coefficients_are_those_of_scikit_learn(kind, intercept, weighted):
    X = problem(kind)
    Y, weight = targets(X), np.random.default_rng(2).random(len(X)) if weighted else None
    ours = LinearRegression(fit_intercept=intercept, **SILENT).fit(X, Y, weight)
    # Its own cut-off, 1e-6 in the units given, would drop the small columns of "scales".
    theirs = reference.LinearRegression(fit_intercept=intercept, tol=1e-13).fit(X, Y, weight)
    same(ours, theirs, X)
    assert ours.rank_ == theirs.rank_


@pytest.mark.parametrize("intercept", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_give_what_dense_rows_give(kind, intercept):
    X = problem(kind)
    Y, weight = targets(X), np.random.default_rng(2).random(len(X))
    model = LinearRegression(fit_intercept=intercept, **SILENT)
    dense = model.fit(X, Y, weight).predict(X)
    found = model.fit(sp.csr_matrix(X), Y, weight).predict(sp.csr_matrix(X))
    np.testing.assert_allclose(found, dense, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", ["random", "wide", "collinear", "constant"])
def test_float32_rows_give_float32_coefficients_close_to_those_of_float64(kind):
    X = problem(kind).astype(np.float32)
    y = targets(X)[:, 0]
    ours = LinearRegression(**SILENT).fit(X, y)
    theirs = reference.LinearRegression().fit(X.astype(np.float64), y)
    assert ours.coef_.dtype == np.float32
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)


def test_a_very_wide_sparse_problem_gets_the_solution_of_smallest_norm():
    X = sp.random(40, 4000, density=0.05, random_state=0, format="csr")
    y = np.random.default_rng(0).normal(size=40)
    with pytest.warns(DataWarning, match="rank 39 of 4000 columns"):
        ours = LinearRegression().fit(X, y)
    theirs = reference.LinearRegression(tol=1e-13).fit(X.toarray(), y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)


def test_a_tensor_is_fitted_as_the_array_it_holds():
    X = problem("random")
    y = targets(X)[:, 0]
    array, tensor = (
        LinearRegression().fit(X, y),
        LinearRegression().fit(torch.from_numpy(X), torch.from_numpy(y)),
    )
    np.testing.assert_array_equal(array.coef_, tensor.coef_)
    np.testing.assert_allclose(tensor.predict(torch.from_numpy(X)), array.predict(X))


def test_a_column_in_tiny_units_is_not_taken_for_zero():
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 3)) * [1.0, 1e-12, 1e12]
    w = np.array([2.0, 3e12, 4e-12])
    model = LinearRegression(singular="raise").fit(X, X @ w + 1)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-9)
    assert model.intercept_ == pytest.approx(1, abs=1e-9)


def test_an_ill_conditioned_problem_keeps_the_digits_the_normal_equations_lose():
    x = np.linspace(0, 1, 200)[:, None]
    X = x ** np.arange(1, 9)  # condition number about 1e8: its square leaves nothing of float64
    w = np.arange(1.0, 9.0)
    model = LinearRegression(singular="raise").fit(X, X @ w)
    naive = np.linalg.solve(X.T @ X, X.T @ (X @ w))
    assert np.abs(model.coef_ - w).max() < 1e-5 < np.abs(naive - w).max()
    assert model.condition_ > 1e5


@pytest.mark.parametrize("kind, rank", [("wide", 9), ("collinear", 4), ("constant", 4)])
def test_a_singular_system_says_so_with_its_rank_and_condition(kind, rank):
    X = problem(kind)
    y = targets(X)[:, 0]
    said = rf"LinearRegression: .*rank {rank} of {X.shape[1]} columns \({len(X)} rows, condition"
    with pytest.warns(DataWarning, match=said):
        LinearRegression().fit(X, y)
    with pytest.raises(InvalidData, match=said):
        LinearRegression(singular="raise").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LinearRegression(singular="min_norm").fit(X, y).rank_ == rank


def test_nearly_equal_columns_are_one_when_tol_says_so():
    X = problem("random")
    X[:, 4] = X[:, 0] + 1e-8 * X[:, 4]
    y = targets(X)[:, 0]
    assert LinearRegression().fit(X, y).rank_ == 5
    cut = LinearRegression(tol=1e-6, **SILENT).fit(X, y)
    assert cut.rank_ == 4
    assert cut.coef_[0] == pytest.approx(cut.coef_[4], rel=1e-4)


def test_an_epoch_of_the_whole_batch_is_one_step_of_gradient_descent():
    X, y = problem("square"), targets(problem("square"))[:, 0]
    model = LinearRegression(solver="gd", epochs=1, lr=0.1).fit(X, y)
    np.testing.assert_allclose(model.coef_, 0.1 * 2 * X.T @ y / len(y))
    assert model.intercept_ == pytest.approx(0.1 * 2 * y.mean())
    assert len(model.history_) == 1


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_stochastic_gradient_descent_comes_near_the_direct_solution(sparse):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 3))
    Y = X @ random.normal(size=(3, 2)) + 2
    settings = {"solver": "sgd", "epochs": 30, "lr": 0.05, "random_state": 0}
    model = LinearRegression(**settings).fit(sp.csr_matrix(X) if sparse else X, Y)
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, Y).coef_, atol=1e-3)


def test_descent_honours_the_training_record_and_sample_weights():
    X, y = problem("square"), targets(problem("square"))[:, 0]
    weight = np.array([2.0, 1, 0, 0, 1, 3])
    settings = {"solver": "gd", "epochs": 3, "training": Training(optimizer="adam", verbose=False)}
    weighted = LinearRegression(**settings).fit(X, y, weight)
    repeated = np.repeat(np.arange(6), weight.astype(int))
    plain = LinearRegression(**settings).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.coef_, plain.coef_)
    assert not np.allclose(weighted.coef_, LinearRegression(solver="gd", epochs=3).fit(X, y).coef_)


def test_too_large_a_step_is_named():
    X = problem("random")
    with pytest.raises(Diverged, match="Lower `lr`"):
        LinearRegression(solver="gd", lr=10.0, epochs=200).fit(X, targets(X))


def test_an_unknown_solver_is_named():
    with pytest.raises(InvalidParameter, match=r"`solver` must be `auto`, `gd` or `sgd`; got 'qr'"):
        LinearRegression(solver="qr").fit(problem("random"), np.zeros(60))


def test_the_target_must_be_given():
    with pytest.raises(InvalidData, match="requires y to be passed"):
        LinearRegression().fit(problem("random"))


def test_many_chunks_add_up_to_one(monkeypatch):
    X = problem("far from zero")
    Y, weight = targets(X), np.random.default_rng(2).random(len(X))
    whole = LinearRegression().fit(X, Y, weight)
    monkeypatch.setattr("castalia.models.linear.solvers.design_matrix.CHUNK", {"cpu": 1})
    parts = LinearRegression().fit(X, Y, weight)
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-10)
    X[:, 4] = X[:, 3]
    np.testing.assert_allclose(
        LinearRegression(**SILENT).fit(X, Y, weight).coef_,
        reference.LinearRegression().fit(X, Y, weight).coef_,
        atol=1e-8,
    )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_finds_the_coefficients_of_a_cpu(kind):
    X = problem(kind)
    Y = targets(X)
    cpu = LinearRegression(device="cpu", **SILENT).fit(X, Y)
    gpu = LinearRegression(device="cuda", **SILENT).fit(torch.from_numpy(X).cuda(), Y)
    same(gpu, cpu, X)
    assert gpu.rank_ == cpu.rank_


def test_the_arithmetic_of_a_gpu_is_that_of_a_cpu(monkeypatch):
    """Tensors all the way, as on a GPU, only that they lie on the CPU."""
    monkeypatch.setattr(
        "castalia.models.linear.solvers.design_matrix._placed",
        lambda values, device: torch.as_tensor(values),
    )
    for kind in KINDS:
        X = problem(kind)
        Y, weight = targets(X), np.random.default_rng(2).random(len(X))
        ours = LinearRegression(device="cpu", **SILENT).fit(X, Y, weight)
        theirs = reference.LinearRegression(tol=1e-13).fit(X, Y, weight)
        same(ours, theirs, X)
        ridge = Ridge(alpha=[0.5, 2.0], device="cpu").fit(X, Y, weight)
        same(ridge, reference.Ridge(alpha=[0.5, 2.0], solver="svd").fit(X, Y, weight), X)
        assert np.isfinite(Ridge(alpha=1.0, device="cpu").loo_residuals(X, Y, weight)).all()
    X = np.random.default_rng(0).normal(size=(40, 300))
    y = X[:, 0] - X[:, 1]
    lasso = Lasso(alpha=0.05, tol=1e-12, device="cpu").fit(X, y)
    theirs = reference.Lasso(alpha=0.05, tol=1e-12, max_iter=10**5).fit(X, y)
    np.testing.assert_allclose(lasso.coef_, theirs.coef_, atol=1e-7)
