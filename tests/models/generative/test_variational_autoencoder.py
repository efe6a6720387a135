import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.linear_model import LinearRegression
from torch.testing import assert_close

from castalia import PCA, Training, VariationalAutoencoder
from castalia.errors import InvalidData, InvalidParameter
from castalia.protocols import Batch
from castalia.testing.toys import blobs, stripes

RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def linear():
    """A linear one on Gaussian rows with two factors, columns of mean 0 and deviation 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2)) @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(1000, 5))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    training = Training(validation=0, schedule="cosine", average="ema")
    model = VariationalAutoencoder(
        code=2, hidden=(), spread="one", lr=2e-2, epochs=60, training=training, random_state=0
    )
    return model.fit(X), X


def test_a_linear_one_reaches_the_likelihood_of_probabilistic_pca(linear):
    model, X = linear
    values, errors = model.log_likelihood(X, samples=200)
    exact = PCA(components=2).fit(X).score(X)
    assert values.mean() == pytest.approx(exact, abs=1e-2)
    assert errors.mean() < 0.1


def test_the_bound_rises_and_its_parts_are_in_the_history(linear):
    model, _ = linear
    first, last = model.history_[0], model.history_[-1]
    assert last["loss"] < first["loss"] - 1
    assert last["loss"] == pytest.approx(last["reconstruction"] + last["kl"], rel=1e-5)


def test_the_estimate_is_no_worse_with_more_draws_and_the_bound_lies_below(linear):
    model, X = linear
    few, many = (model.log_likelihood(X[:200], samples=k)[0].mean() for k in (1, 100))
    assert few <= many + 0.01


def test_samples_have_mean_and_spread_of_the_data():
    X, _ = blobs()
    model = VariationalAutoencoder(code=2, hidden=(32,), lr=1e-2, epochs=60, random_state=0).fit(X)
    drawn = model.sample(2000)
    assert np.abs(drawn.mean(axis=0) - X.mean(axis=0)).max() < 0.35
    assert drawn.std(axis=0) == pytest.approx(X.std(axis=0), rel=0.15)


def test_the_code_says_what_made_the_row():
    factor = RANDOM.uniform(-1, 1, 800)
    X = np.column_stack([factor, factor**3, np.sin(2 * factor)]) + 0.02 * RANDOM.normal(
        size=(800, 3)
    )
    model = VariationalAutoencoder(code=1, hidden=(32,), lr=1e-2, epochs=20, random_state=0).fit(X)
    code = model.transform(X)
    assert LinearRegression().fit(code, factor).score(code, factor) > 0.9


def test_a_conditional_one_draws_the_class_it_is_asked_for():
    X, y = blobs()
    names = np.array(["a", "b", "c"])[y]
    model = VariationalAutoencoder(
        code=1, hidden=(32,), lr=1e-2, epochs=40, conditional=True, random_state=0
    ).fit(X, names)
    for name in "abc":
        assert (
            np.linalg.norm(model.sample(300, name).mean(axis=0) - X[names == name].mean(axis=0))
            < 0.6
        )
    with pytest.raises(InvalidData, match="y must be of the classes of fit.*got 'd'"):
        model.sample(2, "d")
    with pytest.raises(InvalidData, match="y must hold a class for each row with conditional=True"):
        VariationalAutoencoder(conditional=True).fit(X)
    with pytest.raises(InvalidParameter, match="`y` must be None without conditional=True"):
        VariationalAutoencoder(epochs=1).fit(X).sample(1, "a")


def test_rows_without_a_label_teach_classes_too():
    X, y = blobs()
    few = np.array(["?"] * len(X))
    for k in range(3):
        few[np.flatnonzero(y == k)[:2]] = "abc"[k]
    settings = {"code": 1, "hidden": (32,), "lr": 1e-2, "random_state": 0}
    model = VariationalAutoencoder(conditional=True, unlabelled="?", epochs=30, **settings)
    model.fit(X, few)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert (model.predict(X) == np.array(["a", "b", "c"])[y]).mean() > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-5)
    drawn = model.sample(200, "b").mean(axis=0)
    assert np.linalg.norm(drawn - X[y == 1].mean(axis=0)) < 0.6
    assert not hasattr(VariationalAutoencoder(conditional=True), "predict")
    with pytest.raises(InvalidData, match=r"some rows must have a class; all labels are '\?'"):
        model.fit(X, np.full(len(X), "?"))
    with pytest.raises(InvalidParameter, match="`unlabelled` must be None without conditional"):
        VariationalAutoencoder(unlabelled=-1).fit(X)


def test_the_bound_of_a_row_without_label_is_tight_where_q_is_the_posterior():
    """sum_y q (L + log q) >= -log sum_y e^-L, equal at q ~ e^-L; a label pays its own L."""
    torch.manual_seed(0)
    X, y = blobs()
    model = VariationalAutoencoder(
        code=1, hidden=(8,), conditional=True, unlabelled=-1, epochs=1, random_state=0
    ).fit(X, y)
    net, x = model.module_.double(), torch.from_numpy(X[:4])
    objective = model._objective(model.spec_)
    torch.manual_seed(1)
    each = objective.bounds(net, x)  # (4, 3)
    best = -torch.logsumexp(-each, dim=1)

    def loss(log_q, labels):
        net.log_classes = lambda x: log_q
        torch.manual_seed(1)
        return -objective.terms(net, Batch(x, torch.tensor(labels)), "train")["elbo"]

    assert_close(loss((-each).log_softmax(dim=1), [-1] * 4), best.mean())
    assert loss(torch.full((4, 3), 1 / 3).double().log(), [-1] * 4) > best.mean()
    assert_close(
        loss((-each).log_softmax(dim=1), [0, 2, 1, 1]), each[range(4), [0, 2, 1, 1]].mean()
    )


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian", "logistic", "categorical"])
def test_images_of_every_likelihood_are_learnt_and_drawn(likelihood):
    X, _ = stripes(40, size=8)
    model = VariationalAutoencoder(
        code=4, width=2, likelihood=likelihood, epochs=4, lr=5e-3, random_state=0
    ).fit(X)
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]
    drawn = model.sample(3)
    assert drawn.shape == (3, 8, 8)
    assert drawn.dtype == np.uint8


def test_a_dense_one_of_images_and_a_weighted_bound():
    X, _ = stripes(60, size=8)
    settings = {"code": 4, "width": 0, "hidden": (16,), "epochs": 3, "random_state": 0}
    model = VariationalAutoencoder(bound_samples=5, **settings).fit(X)
    assert "elbo" in model.history_[-1]
    assert model.transform(X).shape == (60, 4)


def test_free_bits_and_warm_up_keep_the_code_in_use():
    X = RANDOM.normal(size=(400, 3))
    settings = {"code": 2, "hidden": (16,), "epochs": 12, "lr": 5e-3, "random_state": 0}
    used = VariationalAutoencoder(free_bits=0.5, **settings).fit(X)
    assert used.history_[-1]["kl"] > 0.8
    warm = VariationalAutoencoder(warm_up=10, **settings).fit(X)
    cold = VariationalAutoencoder(**settings).fit(X)
    assert warm.history_[2]["kl"] > 2 * cold.history_[2]["kl"]


def test_the_first_rows_are_the_same_however_many_are_drawn(linear):
    model, _ = linear
    assert np.array_equal(model.sample(1), model.sample(300)[:1])
    blocks = model.sample_blocks(600)
    assert [len(block) for block in blocks] == [256, 256, 88]
    assert not np.array_equal(model.sample(2), model.sample(2, random_state=5))


def test_densities_are_in_the_units_of_x(linear):
    model, X = VariationalAutoencoder(code=2, hidden=(), epochs=2, random_state=0), linear[1]
    narrow = model.fit(X).score(X)
    assert model.fit(100 * X).score(100 * X) == pytest.approx(narrow - 5 * np.log(100), abs=1e-3)


def test_an_anomaly_is_less_likely(linear):
    model, X = linear
    assert model.detect(X[:1] + 30).tolist() == [True]
    assert stats.norm.ppf(model.detect(X).mean()) == pytest.approx(stats.norm.ppf(0.05), abs=0.2)
