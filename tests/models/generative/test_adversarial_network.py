import numpy as np
import pytest

from castalia import (
    Callback,
    DiffusionModel,
    GenerativeAdversarialNetwork,
    MomentMatching,
    NormalizingFlow,
    Training,
    VariationalAutoencoder,
)
from castalia.errors import Diverged, InvalidData, InvalidParameter
from castalia.evaluate import sample_scores
from castalia.models.generative.sample_methods import Lacks
from castalia.testing.toys import blobs, moons, stripes

RANDOM = np.random.default_rng(0)
SMALL = {"noise": 4, "hidden": (32,), "random_state": 0}


def test_the_game_ends_at_the_normal_that_the_data_are():
    X = RANDOM.normal(3.0, 2.0, size=(2000, 1))
    training = Training(
        optimizer=("adam", {"betas": (0.5, 0.999)}), validation=0, average=("ema", 0.99),
        schedule="cosine",
    )  # fmt: skip
    model = GenerativeAdversarialNetwork(
        loss="minimax", lr=4e-3, epochs=45, batch_size=200, training=training, **SMALL
    ).fit(X)
    drawn = model.sample(5000)
    assert drawn.mean() == pytest.approx(X.mean(), rel=0.05)
    assert drawn.std() == pytest.approx(X.std(), rel=0.05)


class Turns(Callback):
    """Counts the steps in which each network moved."""

    def __init__(self):
        self.moved = {"critic": 0, "generator": 0}

    def on_batch_start(self, state):
        self.before = {k: next(getattr(state.net, k).parameters()).clone() for k in self.moved}

    def on_batch_end(self, state):
        for name, old in self.before.items():
            self.moved[name] += int((next(getattr(state.net, name).parameters()) != old).any())


@pytest.mark.parametrize("steps", [1, 3])
def test_the_generator_moves_once_for_so_many_steps_of_the_discriminator(steps):
    X, turns = blobs(240)[0], Turns()
    training = Training(validation=0, callbacks=[turns], step="plain")
    GenerativeAdversarialNetwork(
        discriminator_steps=steps, epochs=2, batch_size=40, training=training, **SMALL
    ).fit(X)
    assert turns.moved == {"critic": 12, "generator": 12 // steps}


@pytest.mark.parametrize("loss", ["wasserstein", "hinge"])
def test_other_games_also_learn(loss):
    X, _ = blobs()
    before = -GenerativeAdversarialNetwork(epochs=1, lr=1e-9, **SMALL).fit(X).score(X)
    model = GenerativeAdversarialNetwork(
        loss=loss,
        lr=3e-3,
        epochs=60,
        discriminator_steps=2,
        spectral_norm=loss == "hinge",
        **SMALL,
    ).fit(X)
    assert model.score(X) > -0.8 * before
    assert {"discriminator", "generator", "real", "fake"} <= set(model.history_[-1])


def test_a_conditional_one_draws_the_class_it_is_asked_for():
    X, y = blobs()
    model = GenerativeAdversarialNetwork(
        lr=5e-3, epochs=40, batch_size=60, conditional=True, **SMALL
    ).fit(X, y)  # fmt: skip
    for label in range(3):
        drawn = model.sample(300, label)
        nearest = np.argmin(
            [np.linalg.norm(drawn.mean(axis=0) - X[y == k].mean(axis=0)) for k in range(3)]
        )
        assert nearest == label


def test_images_are_drawn_by_convolutions():
    X, y = stripes(40, size=9)
    model = GenerativeAdversarialNetwork(
        noise=4, width=4, epochs=1, conditional=True, random_state=0
    )
    drawn = model.fit(X, y).sample(3, [0, 1, 2])
    assert drawn.shape == (3, 9, 9)
    assert drawn.dtype == np.uint8


def test_only_those_with_a_density_score_rows():
    X, _ = moons(60)
    quick = {"epochs": 1, "random_state": 0}
    explicit = [VariationalAutoencoder(**quick), NormalizingFlow(depth=1, hidden=(4,), **quick)]
    implicit = [
        GenerativeAdversarialNetwork(**quick),
        MomentMatching(**quick),
        DiffusionModel(hidden=8, sample_steps=2, **quick),
    ]
    assert all(np.isfinite(model.fit(X).score_samples(X)).all() for model in explicit)
    for model in implicit:
        assert not hasattr(model.fit(X), "score_samples")
        assert not hasattr(model, "transform")
        with pytest.raises(AttributeError, match="no `score_samples`: it draws rows and has no"):
            model.score_samples(X)


def test_what_is_lacking_is_said():
    class Model:
        density = Lacks("it has none.")

    with pytest.raises(AttributeError, match="Model: there is no `density`: it has none"):
        Model().density  # noqa: B018


def test_one_infers_and_scores_and_the_other_draws_as_well():
    """GEN-17: both on one toy set, by one measure of their samples."""
    X, _ = blobs()
    vae = VariationalAutoencoder(
        code=2, hidden=(32,), lr=1e-2, epochs=40, batch_size=60, random_state=0
    ).fit(X)
    gan = GenerativeAdversarialNetwork(lr=5e-3, epochs=60, batch_size=60, **SMALL).fit(X)
    seen = {type(m).__name__: sample_scores(X, m.sample(300)) for m in (vae, gan)}
    assert all(scores["energy_distance"] < 0.25 for scores in seen.values())
    assert vae.transform(X).shape == (300, 2)
    assert vae.score(X) > -4.5  # unlearnt -4.6
    assert not hasattr(gan, "transform")


def test_moments_come_near_those_of_the_data():
    X, _ = blobs()
    model = MomentMatching(lr=1e-2, epochs=40, **SMALL).fit(X)
    assert model.history_[-1]["loss"] < 0.25 * model.history_[0]["loss"]
    assert model.history_[-1]["loss"] < 0.1
    assert sample_scores(X, model.sample(300))["energy_distance"] < 0.1  # unlearnt 0.6


def test_a_diverged_phase_is_named():
    X, _ = blobs()
    wild = Training(optimizer="sgd", validation=0, precision="float32")
    model = GenerativeAdversarialNetwork(
        loss="wasserstein", gradient_penalty=0.0, lr=1e12, epochs=5, training=wild, **SMALL
    )
    with pytest.raises(Diverged, match="the loss of the (discriminator|generator) became"):
        model.fit(X)


def test_a_game_goes_on_where_it_was_stopped(tmp_path):
    X, _ = blobs()

    class Stop(Callback):
        def on_batch_end(self, state):
            if state.total == 7:  # inside the second epoch
                raise KeyboardInterrupt

    def fit(run, callbacks=()):
        training = Training(
            validation=0, average=("ema", 0.9), run=run, checkpoint_every=1, callbacks=callbacks
        )
        return GenerativeAdversarialNetwork(
            discriminator_steps=2, epochs=3, training=training, **SMALL
        ).fit(X)

    whole = fit(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "stopped", [Stop()])
    resumed = fit(tmp_path / "stopped")
    for name, value in whole.module_.state_dict().items():
        assert np.array_equal(value, resumed.module_.state_dict()[name]), name


def test_nothing_is_drawn_before_a_fit():
    with pytest.raises(ValueError, match="not fitted"):
        GenerativeAdversarialNetwork().sample(3)
    with pytest.raises(InvalidParameter, match="`n` must be a whole number of at least 1; got 0"):
        MomentMatching(epochs=1, **SMALL).fit(blobs()[0]).sample(0)
    with pytest.raises(InvalidData, match="must be a class, or one for each row"):
        GenerativeAdversarialNetwork(epochs=1, conditional=True, **SMALL).fit(*blobs()).sample(2)
