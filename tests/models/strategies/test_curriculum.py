"""Rows in order, attacked or in fewer numbers."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

import castalia
from castalia import (
    AdversarialTraining,
    Compress,
    Curriculum,
    MLPClassifier,
    MLPRegressor,
    Training,
)
from castalia.errors import InvalidParameter
from castalia.models.strategies.compression import energy_rank, quantised
from castalia.models.strategies.curriculum import row_losses
from castalia.testing.toys import moons, sine

PLAIN = Training(validation=0)
NET = MLPClassifier(hidden=(32,), epochs=25, lr=0.03, training=PLAIN)


# ---- easy rows first ----


def blurred(n, seed):
    """Rows beside a plane; what blurs a row's label differs, and is known."""
    random = np.random.default_rng(seed)
    X, blur = random.normal(size=(n, 20)), 12 * random.random(n)
    return X, (X[:, :4].sum(axis=1) + blur * random.normal(size=n) > 0).astype(int), blur


def test_clear_rows_first_reach_more_than_a_random_order_in_as_many_steps():
    X, y, blur = blurred(400, 100)  # seeds that the settings were not chosen on
    unseen = blurred(1000, 101)[0]
    truth = (unseen[:, :4].sum(axis=1) > 0).astype(int)
    net = MLPClassifier(hidden=(), epochs=5, lr=0.02, training=PLAIN)

    def score(order, seed):
        model = Curriculum(net, order=order, begin=0.2, ramp=1.0, random_state=seed)
        return model.fit(X, y, groups=blur).score(unseen, truth)

    gains = [score("given", seed) - score("random", seed) for seed in range(100, 103)]
    assert np.mean(gains) > 0.02


def test_epochs_grow_from_the_easiest_rows_to_all():
    model = Curriculum(begin=0.2, ramp=0.5)
    assert [model._rows(epoch, 10, 100) for epoch in (0, 1, 5, 9)] == [20, 36, 100, 100]


def test_rows_on_which_a_first_network_errs_are_hard():
    X, y = moons(200)
    y = y.copy()
    y[:10] = 1 - y[:10]
    model = Curriculum(NET, order="loss", random_state=0).fit(X, y)
    assert len(set(np.argsort(-model.difficulty_)[:10]) & set(range(10))) >= 7
    first = clone(NET).set_params(random_state=0).fit(X, y)
    proba = first.predict_proba(X)[np.arange(200), y]
    np.testing.assert_allclose(row_losses(first, X, y), -np.log(proba), rtol=1e-3, atol=1e-5)


def test_an_order_that_is_not_given_is_asked_for():
    with pytest.raises(InvalidParameter, match=r"order='given' needs the difficulty of each row"):
        Curriculum(NET, order="given").fit(*moons(40))


# ---- attacked rows ----


def test_robust_accuracy_rises_and_a_stronger_attack_finds_no_better_rows():
    X, y = moons(200)
    unseen = moons(300, seed=5)
    net = clone(NET).set_params(epochs=40)
    plain = AdversarialTraining(net, eps=0.0, random_state=0).fit(X, y)
    model = AdversarialTraining(net, eps=0.4, steps=3, share=1.0, random_state=0).fit(X, y)
    assert model.robust_score(*unseen) > plain.robust_score(*unseen, eps=0.4)
    assert model.robust_score(*unseen, eps=0.0) == model.score(*unseen)
    assert plain.robust_score(*unseen, eps=0.4) <= plain.robust_score(*unseen, eps=0.4, steps=1)


# ---- fewer numbers ----


def test_the_error_of_a_factorised_layer_is_the_energy_that_is_left_out():
    weight = np.random.default_rng(0).normal(size=(12, 20))
    s = np.linalg.svd(weight, compute_uv=False)
    errors = []
    for rank in (1, 4, 8, 12):
        parts = Compress(rank=rank)
        parts.ranks_ = {}
        stored = parts._factorised("layer.weight", weight)
        gap = weight - stored["left"] @ stored["right"]
        errors.append((gap**2).sum())
        assert errors[-1] == pytest.approx((s[rank:] ** 2).sum(), abs=1e-9)
    assert errors == sorted(errors, reverse=True)
    assert energy_rank(s, 1.0) == 12
    assert (s[: energy_rank(s, 0.7)] ** 2).sum() >= 0.7 * (s**2).sum()


@pytest.mark.parametrize(
    "settings, times",
    [
        ({"method": "int8"}, 3.2),
        ({"method": "prune", "keep": 0.5}, 1.2),
        ({"keep": 0.9}, 1.2),
        ({"method": "filters", "keep": 0.9}, 1.05),
    ],
    ids=["int8", "prune", "svd", "filters"],
)
def test_a_compressed_network_is_smaller_and_nearly_as_good(tmp_path, settings, times):
    X, y = sine(200)
    net = MLPRegressor(hidden=(64, 64), epochs=30, lr=0.01, training=Training(validation=0))
    whole = clone(net).set_params(random_state=0).fit(X, y).score(X, y)
    model = Compress(net, random_state=0, **settings).fit(X, y)
    assert model.sizes_["before"] > times * model.sizes_["after"]
    assert model.score(X, y) > whole - 0.15
    castalia.save(model, tmp_path / "model")
    np.testing.assert_array_equal(castalia.load(tmp_path / "model").predict(X), model.predict(X))
    file = (tmp_path / "model" / "weights.safetensors").stat().st_size
    assert file < model.sizes_["after"] + 6000


def test_a_fitted_network_is_compressed_as_it_is_and_each_share_has_its_price():
    X, y = sine(200)
    net = MLPRegressor(hidden=(32, 32), epochs=20, lr=0.01, training=Training(validation=0))
    net.fit(X, y)
    before = net.predict(X)
    same = Compress(method="prune", keep=1.0).compress(net)
    np.testing.assert_array_equal(same.predict(X), before)
    half = Compress(method="filters", keep=0.5).compress(net)
    weights = [w for w in half.module_.parameters() if w.ndim == 2]
    assert [(w == 0).all(dim=1).sum().item() for w in weights] == [16, 16, 0]
    np.testing.assert_array_equal(net.predict(X), before)  # it stays as it is
    lines = Compress(method="prune").tradeoff(net, X, y, keep=(0.1, 1.0))
    assert lines[0]["smaller"] > lines[1]["smaller"]
    assert lines[0]["score"] < lines[1]["score"] == net.score(X, y)
    with pytest.raises(InvalidParameter, match="`model` must be one of ours that is trained by"):
        Compress().compress(DecisionTreeRegressor())


def test_whole_numbers_are_within_half_a_step_of_the_weights():
    weight = np.random.default_rng(0).normal(size=(5, 30))
    stored = quantised(weight)
    gap = np.abs(weight - stored["whole"] * stored["scale"][:, None])
    assert (gap <= stored["scale"][:, None] * 0.5001).all()


def test_a_rank_above_the_layer_s_is_refused():
    with pytest.raises(InvalidParameter, match=r"`rank` must be at most 2, the rank of layer 'lay"):
        Compress(NET, rank=3).fit(*moons(40))


def test_filters_of_a_long_table_keep_their_places():
    weight = np.arange(1.0, 140_001, dtype=np.float32).reshape(70_000, 2)
    parts = Compress(method="filters", keep=0.01)._small("weight", weight)
    assert parts["rows"].tolist() == list(range(69_300, 70_000))  # of the largest norms
