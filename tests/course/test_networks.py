"""What networks can compute and how their units behave: the course's experiments, small."""

import numpy as np
import pytest
import torch
from sklearn.model_selection import PredefinedSplit
from torch import nn
from torch.testing import assert_close

from castalia import MLPClassifier, MLPRegressor, Training
from castalia.nets.dense import MLP
from castalia.nn import Clipped, Cosine, Residual, layer_gradients, saturation
from castalia.objectives import (
    BinaryCrossEntropy,
    CrossEntropy,
    GaussianLikelihood,
    SquaredError,
    ZeroOne,
)
from castalia.testing import train_tensors
from castalia.testing.toys import blobs, sine
from castalia.tune import GridSearch

WHOLE = Training(optimizer="lbfgs", validation=0)  # on all rows at once


def grid(n, low=-1.0, high=1.0):
    return torch.linspace(low, high, n, dtype=torch.float64)


def dense(*sizes, **settings):
    torch.manual_seed(0)
    return MLP(sizes[0], sizes[-1], hidden=sizes[1:-1], **settings).double()


def test_an_output_clipped_to_probabilities_never_learns_from_what_it_gets_quite_wrong():
    x = grid(40)[:, None]
    y = (x > 0).double()
    clipped, logistic = nn.Sequential(dense(1, 1), Clipped()), dense(1, 1)
    for net in (clipped[0], logistic):
        net.layers[0].weight.data.fill_(-5.0)
        net.layers[0].bias.data.zero_()
    far = x.abs().squeeze(1) > 0.21  # beyond, the clipped output is 0 or 1, and wrong
    error = SquaredError().rows(clipped(x[far]), y[far]).mean()
    gradients = torch.autograd.grad(error, list(clipped.parameters()))
    assert all(bool((g == 0).all()) for g in gradients)
    settings = {"training": Training(validation=0), "epochs": 60, "lr": 0.3}
    train_tensors(clipped, SquaredError(), x[far], y[far], **settings)
    train_tensors(logistic, BinaryCrossEntropy(), x[far], y[far], **settings)
    assert clipped[0].layers[0].weight.item() == -5.0
    assert ZeroOne().rows(clipped(x[far]) - 0.5, y[far]).mean() == 1
    assert ZeroOne().rows(logistic(x[far]), y[far]).mean() == 0


def test_a_cosine_unit_is_the_cosine_and_its_slope_minus_the_sine():
    z = grid(41, -6, 6).requires_grad_()
    out = Cosine()(z)
    assert_close(out.detach(), torch.from_numpy(np.cos(z.detach().numpy())))
    (slope,) = torch.autograd.grad(out.sum(), z)
    assert_close(slope, torch.from_numpy(-np.sin(z.detach().numpy())))


def test_cosine_units_fit_a_curve_about_as_well_as_relu_units():
    (x, y), (new_x, new_y) = (
        (torch.tensor(a), torch.tensor(b)[:, None]) for a, b in (sine(200, seed=s) for s in (0, 1))
    )
    errors = {}
    for name in ("relu", "cosine"):
        net = dense(1, 32, 1, activation=name)
        assert isinstance(net.layers[1], Cosine) is (name == "cosine")
        settings = {"epochs": 80, "batch_size": 50, "lr": 0.01}
        train_tensors(net, SquaredError(), x, y, training=Training(validation=0), **settings)
        errors[name] = SquaredError().rows(net(new_x), new_y).mean().item()
    assert errors["cosine"] < 2 * errors["relu"]
    assert errors["cosine"] < 0.1 * new_y.var().item()


def test_a_linear_output_trained_on_squares_is_the_mean_of_a_gaussian():
    x = torch.randn(30, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = x.sum(dim=1, keepdim=True).sin()
    ends = []
    for objective, lr in (
        (SquaredError(scale="half"), 0.1),
        (GaussianLikelihood(scale=0.5), 0.1 * 0.5**2),
    ):
        net = dense(2, 5, 1, activation="tanh")
        training = Training(optimizer="sgd", validation=0)
        train_tensors(net, objective, x, y, training=training, epochs=4, batch_size=10, lr=lr)
        ends.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    assert_close(ends[0], ends[1])  # the same descent, up to the factor 1 / scale^2
    assert not torch.allclose(ends[0][:5], dense(2, 5, 1).layers[0].weight.flatten()[:5])


def test_classifiers_answer_with_normalised_exponentials_and_the_largest_of_them():
    X, y = blobs(120, classes=3)
    model = MLPClassifier(hidden=(8,), epochs=20, lr=0.02, random_state=0).fit(X, y)
    seen = []
    model.module_.register_forward_hook(lambda net, inputs, output: seen.append(output))
    found = model.predict_proba(X)
    z = torch.cat(seen).double().numpy()
    np.testing.assert_allclose(found, np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), model.classes_[z.argmax(axis=1)])


