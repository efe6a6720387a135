"""Experiments of the course on what makes networks generalise, small and seeded."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from torch import nn
from torch.testing import assert_close

from castalia import MLPClassifier, MLPRegressor, Training
from castalia.data.augment import Noise, Rotate, Shift, Zoom
from castalia.evaluate import BiasVariance, DoubleDescent, LossLandscape
from castalia.nets.dense import MLP
from castalia.nn import Residual, layer_gradients
from castalia.objectives import (
    L2,
    Adversarial,
    Augmented,
    CrossEntropy,
    SquaredError,
    Surrogate,
    ZeroOne,
    fgsm,
    pgd,
)
from castalia.testing import train_tensors
from castalia.testing.toys import moons, sine


@pytest.fixture(scope="module")
def digits():
    """Images (1797, 1, 8, 8) of pixels from 0 to 1, in random order, and their classes."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    x = torch.tensor(data.images[order] / 16, dtype=torch.float32)[:, None]
    return x, torch.tensor(data.target[order])


def accuracy(net, x, y):
    return (net.eval()(x).argmax(dim=1) == y).float().mean().item()


# ---- adversarial examples ----


@pytest.fixture(scope="module")
def attacked(digits):
    """Accuracies of a plain and of an adversarially trained network, clean and attacked."""
    x, y = digits[0].flatten(1), digits[1]
    held, truth = x[1200:], y[1200:]
    found = {}
    for name, objective in (
        ("plain", CrossEntropy()),
        ("trained", Adversarial(CrossEntropy(), 0.15, limits=(0, 1))),
    ):
        torch.manual_seed(0)
        net = MLP(64, 10, hidden=(64,))
        settings = {"epochs": 30, "batch_size": 64, "lr": 3e-3}
        train_tensors(
            net, objective, x[:1200], y[:1200], training=Training(validation=0), **settings
        )
        source = torch.Generator().manual_seed(0)
        noise = torch.randn(held.shape, generator=source)
        found[name] = {
            "clean": accuracy(net, held, truth),
            "fgsm": accuracy(
                net, fgsm(net, CrossEntropy(), held, truth, 0.15, limits=(0, 1)), truth
            ),
            "signs": accuracy(net, (held + 0.15 * noise.sign()).clamp(0, 1), truth),
            "l2": accuracy(net, pgd(net, CrossEntropy(), held, truth, 1.0, norm="l2"), truth),
            "l2 noise": accuracy(net, held + noise / noise.norm(dim=1, keepdim=True), truth),
        }
    return found


def test_accuracy_collapses_under_small_steps_along_the_sign_of_the_gradient(attacked):
    plain = attacked["plain"]
    assert plain["clean"] > 0.94
    assert plain["fgsm"] < 0.3


def test_a_search_for_bad_inputs_succeeds_where_noise_of_equal_norm_does_not(attacked):
    plain = attacked["plain"]
    assert plain["signs"] > plain["fgsm"] + 0.5
    assert plain["l2 noise"] > 0.9
    assert plain["l2"] < 0.05


def test_training_on_attacked_rows_makes_robust_and_stays_accurate(attacked):
    plain, trained = attacked["plain"], attacked["trained"]
    assert trained["fgsm"] > plain["fgsm"] + 0.3
    assert trained["clean"] > plain["clean"] - 0.02


# ---- augmentation and synthetic rows ----


def test_training_on_moved_images_helps_on_moved_images(digits):
    x, y = digits
    moves = Rotate(20) | Shift(0.15)
    held, _ = moves(x[1200:], generator=torch.Generator().manual_seed(9))
    found = []
    for objective in (CrossEntropy(), Augmented(CrossEntropy(), moves | Zoom())):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Flatten(), MLP(64, 10, hidden=(128,)))
        settings = {"epochs": 60, "batch_size": 64, "lr": 3e-3}
        train_tensors(net, objective, x[:300], y[:300], training=Training(validation=0), **settings)
        found.append(accuracy(net, held, y[1200:]))
    assert found[1] > found[0] + 0.2


def test_synthetic_rows_improve_a_small_training_set(digits):
    x, y = digits
    make, gains = Rotate(10) | Shift(0.06) | Noise(0.05), []
    for seed in range(3):
        source = torch.Generator().manual_seed(seed)
        copies, labels = make(x[:120].repeat(9, 1, 1, 1), y[:120].repeat(9), generator=source)
        larger = torch.cat([x[:120], copies]), torch.cat([y[:120], labels])
        scores = []
        for (rows, codes), epochs in (((x[:120], y[:120]), 200), (larger, 20)):  # equal steps
            model = MLPClassifier(
                hidden=(64,),
                epochs=epochs,
                lr=3e-3,
                training=Training(validation=0),
                random_state=seed,
            ).fit(rows.flatten(1).numpy(), codes.numpy())
            scores.append(model.score(x[600:].flatten(1).numpy(), y[600:].numpy()))
        gains.append(scores[1] - scores[0])
    assert min(gains) > 0
    assert np.mean(gains) > 0.01


