"""Random Fourier features as a transformer."""

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline

from castalia import LinearRegression, RandomFourierFeatures, Ridge
from castalia.testing.toys import sine


def test_more_frequencies_meet_the_kernel_better():
    X = np.random.default_rng(0).normal(size=(60, 3))
    exact = RBF(1.5)(X)

    def error(n):
        phi = RandomFourierFeatures(n_frequencies=n, length_scale=1.5, random_state=0)
        phi = phi.fit_transform(X)
        return np.abs(phi @ phi.T - exact).mean()

    assert error(20_000) < 0.008
    assert 5 < error(200) / error(20_000) < 20  # as 1 / sqrt(M)


def test_kinds_of_rows_get_the_same_features():
    X = np.random.default_rng(0).normal(size=(6, 3))
    maps = RandomFourierFeatures(n_frequencies=5, random_state=0).fit(X)
    phi = maps.transform(X)
    np.testing.assert_allclose(maps.transform(sp.csr_matrix(X)), phi)
    tensor = maps.transform(torch.from_numpy(X))
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_allclose(tensor.numpy(), phi)
    np.testing.assert_allclose(maps.module_(torch.from_numpy(X)).numpy(), phi)
    assert maps.transform(X.astype(np.float32)).dtype == np.float32
    assert len(maps.get_feature_names_out()) == 10


def test_a_linear_model_on_the_features_bends():
    X, y = sine()
    bent = make_pipeline(RandomFourierFeatures(random_state=0), Ridge(alpha=1e-3))
    assert bent.fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.95
    assert LinearRegression().fit(X[:400], y[:400]).score(X[400:], y[400:]) < 0.7


def test_the_score_is_one_for_a_perfect_kernel_and_falls_without_one():
    X = np.random.default_rng(0).normal(size=(40, 2))
    many = RandomFourierFeatures(n_frequencies=20_000, random_state=0).fit(X)
    few = RandomFourierFeatures(n_frequencies=5, random_state=0).fit(X)
    assert few.score(X) < 0.9 < 0.999 < many.score(X)
