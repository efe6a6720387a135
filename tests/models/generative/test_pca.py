import numpy as np
import pytest
import torch
from sklearn import decomposition

import castalia
from castalia import PCA
from castalia.errors import InvalidParameter

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 3)) @ RANDOM.normal(size=(3, 6)) + 0.3 * RANDOM.normal(size=(300, 6))


@pytest.mark.parametrize("solver", ["full", "covariance", "randomized"])
def test_components_variances_and_densities_are_those_of_scikit_learn(solver):
    ours = PCA(components=3, solver=solver, random_state=0).fit(X)
    theirs = decomposition.PCA(3, svd_solver="full").fit(X)
    for name in ("mean_", "explained_variance_", "explained_variance_ratio_", "singular_values_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6)
    signs = np.sign((ours.components_ * theirs.components_).sum(axis=1))
    np.testing.assert_allclose(ours.components_, signs[:, None] * theirs.components_, atol=1e-5)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-5)


def test_the_error_is_the_sum_of_the_squared_singular_values_left_out():  # Eckart, Young
    model = PCA(components=2).fit(X)
    error = np.square(X - model.inverse_transform(model.transform(X))).sum()
    left = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[2:]
    assert error == pytest.approx(np.square(left).sum(), rel=1e-9)


def test_rows_added_part_by_part_give_the_components_of_all():
    parts = PCA(components=3)
    for start in range(0, 300, 77):
        parts.partial_fit(X[start : start + 77])
    whole = PCA(components=3, solver="full").fit(X)
    np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-8)
    np.testing.assert_allclose(parts.explained_variance_, whole.explained_variance_)


def test_whitened_codes_have_deviation_one_and_come_back():
    model = PCA(components=6, whiten=True).fit(X)
    codes = model.transform(X)
    np.testing.assert_allclose(codes.std(axis=0, ddof=1), 1, rtol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(codes), X, atol=1e-9)


def test_samples_have_the_covariance_of_the_model():
    model = PCA(components=2, random_state=0).fit(X)
    found = np.cov(model.sample(20_000), rowvar=False)
    wanted = decomposition.PCA(2).fit(X).get_covariance()
    assert np.abs(found - wanted).max() < 0.05 * np.abs(wanted).max()


def test_tensors_stay_tensors_of_their_format():
    model = PCA(components=2).fit(torch.from_numpy(X).float())
    assert model.components_.dtype == np.float32


def test_more_components_than_columns_are_refused():
    with pytest.raises(InvalidParameter, match="`components` must be at most 6.*got 9"):
        PCA(components=9).fit(X)


def test_a_model_that_was_saved_goes_on_where_it_ended(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 4)) @ np.diag([3.0, 2.0, 1.0, 0.5])
    castalia.save(PCA(components=2).partial_fit(X[:100]), tmp_path / "model")
    resumed = castalia.load(tmp_path / "model").partial_fit(X[100:])
    assert resumed.n_samples_ == 300
    assert np.allclose(resumed.components_, PCA(components=2).fit(X).components_)
