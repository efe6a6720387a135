"""Logistic and softmax regression against scikit-learn, on easy and on degenerate problems."""

import math

import numpy as np
import pytest
import sklearn.linear_model as reference
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.multiclass import OneVsRestClassifier

from castalia import Adaline, LinearSVM, LogisticRegression, Perceptron, SoftmaxRegression
from castalia.errors import DataWarning, InvalidParameter
from castalia.models.linear.solvers.affine_design import Affine
from castalia.models.linear.solvers.likelihood_minimiser import newton_by_parts
from castalia.models.linear.solvers.logistic_likelihood import Bernoulli, Categorical


def problem(n=200, d=4, classes=2, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    return random.normal(size=(n, d)) + np.eye(max(classes, d))[y][:, :d], y


def theirs(X, y, weight=None, *, l1_ratio=0.0, **settings):
    solver = "saga" if l1_ratio else "newton-cholesky"
    model = reference.LogisticRegression(
        l1_ratio=l1_ratio, solver=solver, tol=1e-10, max_iter=100_000, **settings
    )
    return model.fit(X, y, weight)


def assert_same(ours, other, atol=1e-6):
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=atol, rtol=atol)
    np.testing.assert_allclose(ours.intercept_, other.intercept_, atol=atol, rtol=atol)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"C": 0.1}, {"C": math.inf}, {"fit_intercept": False}, {"class_weight": "balanced"}],
    ids=["default", "C=0.1", "no penalty", "no intercept", "balanced"],
)
def test_coefficients_equal_scikit_learns(classes, solver, settings):
    X, y = problem(classes=classes)
    ours = LogisticRegression(solver=solver, tol=1e-5, **settings).fit(X, y)
    assert_same(ours, theirs(X, y, **settings))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_absolute_penalties_equal_scikit_learns_and_give_zeros(classes, l1_ratio):
    X, y = problem(classes=classes)
    X = np.column_stack([X, np.random.default_rng(1).normal(size=(len(X), 3))])
    ours = LogisticRegression(C=0.1, l1_ratio=l1_ratio, tol=1e-4).fit(X, y)
    assert_same(ours, theirs(X, y, C=0.1, l1_ratio=l1_ratio), atol=1e-4)
    assert (ours.coef_ == 0).any()


