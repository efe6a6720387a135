"""Trained machines: likelihoods that rise to the optimum, samples like the data, log Z by AIS."""

import numpy as np
import pytest
import torch

import castalia
from castalia import RestrictedBoltzmannMachine
from castalia.errors import InvalidData, InvalidParameter
from castalia.nets.generative.restricted_boltzmann_network import binary_states


def bars(size=4):
    """All images of whole rows, and all of whole columns: 2 * 2^4 - 2 of them."""
    lines = binary_states(size).numpy()
    rows = np.repeat(lines[:, :, None], size, axis=2).reshape(-1, size * size)
    columns = np.repeat(lines[:, None, :], size, axis=1).reshape(-1, size * size)
    return np.concatenate([rows, columns[1:-1]]).astype(np.float32)


@pytest.fixture(scope="module")
def trained():
    X = np.tile(bars(), (4, 1))
    settings = {"hidden": 16, "epochs": 300, "batch_size": 60, "lr": 0.2, "weight_decay": 0.0}
    return X, {
        name: RestrictedBoltzmannMachine(
            method=method, k=k, chains=c, momentum=0.8, random_state=0, **settings
        ).fit(X)
        for name, method, k, c in (("cd", "cd", 5, None), ("pcd", "pcd", 3, 240))
    }


def test_the_exact_likelihood_of_bars_rises_to_near_the_optimum(trained):
    X, models = trained
    best = -np.log(30)  # the entropy of thirty equal images
    start = RestrictedBoltzmannMachine(hidden=16, epochs=1, lr=1e-9, random_state=0).fit(X).score(X)
    for name, model in models.items():
        assert model.log_partition().exact
        assert start < -9, start
        assert model.score(X) > best - 1.5, (name, model.score(X))


def test_the_reconstruction_error_falls_and_is_a_monitor_only(trained):
    X, models = trained
    lines = [line["reconstruction"] for line in models["cd"].history_]
    assert lines[-1] < lines[0] / 3
    frozen = RestrictedBoltzmannMachine(hidden=16, epochs=2, lr=1e-9, random_state=0).fit(X)
    assert abs(frozen.history_[1]["reconstruction"] - frozen.history_[0]["reconstruction"]) < 0.01


def test_samples_look_like_the_data(trained):
    X, models = trained
    drawn = models["pcd"].sample(2000, steps=500, random_state=1)
    assert drawn.shape == (2000, 16)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    kinds = {row.tobytes(): 0 for row in bars()}
    for row in drawn:
        if row.tobytes() in kinds:
            kinds[row.tobytes()] += 1
    share = np.array(list(kinds.values())) / 2000
    assert share.sum() > 0.5  # 30 of 65,536 states
    p = np.exp(models["pcd"].log_likelihood(bars()))  # and as often as the model says
    assert np.abs(share - p).max() < 0.03
    again = models["pcd"].sample(5, steps=3, random_state=1)
    assert np.array_equal(again, models["pcd"].sample(5, steps=3, random_state=1))


def test_annealing_agrees_with_the_exact_log_z(trained):
    _, models = trained
    exact = models["cd"].log_partition()
    guess = models["cd"].log_partition(runs=300, betas=1000, exact=False)
    assert not guess.exact
    assert guess.low - 0.02 <= exact.log_z <= guess.high + 0.02
    assert guess.log_z == pytest.approx(exact.log_z, abs=0.3)


def test_the_exact_gradient_is_a_method_of_training():
    X = np.repeat([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]], [30, 20, 10], axis=0)
    model = RestrictedBoltzmannMachine(
        hidden=6,
        method="exact",
        epochs=300,
        batch_size=60,
        lr=0.3,
        momentum=0.9,
        weight_decay=0,
        random_state=0,
    ).fit(X)
    p = np.array([3, 2, 1]) / 6
    assert model.score(X) == pytest.approx(float(p @ np.log(p)), abs=0.05)
    assert model.history_[-1]["loss"] == pytest.approx(-model.score(X), abs=0.01)