def test_one_hidden_layer_comes_as_close_as_wanted_to_a_continuous_function():
    x = grid(100)[:, None]
    y = torch.sin(4 * x)
    furthest = []
    for units in (1, 2, 4, 8):
        net = dense(1, units, 1, activation="tanh")
        settings = {"epochs": 6, "batch_size": 100, "lr": 1.0}
        train_tensors(net, SquaredError(), x, y, training=WHOLE, **settings)
        furthest.append((net(x) - y).abs().max().item())
    assert furthest == sorted(furthest, reverse=True)
    assert furthest[-1] < 0.05 < furthest[0]


def test_without_biases_some_continuous_functions_stay_out_of_reach():
    net = dense(1, 50, 1, activation="tanh")
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter).requires_grad_(False)
    x = grid(101)[:, None]
    train_tensors(net, SquaredError(), x, torch.cos(x), epochs=20, lr=0.01)
    assert net(torch.zeros(1, 1).double()).item() == 0  # whatever the width; cos(0) is 1


def test_the_set_on_which_a_decision_is_missed_shrinks_with_the_width():
    def disc(n):
        points = torch.cartesian_prod(grid(n), grid(n))
        return points, (points.square().sum(dim=1, keepdim=True) < 0.5).double()

    (x, y), (fine, truth) = disc(21), disc(101)
    missed = []
    for units in (1, 2, 4):
        net = dense(2, units, 1, activation="tanh")
        settings = {"epochs": 5, "batch_size": 441, "lr": 1.0}
        train_tensors(net, SquaredError(), x, y, training=WHOLE, **settings)
        missed.append(((net(fine) - truth).abs() > 0.25).double().mean().item())
    assert missed == sorted(missed, reverse=True)
    assert missed[-1] < 0.25 < missed[0]  # within eps except on a set of measure eps


def saw(x, folds):
    """Fold the unit interval ``folds`` times: a sawtooth with 2^(folds - 1) teeth."""
    for _ in range(folds):
        x = 1 - (2 * x - 1).abs()
    return x


def deep_saw(folds):
    """The sawtooth with two units a layer: relu(2x) - relu(4x - 2) is one fold."""
    net = dense(1, *[2] * folds, 1)
    for layer in net.layers[::2]:
        layer.weight.data = torch.tensor([[2.0, -2.0], [4.0, -4.0]]).double()
        layer.bias.data = torch.tensor([0.0, -2.0]).double()
    net.layers[0].weight.data = torch.tensor([[2.0], [4.0]]).double()
    net.layers[-1].weight.data = torch.tensor([[1.0, -1.0]]).double()
    net.layers[-1].bias.data = torch.zeros(1).double()
    return net


def shallow_saw(units, folds):
    """The best sum of ``units`` ReLU units with evenly spaced kinks, by least squares."""
    net, x = dense(1, units, 1), grid(4097, 0, 1)[:, None]
    net.layers[0].weight.data = torch.ones(units, 1).double()
    net.layers[0].bias.data = -grid(units + 1, 0, 1)[:-1]
    features = torch.cat([net.layers[1](net.layers[0](x)), torch.ones_like(x)], dim=1)
    best = torch.linalg.lstsq(features, saw(x, folds)).solution
    net.layers[2].weight.data, net.layers[2].bias.data = best[:-1].T, best[-1]
    return net


def test_a_deep_network_needs_fewer_parameters_than_a_wide_one_for_a_sawtooth():
    folds, x = 6, grid(4097, 0, 1)[:, None]
    deep, wide, small = deep_saw(folds), shallow_saw(64, folds), shallow_saw(12, folds)
    furthest = [(net(x) - saw(x, folds)).abs().max().item() for net in (deep, wide, small)]
    sizes = [sum(p.numel() for p in net.parameters()) for net in (deep, wide, small)]
    assert sizes == [37, 193, 37]
    assert furthest[0] < 1e-9
    assert furthest[1] < 1e-9
    assert furthest[2] > 0.4  # as many parameters as the deep one, 13 pieces for 64