# ---- early stopping ----


def test_early_stopping_of_gradient_descent_is_nearly_ridge_regression():
    # On a quadratic, tau steps of length eps shrink like a penalty alpha with eps tau alpha = 1.
    source = torch.Generator().manual_seed(0)
    rows, features, eps = 200, 8, 0.05
    basis = torch.linalg.qr(torch.randn(rows, features, generator=source).double())[0]
    scales = torch.logspace(-1.5, 0.3, features).double()
    x = basis * scales * rows**0.5  # the Hessian of the mean loss has eigenvalues scales^2
    y = x @ (torch.randn(features, 1, generator=source).double() / scales[:, None])
    y += torch.randn(rows, 1, generator=source).double()
    free = torch.linalg.lstsq(x, y).solution[:, 0]
    for tau in (10, 40, 160):
        net = nn.Linear(features, 1, bias=False).double()
        nn.init.zeros_(net.weight)
        training = Training(optimizer="sgd", validation=0)
        objective = SquaredError(scale="half")
        train_tensors(net, objective, x, y, training=training, epochs=tau, batch_size=rows, lr=eps)
        stopped = net.weight.detach()[0]
        alphas = np.geomspace(0.2, 5, 60) / (eps * tau)
        ridges = [
            torch.from_numpy(Ridge(alpha=rows * a, fit_intercept=False).fit(x, y[:, 0]).coef_)
            for a in alphas
        ]
        gaps = torch.stack([((stopped - ridge) / free).norm() for ridge in ridges])
        assert 0.4 < alphas[int(gaps.argmin())] * eps * tau < 1.2
        assert gaps.min() < 0.1 * features**0.5
        slow = scales.square() * eps * tau < 0.05  # directions hardly begun: both shrink alike
        same = Ridge(alpha=rows / (eps * tau), fit_intercept=False).fit(x, y[:, 0]).coef_
        assert_close(stopped[slow], torch.from_numpy(same)[slow], rtol=0.03, atol=0)
        assert slow.any()


def test_training_halts_by_the_mistakes_while_the_likelihood_still_has_a_slope():
    X, y = moons(400, noise=0.15)
    x, codes = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    held = x[200:], codes[200:]

    def fit(objective, patience, epochs):
        torch.manual_seed(0)
        net = MLP(2, 2, hidden=(32,))
        training = Training(patience=patience)
        state = train_tensors(
            net, objective, x[:200], codes[:200], validation=held, training=training,
            epochs=epochs, batch_size=200, lr=0.01,
        )  # fmt: skip
        loss = CrossEntropy().rows(net(x[:200]), codes[:200]).mean()
        slopes = torch.cat(list(layer_gradients(net, loss).values()))
        return net, state, slopes.norm().item()

    net, state, slope = fit(Surrogate(CrossEntropy(), ZeroOne()), patience=20, epochs=500)
    watched = [line["val_loss"] for line in state.history]
    assert state.stopped is not None
    assert len(watched) < 250
    assert all(abs(value * 200 - round(value * 200)) < 1e-4 for value in watched)  # mistakes
    assert 1 - accuracy(net, *held) == pytest.approx(min(watched), abs=1e-6)
    _, _, settled = fit(CrossEntropy(), patience=None, epochs=500)
    assert slope > 3 * settled


def test_the_noise_of_a_small_batch_falls_with_its_size():
    torch.manual_seed(0)
    net, rows = MLP(4, 2, hidden=(6,)).double(), 2000
    x, y = torch.randn(rows, 4).double(), torch.randint(2, (rows,))

    def gradient(index):
        loss = CrossEntropy().rows(net(x[index]), y[index]).mean()
        return torch.cat(list(layer_gradients(net, loss).values()))

    whole, noise = gradient(torch.arange(rows)), []
    for size in (4, 16, 64):
        drawn = [gradient(torch.randint(rows, (size,))) - whole for _ in range(300)]
        noise.append(torch.stack(drawn).square().sum(dim=1).mean().item())
    assert noise[0] / noise[1] == pytest.approx(4, rel=0.25)
    assert noise[1] / noise[2] == pytest.approx(4, rel=0.25)


# ---- bias, variance and capacity ----


def test_bias_and_variance_of_ridge_on_a_gaussian_basis():
    # 24 Gaussian bases of width 0.1 and a bias; 100 sets of 25 points of a noisy sine.
    centres = np.linspace(0, 1, 24)
    basis = FunctionTransformer(lambda x: np.exp(-np.square(x - centres) / (2 * 0.1**2)))

    def sample(rng):
        x = rng.uniform(size=(25, 1))
        return x, np.sin(2 * np.pi * x[:, 0]) + 0.3 * rng.normal(size=25)

    x = np.linspace(0, 1, 100)[:, None]
    found = BiasVariance.from_sampler(
        make_pipeline(basis, Ridge()),
        sample,
        x,
        np.sin(2 * np.pi * x[:, 0]),
        parameter="ridge__alpha",
        values=[13.46, 0.733, 0.0907],
        repeats=100,
    )
    np.testing.assert_allclose(found.bias, [0.0681, 0.0016, 0.0006], atol=0.006)
    np.testing.assert_allclose(found.variance, [0.0100, 0.0227, 0.0361], atol=0.004)
    np.testing.assert_allclose(found.bias + found.variance, found.error, atol=1e-12)
    assert found.bias[0] > 4 * found.variance[0]
    assert found.variance[2] > 4 * found.bias[2]
    assert found.error.argmin() == 1