def test_normal_columns_are_standardised_and_scored_in_their_own_units():
    random = np.random.default_rng(0)
    X = np.concatenate(
        [random.normal([0, 100], [0.2, 20], (300, 2)), random.normal([1, 200], [0.2, 20], (300, 2))]
    )
    model = RestrictedBoltzmannMachine(
        hidden=3,
        noise=0.5,
        method="exact",
        epochs=150,
        lr=0.05,
        batch_size=600,
        momentum=0.9,
        random_state=0,
    ).fit(X)
    assert model.visible_ == "gaussian"
    single = -0.5 * np.log(2 * np.pi * X.var(axis=0)).sum() - 1  # one normal, columns apart
    assert model.score(X) > single + 0.2
    drawn = model.sample(1000, steps=200)
    assert (np.abs(drawn.mean(axis=0) - X.mean(axis=0)) < 0.25 * X.std(axis=0)).all()
    assert (np.abs(drawn.std(axis=0) / X.std(axis=0) - 1) < 0.2).all()
    whole = model.log_partition(runs=200, betas=500, exact=False)
    assert whole.log_z == pytest.approx(model.log_partition().log_z, abs=0.1)
    with pytest.raises(InvalidParameter, match="columns of 0 and 1"):
        model.pseudo_likelihood(X)


def test_the_pseudo_likelihood_is_that_of_each_unit_given_the_others(trained):
    _, models = trained
    model, X = models["pcd"], bars()[:3]
    found = model.pseudo_likelihood(X)
    log_p = model.log_likelihood(X)
    for row, one, total in zip(X, log_p, found, strict=True):
        flipped = np.abs(np.eye(16, dtype=np.float32) - row)
        other = model.log_likelihood(flipped)
        assert total == pytest.approx(-np.logaddexp(0, other - one).sum(), abs=1e-3)


def test_features_energies_and_reconstructions(trained):
    X, models = trained
    model = models["cd"]
    z = X[:7] @ model.weights_ + model.hidden_bias_
    np.testing.assert_allclose(model.transform(X[:7]), 1 / (1 + np.exp(-z)), atol=1e-5)
    np.testing.assert_allclose(
        model.free_energy(X[:7]), -X[:7] @ model.visible_bias_ - np.logaddexp(0, z).sum(1),
        rtol=1e-5,
    )  # fmt: skip
    assert np.abs(model.reconstruct(X) - X).mean() < 0.1
    assert model.get_feature_names_out()[0] == "restrictedboltzmannmachine0"


def test_the_contrast_has_the_gradient_of_free_energies():
    for gaussian in (False, True):
        net = castalia.nets.generative.RestrictedBoltzmannNetwork(5, 3, gaussian=gaussian).double()
        v, drawn = torch.rand(4, 5).double(), torch.rand(6, 5).double()
        p, q = torch.rand(4).double().softmax(0), torch.full((6,), 1 / 6).double()
        net.contrast(v, p, drawn, q).backward()
        found = [parameter.grad.clone() for parameter in net.parameters()]
        loss = p @ net.free_energy(v) - q @ net.free_energy(drawn)
        wanted = torch.autograd.grad(loss, list(net.parameters()))
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other)


def test_sparse_units_are_on_as_seldom_as_was_asked():
    X = np.tile(bars(), (8, 1))
    settings = {"hidden": 12, "epochs": 25, "lr": 0.1, "random_state": 0}
    free = RestrictedBoltzmannMachine(**settings).fit(X).transform(X).mean()
    few = RestrictedBoltzmannMachine(sparsity=0.1, sparsity_weight=1.0, **settings).fit(X)
    assert few.transform(X).mean() < 0.2 < free


def test_persistent_chains_go_on(tmp_path):
    from castalia.objectives.contrastive_divergence import ContrastiveDivergence
    from castalia.protocols import Batch

    machine = castalia.nets.generative.RestrictedBoltzmannNetwork(4, 3).train()
    objective = ContrastiveDivergence(1, persistent=5)
    objective.terms(machine, Batch(torch.rand(8, 4).round()), "train")
    kept = objective.state_dict()["chains"].clone()
    other = ContrastiveDivergence(1, persistent=5)
    other.load_state_dict({"chains": kept})
    other.terms(machine, Batch(torch.rand(8, 4).round()), "train")
    assert kept.shape == (5, 4)
    assert other.chains.shape == (5, 4)
    machine.eval()
    before = other.chains.clone()
    other.terms(machine, Batch(torch.rand(8, 4).round()), "train")
    assert torch.equal(before, other.chains)


def test_bad_settings_are_refused():
    with pytest.raises(InvalidData, match="between 0 and 1 where visible='bernoulli'; got 2"):
        RestrictedBoltzmannMachine(visible="bernoulli").fit([[0.0], [2.0]])
    with pytest.raises(InvalidParameter, match="at most 20 units; got"):
        RestrictedBoltzmannMachine(method="exact", hidden=30).fit(np.eye(40))