def test_the_hidden_unit_is_chosen_by_its_validation_error():
    random = np.random.default_rng(0)
    X = random.uniform(-3, 3, (240, 1))
    y = np.sin(2 * X[:, 0]) + 0.05 * random.normal(size=240)
    rows = np.arange(240)
    model = MLPRegressor(hidden=(16,), epochs=25, lr=0.02, random_state=0)
    names = ["identity", "sigmoid", "tanh", "cosine"]
    search = GridSearch(
        estimator=model,
        space={"activation": names},
        cv=PredefinedSplit(np.where(rows < 160, -1, 0)),
        scoring="neg_mean_squared_error",
        refit=False,
    ).fit(X, y)
    errors = {}
    for name in names:
        fitted = MLPRegressor(**{**model.get_params(), "activation": name}).fit(X[:160], y[:160])
        errors[name] = np.square(fitted.predict(X[160:]) - y[160:]).mean()
    found = dict(
        zip(
            search.cv_results_["param_activation"],
            search.cv_results_["mean_test_score"],
            strict=True,
        )
    )
    assert found == pytest.approx({name: -error for name, error in errors.items()})
    assert search.best_params_["activation"] == min(errors, key=errors.get) != "identity"
    assert -search.best_score_ == pytest.approx(min(errors.values()))


def test_large_weights_saturate_every_unit_and_scaled_ones_none():
    x = torch.randn(256, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for name in ("tanh", "sigmoid"):
        net = dense(64, 64, 64, 64, 10, activation=name)
        share = {}
        for gain in (1.0, 1000.0):
            for layer in net.layers[::2]:
                nn.init.xavier_uniform_(layer.weight, gain)
            share[gain] = saturation(net, x)
        assert len(share[1.0]) == 3
        assert max(share[1.0].values()) < 0.02
        assert min(share[1000.0].values()) > 0.98


def test_gradients_of_layers_vanish_under_sigmoids_and_not_under_relu_or_tanh():
    source = torch.Generator().manual_seed(0)
    x, y = torch.randn(256, 256, generator=source), torch.randint(10, (256,), generator=source)
    spread = {}
    for name in ("sigmoid", "relu", "tanh"):
        torch.manual_seed(0)
        net = MLP(256, 10, hidden=(128,) * 4, activation=name)
        loss = CrossEntropy().rows(net(x), y).mean()
        spread[name] = [g.std().item() for g in layer_gradients(net, loss).values()]
    ratios = [a / b for a, b in zip(spread["sigmoid"], spread["sigmoid"][1:], strict=False)]
    assert max(ratios) < 0.25  # layer for layer
    assert spread["sigmoid"][0] < 1e-3 * spread["sigmoid"][-1]
    for name in ("relu", "tanh"):
        assert max(spread[name]) < 10 * min(spread[name])


def tower(inputs, outputs, depth=12, width=16):
    """Return a deep network: a trunk of residual blocks with batch normalisation, and a head."""
    torch.manual_seed(0)
    blocks = [
        Residual(nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU()))
        for _ in range(depth)
    ]
    trunk = nn.Sequential(nn.Linear(inputs, width), *blocks)
    return nn.Sequential(trunk, nn.BatchNorm1d(width), nn.Linear(width, outputs)).double()


def rings(n, seed):
    """Points in the plane and the ring, of four, they lie in."""
    points = torch.randn(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    radius = points.norm(dim=1)
    return points, torch.bucketize(radius, torch.tensor([0.7, 1.2, 1.7], dtype=torch.float64))


def test_a_deep_network_with_residuals_trains_and_what_it_learnt_serves_another_task():
    x, y = rings(600, 0)
    new_x, new_y = rings(600, 1)
    net = tower(2, 4)
    settings = {"training": Training(validation=0), "batch_size": 50}
    train_tensors(net, CrossEntropy(), x, y, epochs=15, lr=0.01, **settings)
    net.eval()
    assert ZeroOne().rows(net(new_x), new_y).mean() < 0.1
    errors = {}
    for name, trunk in (("learnt", net[0]), ("random", tower(2, 4).eval()[0])):
        with torch.no_grad():
            features, new_features = trunk(x), trunk(new_x)
        head = dense(16, 1)
        target, new_target = (p.norm(dim=1, keepdim=True) for p in (x, new_x))
        train_tensors(head, SquaredError(), features, target, epochs=40, lr=0.01, **settings)
        errors[name] = SquaredError().rows(head(new_features), new_target).mean().item()
    assert errors["learnt"] < 0.5 * errors["random"]
