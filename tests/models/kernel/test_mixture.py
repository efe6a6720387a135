"""Gaussian mixtures against scikit-learn's, scipy's densities and the theory of EM."""

import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture as Reference
from tests.sklearn_checks import learns_alike

from castalia import GaussianMixture
from castalia.errors import InvalidData, InvalidParameter, SolverFailed, TrainingWarning
from castalia.models.kernel import kmeans_plus_plus as seeding
from castalia.models.kernel import mixture, points
from castalia.models.kernel.gaussians import KINDS
from castalia.testing.toys import blobs

kinds = pytest.mark.parametrize("kind", KINDS)


def clouds(n=900, seed=0):
    """Three overlapping clouds in three dimensions, each with a shape of its own."""
    random = np.random.default_rng(seed)
    shapes, centers = random.normal(size=(3, 3, 3)), 2 * random.normal(size=(3, 3))
    y = np.arange(n) % 3
    return np.einsum("nij,nj->ni", shapes[y], random.normal(size=(n, 3))) + centers[y], centers


def short(steps, **settings):
    """A mixture that may stop before it is done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        return GaussianMixture(n_components=3, steps=steps, **settings).fit(clouds()[0])


def reference(model, **settings):
    """scikit-learn's mixture with the same parameters to begin with."""
    flat = model.covariance_type in ("diag", "spherical")
    precisions = 1 / model.covariances_ if flat else np.linalg.inv(model.covariances_)
    return Reference(
        3,
        covariance_type=model.covariance_type,
        weights_init=model.weights_,
        means_init=model.means_,
        precisions_init=precisions,
        **settings,
    )


@kinds
def test_from_the_same_start_it_ends_where_scikit_learn_does(kind):
    X, centers = clouds()
    ours = short(1, covariance_type=kind, init=centers, warm_start=True, tol=1e-5)
    theirs = reference(ours, tol=1e-5, max_iter=500).fit(X)
    ours.set_params(steps=500).fit(X)
    assert ours.n_iter_ == theirs.n_iter_ > 10
    assert ours.lower_bound_ == pytest.approx(theirs.lower_bound_, abs=1e-9)
    for name in ("weights_", "means_", "covariances_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-8)
    assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-7)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    assert ours.bic(X) == pytest.approx(theirs.bic(X))
    assert ours.aic(X) == pytest.approx(theirs.aic(X))


@kinds
def test_the_density_is_the_weighted_sum_of_normal_densities(kind):
    X, _ = clouds()
    model = short(5, covariance_type=kind, random_state=0)
    parts = zip(model.weights_, model.means_, model._matrices(), strict=True)
    density = sum(w * multivariate_normal(m, S).pdf(X) for w, m, S in parts)
    assert_allclose(np.exp(model.score_samples(X)), density)
    assert model.score(X) == pytest.approx(np.log(density).mean())


@kinds
def test_the_likelihood_never_falls(kind):
    bounds = [
        short(s, covariance_type=kind, random_state=0, reg_covar=0.0, tol=0.0).lower_bound_
        for s in range(1, 12)
    ]
    assert np.all(np.diff(bounds) > -1e-12)


@kinds
def test_weights_count_as_repetitions_and_order_does_not_matter(kind):
    X, _ = clouds(200)
    times = np.random.default_rng(2).integers(0, 4, size=len(X))
    order = np.random.default_rng(3).permutation(len(X))
    settings = {"n_components": 3, "covariance_type": kind, "random_state": 0, "tol": 1e-2}
    weighted = GaussianMixture(**settings).fit(X[order], sample_weight=times[order])
    repeated = GaussianMixture(**settings).fit(X.repeat(times, axis=0))
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_)
    assert_allclose(weighted.means_, repeated.means_, rtol=1e-6)
    assert_allclose(weighted.covariances_, repeated.covariances_, rtol=1e-6, atol=1e-9)


@kinds
def test_float32_and_rows_far_from_zero_change_little(kind):
    X, centers = clouds()
    exact = GaussianMixture(n_components=3, covariance_type=kind, init=centers, tol=1e-2).fit(X)
    far = (X + 100).astype(np.float32)
    model = GaussianMixture(n_components=3, covariance_type=kind, init=centers + 100, tol=1e-2)
    model.fit(far)
    assert model.score(far) == pytest.approx(exact.score(X), abs=1e-4)
    assert_allclose(model.means_ - 100, exact.means_, atol=1e-2)


@kinds
def test_what_is_drawn_has_the_means_and_covariances_of_the_components(kind):
    model = short(20, covariance_type=kind, random_state=0)
    drawn, labels = model.sample(60_000)
    assert_allclose(np.bincount(labels) / len(labels), model.weights_, atol=0.01)
    for k, S in enumerate(model._matrices()):
        mine = drawn[labels == k]
        assert_allclose(mine.mean(axis=0), model.means_[k], atol=0.1)
        assert_allclose(np.cov(mine.T), S, atol=0.05 * np.abs(S).max())
    assert_array_equal(drawn[:5], model.sample(60_000)[0][:5])


@pytest.mark.parametrize(
    "kind, count", [("full", 29), ("tied", 17), ("diag", 20), ("spherical", 14)]
)
def test_free_parameters_are_counted(kind, count):
    assert (
        short(1, covariance_type=kind).n_parameters_
        == count
        == reference(short(1, covariance_type=kind)).fit(clouds()[0])._n_parameters()
    )


def test_many_rows_begin_on_a_sample_and_end_as_high(monkeypatch):
    monkeypatch.setattr(seeding, "SAMPLE", 150)
    monkeypatch.setattr(mixture, "SAMPLE", 150)
    X, _ = clouds(6000)
    model = GaussianMixture(n_components=3, tol=1e-4, random_state=0, steps=300).fit(X)
    best = Reference(3, tol=1e-4, n_init=5, max_iter=300, random_state=0).fit(X)
    assert model.score(X) == pytest.approx(best.score(X), abs=5e-3)