@pytest.mark.parametrize(
    "change",
    [{"hidden": (64,)}, {"training__weight_decay": 0.0}, {"epochs": 200}],
    ids=["capacity", "penalty", "longer"],
)
def test_an_underfit_network_is_helped_by_capacity_less_penalty_and_time(change):
    X, y = sine(200)
    poor = MLPRegressor(
        hidden=(4,),
        epochs=20,
        lr=0.005,
        training=Training(weight_decay=0.3, validation=0),
        random_state=0,
    )
    better = clone(poor).set_params(**change)
    errors = [np.mean((m.fit(X, y).predict(X) - y) ** 2) for m in (poor, better)]
    assert errors[0] > 0.05  # noise has a variance of 0.01
    assert errors[1] < 0.9 * errors[0]


def test_the_test_error_of_a_large_model_may_fall_rise_and_fall_again_over_epochs():
    # 76 features for 60 rows with noisy targets: 36 directions are learnt fast and then fit the
    # noise and what the 40 slow ones have not explained yet, until those are learnt too.
    scales, strengths = np.repeat([1.0, 0.1], [36, 40]), np.repeat([3.0, 2.0], [36, 40])
    curves = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.normal(size=(76, 76)))[0]
        weights = strengths * rng.normal(size=76) / np.repeat([6, 40**0.5], [36, 40]) / scales

        def draw(rows, rng=rng, turn=turn, weights=weights):
            z = rng.normal(size=(rows, 76)) * scales
            return z @ turn, z @ weights

        X, y = draw(60)
        model = MLPRegressor(
            hidden=(),
            epochs=400,
            batch_size=60,
            lr=0.08,
            training=Training(optimizer="sgd"),
            random_state=0,
        )
        shown = DoubleDescent.over_epochs(model, X, y + rng.normal(size=60), *draw(500))
        assert (np.diff(shown.train) < 1e-6).all()
        curves.append(shown.test)
    test = np.mean(curves, axis=0)
    low = int(test[:20].argmin())
    high = low + int(test[low:].argmax())
    assert test[0] > 1.1 * test[low]
    assert test[high] > 1.1 * test[low]
    assert test[-1] < 0.8 * test[high]


# ---- the shape of minima ----


def test_minima_of_deep_networks_are_flatter_with_skips_and_with_width(digits):
    x, y = digits[0].flatten(1), digits[1]

    def build(width, skip):
        torch.manual_seed(0)
        blocks = [
            nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU())
            for _ in range(10)
        ]
        blocks = [Residual(block) for block in blocks] if skip else blocks
        return nn.Sequential(nn.Linear(64, width), nn.ReLU(), *blocks, nn.Linear(width, 10))

    sharpness, scores = {}, {}
    for width, skip in ((24, True), (24, False), (64, True), (64, False)):
        net, training = build(width, skip), Training(validation=0, clip=1.0)
        settings = {"epochs": 40, "batch_size": 50, "lr": 2e-3}
        train_tensors(net, CrossEntropy(), x[:300], y[:300], training=training, **settings)
        shown = LossLandscape.from_network(
            net, CrossEntropy(), x[:300], y[:300], points=5, radius=0.15
        )
        assert shown.centre < 0.2
        sharpness[width, skip] = shown.sharpness()
        scores[width, skip] = accuracy(net, x[800:], y[800:])
    for width in (24, 64):
        assert sharpness[width, True] < 0.5 * sharpness[width, False]
        assert scores[width, True] > scores[width, False]
    for skip in (True, False):
        assert sharpness[64, skip] < sharpness[24, skip]


# ---- penalties together ----


def test_beside_dropout_validation_chooses_a_weaker_penalty():
    X, y = moons(700, noise=0.35)
    x, codes = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    strengths, chosen = (0.0, 0.001, 0.003, 0.01), []
    for dropout in (0.0, 0.5):
        losses = np.zeros(len(strengths))
        for i, alpha in enumerate(strengths):
            for seed in range(2):
                torch.manual_seed(seed)
                net = MLP(2, 2, hidden=(64,), dropout=dropout)
                settings = {"epochs": 100, "batch_size": 30, "lr": 0.01}
                train_tensors(
                    net,
                    CrossEntropy() + L2(alpha),
                    x[:60],
                    codes[:60],
                    training=Training(validation=0),
                    **settings,
                )
                losses[i] += CrossEntropy().rows(net.eval()(x[60:]), codes[60:]).mean().item()
        chosen.append(strengths[losses.argmin()])
    assert chosen == [0.003, 0.001]