DEGENERATE = {
    "fewer rows than columns": lambda X: np.random.default_rng(2).normal(size=(len(X), 300)),
    "collinear": lambda X: np.column_stack([X, X[:, 0] + X[:, 1], X[:, 0]]),
    "a constant column": lambda X: np.column_stack([X, np.full(len(X), 3.0)]),
    "a column of zeros": lambda X: np.column_stack([X, np.zeros(len(X))]),
    "huge scales": lambda X: X * [1e6, 1e-6, 1e3, 1.0],
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("classes", [2, 3])
def test_coefficients_equal_scikit_learns_on_degenerate_problems(case, classes):
    X, y = problem(classes=classes)
    X = DEGENERATE[case](X)
    ours = LogisticRegression(tol=1e-5).fit(X, y)
    other = theirs(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), other.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_columns_far_from_zero_change_the_intercept_only(classes):
    X, y = problem(classes=classes)
    ours = LogisticRegression().fit(X + 1e4, y)
    np.testing.assert_allclose(ours.coef_, theirs(X, y).coef_, rtol=1e-5)


@pytest.mark.parametrize("case", ["collinear", "a constant column", "a column of zeros"])
@pytest.mark.parametrize("classes", [2, 3])
def test_without_a_penalty_flat_directions_get_the_shortest_coefficients(case, classes):
    X, y = problem(classes=classes)
    X = DEGENERATE[case](X)
    ours = LogisticRegression(C=math.inf).fit(X, y)
    other = reference.LogisticRegression(C=math.inf, tol=1e-9, max_iter=10_000).fit(X, y)
    assert_same(ours, other, atol=1e-4)


def test_sample_weights_equal_scikit_learns():
    X, y = problem(classes=3)
    weight = np.random.default_rng(0).uniform(size=len(y)) * (np.arange(len(y)) % 5 > 0)
    assert_same(LogisticRegression().fit(X, y, weight), theirs(X, y, weight))


@pytest.mark.parametrize("bad, said", [(-1.0, "Negative|at least 0"), (np.nan, "NaN")])
def test_bad_sample_weights_are_refused(bad, said):
    X, y = problem()
    weight = np.ones(len(y))
    weight[3] = bad
    with pytest.raises(ValueError, match=said):
        LogisticRegression().fit(X, y, weight)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_sparse_and_dense_rows_give_the_same_model(classes, solver):
    X, y = problem(classes=classes)
    X = X * (abs(X) > 0.7)
    dense = LogisticRegression(solver=solver).fit(X, y)
    sparse = LogisticRegression(solver=solver).fit(csr_array(X), y)
    assert_same(sparse, dense, atol=1e-8)
    np.testing.assert_allclose(sparse.predict_proba(csr_array(X)), dense.predict_proba(X))


def test_float32_stays_float32_and_a_tensor_is_taken_as_it_is():
    X, y = problem()
    narrow = LogisticRegression().fit(X.astype(np.float32), y)
    assert narrow.coef_.dtype == np.float32
    assert_same(narrow, LogisticRegression().fit(X, y), atol=1e-3)
    assert_same(LogisticRegression().fit(torch.from_numpy(X), torch.from_numpy(y)), theirs(X, y))


@pytest.mark.parametrize("classes", [2, 4])
def test_many_rows_are_solved_from_a_part_of_them_to_the_same_minimum(classes):
    X, y = problem(20_000, 5, classes)
    ours = LogisticRegression(tol=1e-5).fit(X, y)
    assert_same(ours, theirs(X, y), atol=1e-5)


def test_a_part_that_misleads_only_costs_time():
    X, y = problem(6000, 3)
    X[::8] *= -1  # the part that gives the start says the contrary of the rest
    assert_same(LogisticRegression(tol=1e-5).fit(X, y), theirs(X, y), atol=1e-5)


@pytest.mark.parametrize("kind", [Bernoulli, Categorical])
def test_the_gradient_is_that_of_autograd_and_the_hessian_that_of_differences(kind):
    X, y = problem(30, 3, 2 if kind is Bernoulli else 3)
    random = np.random.default_rng(0)
    design = Affine(torch.from_numpy(X), True)
    weight = torch.from_numpy(random.dirichlet(np.ones(30)))
    f = kind(design, torch.from_numpy(y), weight, 0.3, y.max() + 1)
    theta = torch.from_numpy(random.normal(size=(f.outputs, 4))).requires_grad_()
    net = torch.nn.functional.linear(design.X, theta[:, :3], theta[:, 3])
    if kind is Bernoulli:
        rows = torch.nn.functional.binary_cross_entropy_with_logits(
            net[:, 0], f.y.double(), reduction="none"
        )
    else:
        rows = torch.nn.functional.cross_entropy(net, f.y, reduction="none")
    value = weight @ rows + 0.15 * theta[:, :3].square().sum()
    (slope,) = torch.autograd.grad(value, theta)
    found, gradient = f(theta.detach())
    torch.testing.assert_close(found, value.detach())
    torch.testing.assert_close(gradient, slope)
    move = torch.from_numpy(random.normal(size=theta.shape))
    move -= move.mean(dim=0) * (kind is Categorical)  # the Hessian is curved where f is flat
    ahead, back = (f(theta.detach() + sign * 1e-5 * move)[1] for sign in (1, -1))
    curved = f.hessian(theta.detach()) @ move.ravel()
    torch.testing.assert_close(curved, ((ahead - back) / 2e-5).ravel(), atol=1e-7, rtol=1e-5)


def test_the_likelihood_falls_with_every_newton_step():
    X, y = problem()
    values = []

    class Watched(Bernoulli):
        def hessian(self, theta):
            values.append(float(self(theta)[0]))
            return super().hessian(theta)

    design = Affine(torch.from_numpy(X), True)
    weight = torch.full((200,), 1 / 200, dtype=torch.float64)
    f = Watched(design, torch.from_numpy(y), weight, 0.0, 2)
    newton_by_parts(f, design.zeros(1), 1e-3)
    assert len(values) > 3
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_without_a_penalty_are_named(classes):
    X, y = problem(classes=classes)
    X = X + 20 * np.eye(4)[y]
    with pytest.warns(DataWarning, match="perfectly separable, so without a penalty"):
        model = LogisticRegression(C=math.inf).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.score(X, y) == 1.0


def test_softmax_regression_is_symmetric_and_predicts_what_logistic_regression_does():
    X, y = problem()
    two = SoftmaxRegression(C=0.5, tol=1e-5).fit(X, y)
    one = LogisticRegression(C=1.0, tol=1e-5).fit(X, y)
    assert two.coef_.shape == (2, 4)
    np.testing.assert_allclose(two.coef_.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(two.predict_proba(X), one.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(two.distance(X), one.distance(X), atol=1e-6)
    X, y = problem(classes=3)
    assert_same(SoftmaxRegression(tol=1e-5).fit(X, y), theirs(X, y))


def test_softmax_regression_is_at_least_as_good_as_one_against_all_on_the_digits():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    softmax = SoftmaxRegression().fit(X[:1000], y[:1000])
    each = OneVsRestClassifier(LogisticRegression()).fit(X[:1000], y[:1000])
    assert softmax.score(X[1000:], y[1000:]) >= each.score(X[1000:], y[1000:]) > 0.85


@pytest.mark.parametrize("model", [LogisticRegression, SoftmaxRegression])
@pytest.mark.parametrize("solver, lr, epochs", [("gd", 0.5, 200), ("sgd", 0.05, 50)])
def test_descent_by_the_loop_comes_to_the_same_boundary(model, solver, lr, epochs):
    X, y = problem(400)
    direct = model().fit(X, y)
    trained = model(solver=solver, lr=lr, epochs=epochs, random_state=0).fit(X, y)
    atol = 0.01 if solver == "gd" else 0.1
    np.testing.assert_allclose(trained.predict_proba(X), direct.predict_proba(X), atol=atol)


def test_the_loop_honours_the_penalty_and_the_intercept():
    X, y = problem(400)
    settings = {"C": 0.01, "fit_intercept": False}
    trained = LogisticRegression(solver="gd", lr=0.5, epochs=500, **settings).fit(X, y)
    assert_same(trained, theirs(X, y, **settings), atol=1e-3)


def test_parts_of_the_data_can_be_learnt_one_after_the_other():
    X, y = problem(2000)
    model = LogisticRegression(solver="sgd", lr=0.1, random_state=0)
    for rows in np.array_split(np.arange(2000), 10):
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert model.score(X, y) > theirs(X, y).score(X, y) - 0.02
    assert not hasattr(LogisticRegression(), "partial_fit")


def test_a_warm_start_needs_fewer_steps():
    X, y = problem(500, 6)
    model = LogisticRegression(solver="lbfgs", warm_start=True).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first


def test_log_probabilities_do_not_underflow():
    X, y = problem()
    model = LogisticRegression().fit(X, y)
    far = model.predict_log_proba(X * 1e5)
    assert np.isfinite(far).all()
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))


def test_a_solver_that_cannot_do_the_penalty_is_named():
    with pytest.raises(InvalidParameter, match="`solver` must be 'auto' or 'lbfgs' when"):
        LogisticRegression(solver="newton", l1_ratio=0.5).fit(*problem())


def test_class_weights_that_name_no_class_are_refused():
    with pytest.raises(InvalidParameter, match=r"got 'cat', which is not one of \[0, 1\]"):
        LogisticRegression(class_weight={"cat": 2.0}).fit(*problem())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(device="cuda"),
        LogisticRegression(device="cuda", solver="lbfgs"),
        SoftmaxRegression(device="cuda"),
        LinearSVM(device="cuda", alpha=0.01),
        Adaline(device="cuda", random_state=0),
        Perceptron(device="cuda"),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'solver', '')}",
)
def test_the_gpu_finds_the_coefficients_of_the_cpu(model):
    X, y = problem(classes=3)
    on_cpu = clone(model).set_params(device="cpu").fit(X, y)
    assert_same(clone(model).fit(torch.from_numpy(X).cuda(), y), on_cpu, atol=1e-5)
    assert_same(model.fit(X, y), on_cpu, atol=1e-5)


def test_class_weights_must_be_numbers():
    with pytest.raises(InvalidParameter, match="numbers of at least 0; got {1: 'a'}"):
        LogisticRegression(class_weight={1: "a"}).fit([[0.0], [1.0]], [0, 1])