@kinds
def test_the_number_of_threads_changes_no_digit(monkeypatch, kind):
    monkeypatch.setattr(points, "CHUNK", 1000)
    before, found = torch.get_num_threads(), []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        model = short(5, covariance_type=kind, random_state=0, device="cpu")
        found.append((model.covariances_, model.predict_proba(clouds()[0])))
    torch.set_num_threads(before)
    for one, three in zip(*found, strict=True):
        assert_array_equal(one, three)


def test_restarts_keep_the_likeliest():
    X, _ = clouds(150)
    settings = {"n_components": 6, "random_state": 0, "covariance_type": "diag", "steps": 300}
    few, many = (GaussianMixture(restarts=r, **settings).fit(X).lower_bound_ for r in (1, 8))
    assert many > few


def test_tensors_are_taken_and_answers_agree():
    X, centers = clouds()
    model = GaussianMixture(n_components=3, init=centers, device="cpu")
    labels = model.fit_predict(torch.tensor(X))
    assert_array_equal(labels, model.predict(X))
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert_allclose(model.means_, model.fit(X).means_)


@pytest.mark.gpu
@kinds
def test_a_gpu_finds_the_same_mixture(kind):
    X, centers = clouds()
    settings = {"n_components": 3, "covariance_type": kind, "init": centers}
    on_gpu, on_cpu = (GaussianMixture(**settings, device=d).fit(X) for d in ("cuda", "cpu"))
    assert_allclose(on_gpu.covariances_, on_cpu.covariances_, rtol=1e-7, atol=1e-9)
    assert on_gpu.lower_bound_ == pytest.approx(on_cpu.lower_bound_)


@kinds
def test_every_kind_passes_scikit_learns_checks(kind):
    learns_alike(GaussianMixture(n_components=2, covariance_type=kind))


# ---- what is refused, and what is said ----


@pytest.mark.parametrize(
    "setting, rule",
    [
        ({"n_components": 0}, "`n_components` must be a whole number at least 1; got 0"),
        ({"covariance_type": "ful"}, "`covariance_type` must be .* got 'ful'. Did you mean `full`"),
        ({"restarts": 0}, "`restarts` must be a whole number at least 1; got 0"),
        ({"reg_covar": -1e-6}, "`reg_covar` must be a number at least 0; got -1e-06"),
        ({"tol": -1.0}, "`tol` must be a number at least 0; got -1.0"),
        ({"steps": 0}, "`steps` must be a whole number at least 1; got 0"),
        ({"warm_start": "no"}, "`warm_start` must be `True` or `False`; got 'no'"),
        ({"init": "random"}, "`init` must be `k-means`, or an array .* got 'random'"),
    ],
    ids=str,
)
def test_a_broken_rule_is_named(setting, rule):
    with pytest.raises(InvalidParameter, match=f"GaussianMixture: {rule}"):
        GaussianMixture(**setting).fit(*blobs(30))


@pytest.mark.parametrize(
    "kind, owner",
    [
        ("full", "the covariance of component 0"),
        ("tied", "the shared covariance"),
        ("diag", "the covariance of component 0"),
        ("spherical", "the covariance of component 0"),
    ],
)
def test_a_singular_covariance_is_named(kind, owner):
    X = np.zeros((20, 2))
    if kind != "spherical":
        X[:, 0] = np.arange(20)
    with pytest.raises(SolverFailed, match=f"{owner}.*singular.*Raise `reg_covar`"):
        GaussianMixture(covariance_type=kind, reg_covar=0.0).fit(X)


def test_a_collapsed_component_is_named_with_its_share():
    X = np.concatenate([np.zeros((5, 1)), 10 + np.arange(15.0)[:, None]])
    with pytest.raises(SolverFailed, match=r"component 0 \(25 % of the rows\)"):
        GaussianMixture(n_components=2, reg_covar=0.0, init=[[0.0], [17.0]]).fit(X)


def test_more_components_than_rows_are_refused():
    with pytest.raises(
        InvalidData, match="`n_components` must be at most .* got 4 and n_samples=3"
    ):
        GaussianMixture(n_components=4).fit(np.eye(3))


def test_a_warm_start_with_other_sizes_is_refused():
    X, _ = clouds()
    model = GaussianMixture(n_components=2, warm_start=True, tol=1e-2).fit(X)
    with pytest.raises(InvalidParameter, match=r"warm start; .* shape \(2, 3\) and .* \(2, 3, 3\)"):
        model.set_params(n_components=3).fit(X)
    with pytest.raises(InvalidParameter, match="warm start"):
        model.set_params(n_components=2, covariance_type="tied").fit(X)


@pytest.mark.parametrize("bad, said", [(-1.0, "at least 0"), (np.nan, "NaN")])
def test_weights_below_zero_or_not_finite_are_refused(bad, said):
    X, _ = blobs(30)
    weight = np.ones(len(X))
    weight[4] = bad
    with pytest.raises(ValueError, match=said):
        GaussianMixture().fit(X, sample_weight=weight)


def test_running_out_of_steps_is_reported():
    with pytest.warns(TrainingWarning, match="still gained 0.001 or more after 1 step"):
        GaussianMixture(n_components=3, steps=1, random_state=0).fit(clouds()[0])


@pytest.mark.parametrize("count", [0, 1.5])
def test_a_bad_number_of_rows_to_draw_is_refused(count):
    with pytest.raises(
        InvalidParameter, match=f"`n_samples` must be a whole number .* got {count}"
    ):
        short(2).sample(count)
