"""k-means against scikit-learn's, and what it promises beyond."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans as Reference
from sklearn.metrics import adjusted_rand_score
from tests.sklearn_checks import learns_alike

from castalia import KMeans
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch, TrainingWarning
from castalia.models.kernel import kmeans_plus_plus as seeding
from castalia.models.kernel import points
from castalia.testing.toys import blobs


def overlapping(n=1500, d=5, k=6, seed=0):
    random = np.random.default_rng(seed)
    centers = random.normal(size=(k, d))
    return random.normal(size=(n, d)) + centers[random.integers(k, size=n)], centers


def alike(ours, theirs, rtol=1e-9):
    assert_array_equal(ours.labels_, theirs.labels_)
    assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=rtol, atol=rtol)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=rtol)
    assert ours.n_iter_ == theirs.n_iter_


@pytest.mark.parametrize("tol", [1e-4, 0.0])
def test_from_the_same_start_it_takes_the_steps_of_scikit_learn(tol):
    X, start = overlapping()
    ours = KMeans(n_clusters=6, init=start, tol=tol).fit(X)
    assert ours.n_iter_ > 5
    alike(ours, Reference(6, init=start, n_init=1, tol=tol).fit(X))


def test_weights_give_what_they_give_in_scikit_learn():
    X, start = overlapping()
    weight = np.random.default_rng(1).exponential(size=len(X))
    ours = KMeans(n_clusters=6, init=start, tol=0).fit(X, sample_weight=weight)
    alike(ours, Reference(6, init=start, n_init=1, tol=0).fit(X, sample_weight=weight))


def test_sparse_rows_give_what_dense_ones_give():
    X, start = overlapping()
    X[np.abs(X) < 0.7] = 0
    dense = KMeans(n_clusters=6, init=start).fit(X)
    sparse = KMeans(n_clusters=6, init=start).fit(sp.csr_array(X))
    alike(sparse, dense, rtol=1e-7)
    rows = sp.csr_array(X[:50])
    assert_allclose(sparse.transform(rows), dense.transform(X[:50]), atol=1e-7)
    assert sparse.score(rows) == pytest.approx(dense.score(X[:50]))


def test_float32_far_from_zero_loses_no_cluster():
    X, start = overlapping()
    far = (X + 1000).astype(np.float32)
    model = KMeans(n_clusters=6, init=start + 1000).fit(far)
    exact = KMeans(n_clusters=6, init=start).fit(X)
    assert model.cluster_centers_.dtype == model.transform(far).dtype == np.float32
    assert adjusted_rand_score(model.labels_, exact.labels_) > 0.99
    assert model.inertia_ == pytest.approx(exact.inertia_, rel=1e-5)


def test_chance_begins_as_well_as_in_scikit_learn():
    X, _ = overlapping()
    ours = [KMeans(n_clusters=6, random_state=s).fit(X).inertia_ for s in range(20)]
    theirs = [Reference(6, n_init=1, random_state=s).fit(X).inertia_ for s in range(20)]
    assert np.mean(ours) < 1.01 * np.mean(theirs)
    assert min(ours) == pytest.approx(min(theirs), rel=1e-3)


def test_more_restarts_never_end_higher():
    X, _ = overlapping(300, 2, 12)
    few, many = (KMeans(n_clusters=12, restarts=r, random_state=0).fit(X).inertia_ for r in (1, 10))
    assert many < few


def test_shuffled_and_repeated_rows_give_the_same_clusters():
    X, _ = overlapping(200)
    times = np.random.default_rng(2).integers(0, 4, size=len(X))
    order = np.random.default_rng(3).permutation(len(X))
    settings = {"n_clusters": 5, "random_state": 0}
    weighted = KMeans(**settings).fit(X[order], sample_weight=times[order])
    repeated = KMeans(**settings).fit(X.repeat(times, axis=0))
    assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_)


def test_rows_of_no_weight_are_nowhere():
    X, _ = overlapping(200)
    X[:3] = 1e6
    weight = np.where(np.arange(len(X)) < 3, 0.0, 1.0)
    model = KMeans(n_clusters=5, random_state=0).fit(X, sample_weight=weight)
    assert np.abs(model.cluster_centers_).max() < 10


def test_an_empty_cluster_gets_the_farthest_row():
    X = np.array([[0.0], [1.0], [2.0], [50.0]])
    model = KMeans(n_clusters=2, init=[[0.0], [-1000.0]]).fit(X)
    assert sorted(model.cluster_centers_[:, 0].tolist()) == [1.0, 50.0]
    alike(model, Reference(2, init=[[0.0], [-1000.0]], n_init=1).fit(X))


def test_many_rows_begin_on_a_sample_and_end_at_rest(monkeypatch):
    monkeypatch.setattr(seeding, "SAMPLE", 200)
    X, _ = overlapping(4000, k=4)
    model = KMeans(n_clusters=4, tol=0, random_state=0).fit(X)
    means = [X[model.labels_ == k].mean(axis=0) for k in range(4)]
    assert_allclose(model.cluster_centers_, means, atol=1e-10)
    assert_array_equal(model.predict(X), model.labels_)
    best = Reference(4, n_init=5, tol=0, random_state=0).fit(X).inertia_
    assert model.inertia_ == pytest.approx(best, rel=1e-3)


def test_many_sparse_rows_begin_on_a_sample(monkeypatch):
    monkeypatch.setattr(seeding, "SAMPLE", 200)
    X, _ = overlapping(4000, k=4)
    X[np.abs(X) < 0.7] = 0
    models = [KMeans(n_clusters=4, restarts=3, random_state=0).fit(A) for A in (X, sp.csr_array(X))]
    assert models[1].inertia_ == pytest.approx(models[0].inertia_, rel=1e-3)


def test_the_number_of_threads_changes_no_digit(monkeypatch):
    monkeypatch.setattr(points, "CHUNK", 600)
    X, start = overlapping()
    before, found = torch.get_num_threads(), []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        model = KMeans(n_clusters=6, init=start, device="cpu").fit(X)
        found.append((model.cluster_centers_, model.labels_, model.transform(X)))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    for one, three in zip(*found, strict=True):
        assert_array_equal(one, three)


def test_the_sample_follows_the_weights():
    X = torch.arange(1000.0, dtype=torch.float64)[:, None]
    weight = np.where(np.arange(1000) < 500, 3.0, 1.0)
    rows = points.Points(X, weight)
    drawn = rows.sample(400, torch.Generator().manual_seed(0)).rows[:, 0] + rows.origin
    assert (drawn < 500).sum() == 300
    assert len(drawn.unique()) > 350


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    X, _ = overlapping()
    model = KMeans(n_clusters=6, random_state=0, tol=0, warm_start=True).fit(X)
    centers, first = model.cluster_centers_, model.n_iter_
    model.fit(X)
    assert first > 5
    assert model.n_iter_ <= 2
    assert_allclose(model.cluster_centers_, centers)


def test_distances_labels_and_score_agree():
    X, start = overlapping(300)
    model = KMeans(n_clusters=6, init=start).fit(X)
    distance = np.linalg.norm(X[:, None] - model.cluster_centers_, axis=2)
    assert_allclose(model.transform(X), distance)
    assert_array_equal(model.predict(X), distance.argmin(axis=1))
    assert_array_equal(model.fit_predict(X), model.labels_)
    assert model.score(X) == pytest.approx(-(distance.min(axis=1) ** 2).sum())
    weight = np.arange(300.0)
    expected = -(distance.min(axis=1) ** 2) @ weight
    assert model.score(X, sample_weight=weight) == pytest.approx(expected)
    names = model.get_feature_names_out().tolist()
    assert names == [f"kmeans{k}" for k in range(6)]


def test_tensors_are_taken_where_they_are():
    X, start = overlapping(300)
    model = KMeans(n_clusters=6, init=start, device="cpu").fit(torch.tensor(X))
    alike(model, KMeans(n_clusters=6, init=start, device="cpu").fit(X))
    assert isinstance(model.transform(torch.tensor(X)), torch.Tensor)


@pytest.mark.gpu
def test_a_gpu_finds_the_same_clusters():
    X, start = overlapping()
    on_gpu = KMeans(n_clusters=6, init=start, device="cuda").fit(X)
    alike(on_gpu, KMeans(n_clusters=6, init=start, device="cpu").fit(X))
    again = [KMeans(n_clusters=6, random_state=0, device="cuda").fit(X) for _ in range(2)]
    assert_array_equal(again[0].cluster_centers_, again[1].cluster_centers_)


@pytest.mark.filterwarnings("ignore:KMeans. found")
def test_the_default_configuration_passes_scikit_learns_checks():
    learns_alike(KMeans())


# ---- what is refused, and what is said ----


@pytest.mark.parametrize(
    "setting, rule",
    [
        ({"n_clusters": 0}, "`n_clusters` must be a whole number at least 1; got 0"),
        ({"restarts": 1.5}, "`restarts` must be a whole number at least 1; got 1.5"),
        ({"tol": -1.0}, "`tol` must be a number at least 0; got -1.0"),
        ({"steps": 0}, "`steps` must be a whole number at least 1; got 0"),
        ({"warm_start": 1}, "`warm_start` must be `True` or `False`; got 1"),
        ({"init": "kmeans++"}, r"one row of numbers a cluster; got 'kmeans\+\+'. Did you mean"),
        ({"init": [1.0, 2.0]}, r"or an array with one row of numbers a cluster; got \[1.0, 2.0\]"),
    ],
    ids=str,
)
def test_a_broken_rule_is_named(setting, rule):
    with pytest.raises(InvalidParameter, match=f"KMeans: .*{rule}"):
        KMeans(**setting).fit(*blobs(30))


def test_centres_of_another_shape_are_refused():
    with pytest.raises(ShapeMismatch, match=r"must have shape \(2, 2\).* got \(2, 3\)"):
        KMeans(n_clusters=2, init=np.zeros((2, 3))).fit(blobs(30)[0])


def test_more_clusters_than_rows_are_refused():
    with pytest.raises(InvalidData, match="`n_clusters` must be at most .* got 8 and n_samples=3"):
        KMeans().fit(np.eye(3))
    weight = [1.0, 1.0, 0.0]
    with pytest.raises(InvalidData, match="got 3 and n_samples=2"):
        KMeans(n_clusters=3).fit(np.eye(3), sample_weight=weight)


@pytest.mark.parametrize("bad, said", [(-1.0, "at least 0"), (np.nan, "NaN"), (np.inf, "infinity")])
def test_weights_below_zero_or_not_finite_are_refused(bad, said):
    X, _ = blobs(30)
    weight = np.ones(len(X))
    weight[4] = bad
    for rows in (X, torch.tensor(X)):
        with pytest.raises(ValueError, match=said):
            KMeans(n_clusters=2).fit(rows, sample_weight=weight)


def test_fewer_distinct_rows_than_clusters_are_reported():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    with pytest.warns(TrainingWarning, match="found 2 clusters with rows in them, not 3"):
        model = KMeans(n_clusters=3, random_state=0).fit(X)
    assert model.inertia_ == 0


def test_running_out_of_steps_is_reported():
    X, start = overlapping()
    with pytest.warns(TrainingWarning, match="still moved after 2 steps"):
        KMeans(n_clusters=6, init=start, steps=2).fit(X)
