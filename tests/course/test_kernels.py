"""Clusters without labels, and random waves that stand for a kernel."""

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from castalia import GaussianMixture, KMeans, RandomFeatureRegression
from castalia.nn import draw_frequencies, fourier_features

SIZES = (3, 5, 10, 15, 19, 20, 21, 25, 40, 100, 200)


def planted(n=900, seed=0):
    """Five clouds in four dimensions whose centres lie six deviations apart and more."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 5
    centers = 6 * np.eye(5, 4)
    return centers[y] + random.normal(size=(n, 4)), y


@pytest.mark.parametrize(
    "model",
    [KMeans(n_clusters=5, random_state=0), GaussianMixture(n_components=5, random_state=0)],
    ids=["k-means", "mixture"],
)
def test_planted_clusters_are_found_without_labels(model):
    X, y = planted()
    labels = model.fit(X).predict(planted(seed=1)[0])
    assert adjusted_rand_score(y, labels) > 0.95


def test_the_error_of_the_kernel_falls_with_the_root_of_the_number_of_waves():
    source = torch.Generator().manual_seed(0)
    x = torch.randn(60, 3, generator=source, dtype=torch.float64)
    kernel = torch.exp(-torch.cdist(x, x).square() / 2)

    def error(count):
        phi = fourier_features(x, draw_frequencies(3, count, generator=source))
        return (phi @ phi.T - kernel).square().mean().sqrt().item()

    few, many = (np.mean([error(m) for _ in range(20)]) for m in (100, 10_000))
    assert few / many == pytest.approx(10, rel=0.1)
    assert many < 0.01


def forty_rows(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(440, 3))
    y = np.sin(2 * X.sum(axis=1) / 3**0.5)
    y[:40] += 0.1 * random.normal(size=40)
    return X[:40], y[:40], X[40:], y[40:]


@pytest.mark.parametrize("coding, threshold", [("real", 20), ("complex", 40)])
def test_forty_rows_are_fitted_from_forty_features_on(coding, threshold):
    model = RandomFeatureRegression(coding=coding, random_state=0)
    found = model.sweep(*forty_rows(0), sizes=[threshold - 1, threshold, threshold + 1, 100])
    assert found.train_error[0] > 1e-6
    assert found.train_error[1:].max() < 1e-12


@pytest.mark.parametrize("coding", ["real", "complex"])
def test_the_test_error_peaks_at_as_many_features_as_rows_and_falls_again(coding):
    sizes = SIZES if coding == "real" else tuple(2 * m for m in SIZES)
    runs = [
        RandomFeatureRegression(coding=coding, random_state=seed).sweep(
            *forty_rows(seed), sizes=sizes
        )
        for seed in range(30)
    ]
    risk = np.median([run.test_error for run in runs], axis=0)
    peak = risk.argmax()
    assert runs[0].features[peak] == 40  # 2 N = n with real waves, N = n with complex ones
    classical = risk[:peak].min()
    assert risk[peak] > 20 * classical
    assert np.all(np.diff(risk[peak:]) < 0)
    assert risk[-1] < classical
