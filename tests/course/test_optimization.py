"""Experiments on gradient descent and its noise, run by the library's loop."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import Callback, Training
from castalia.data import TableEncoder
from castalia.objectives import Objective, SquaredError
from castalia.optim import build_optimizer, inverse_time
from castalia.protocols import Batch
from castalia.testing import train_tensors


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def fit(net, objective, x, y=None, *, epochs=1, batch_size=None, lr=0.1, callbacks=(), **own):
    training = Training(**{"optimizer": "sgd", "validation": 0, **own}, callbacks=callbacks)
    size = len(x) if batch_size is None else batch_size
    return train_tensors(
        net, objective, x, y, training=training, epochs=epochs, batch_size=size, lr=lr
    )


def line(weight=None, inputs=3):
    """Return a linear unit without bias."""
    net = nn.Linear(inputs, 1, bias=False).double()
    nn.init.zeros_(net.weight)
    if weight is not None:
        net.weight.data.copy_(torch.as_tensor(weight))
    return net


class Chains(nn.Module):
    """Many independent weights, one a column of the rows: each is an experiment of its own."""

    def __init__(self, width, start=0.0):
        super().__init__()
        self.w = nn.Parameter(torch.full((width,), start, dtype=torch.float64))


class HalfSquare(Objective):
    """1/2 (w - x)^2 in every column, whose gradient is w - x."""

    def terms(self, net, batch, phase):
        return {"loss": 0.5 * (net.w - batch.x).square().sum(1).mean()}


class Path(Callback):
    """Keeps the weights, the rates and a loss after every step."""

    def __init__(self, loss=lambda net: 0.0):
        self.loss, self.weights, self.rates, self.losses = loss, [], [], []

    def on_batch_end(self, state):
        self.weights.append(torch.cat([p.detach().flatten() for p in state.net.parameters()]))
        self.rates.append(state.lr)
        with torch.no_grad():
            self.losses.append(float(self.loss(state.net)))


# ---- one example, one batch, all of them ----


def test_the_expected_step_of_stochastic_descent_is_the_step_on_all_data():
    x, y = draw(20, 3), draw(20, 1, seed=1)
    start = [[0.3, -0.2, 0.5]]
    steps = []
    for i in range(20):
        net = line(start)
        fit(net, SquaredError(), x[i : i + 1], y[i : i + 1])
        steps.append(net.weight.detach() - torch.tensor(start))
    whole = line(start)
    fit(whole, SquaredError(), x, y)
    assert_close(torch.stack(steps).mean(0), whole.weight.detach() - torch.tensor(start))
    assert torch.stack(steps).std(0).min() > 0.01


def test_with_identical_copies_one_example_gives_the_gradient_of_all_exactly():
    row, target = torch.tensor([[1.0, -2.0, 0.5]]).double(), torch.tensor([[4.0]]).double()
    gradients = []
    for copies in (1, 64):
        net, batch = line(), Batch(row.repeat(copies, 1), target.repeat(copies, 1))
        SquaredError().terms(net, batch, "train")["loss"].backward()
        gradients.append(net.weight.grad)
    assert torch.equal(*gradients)
    assert gradients[0].abs().min() > 0


def test_a_hundred_times_the_rows_make_the_gradient_ten_times_as_precise():
    source = torch.Generator().manual_seed(0)

    def deviation(n):
        found = []
        for _ in range(200):
            x = torch.randn(n, 8, generator=source, dtype=torch.float64)
            y = x.sum(1, keepdim=True) + torch.randn(n, 1, generator=source, dtype=torch.float64)
            net = line(inputs=8)
            SquaredError().terms(net, Batch(x, y), "train")["loss"].backward()
            found.append(net.weight.grad)
        return torch.cat(found).std(0).mean().item()

    assert deviation(100) / deviation(10_000) == pytest.approx(10, rel=0.1)


def test_on_redundant_data_stochastic_descent_needs_far_fewer_example_gradients():
    x = draw(32, 3).repeat(32, 1)  # 1024 rows, 32 different ones
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]]).double()

    def gradients_until(batch_size, lr, epochs):
        path = Path(lambda net: (net(x) - y).square().mean())
        fit(
            line(), SquaredError(), x, y, batch_size=batch_size, lr=lr, epochs=epochs,
            callbacks=[path],
        )  # fmt: skip
        return batch_size * next(k for k, loss in enumerate(path.losses, 1) if loss < 1e-3)

    curvature = torch.linalg.eigvalsh(2 * x.T @ x / len(x))
    best = 2 / (curvature[0] + curvature[-1]).item()  # of all constant rates on all data
    assert gradients_until(1, 0.05, epochs=1) < gradients_until(1024, best, epochs=30) / 5


# ---- the noise of stochastic descent ----


def stationary_variance(lr, **own):
    path = Path()
    fit(Chains(200), HalfSquare(), draw(1500, 200), batch_size=1, lr=lr, callbacks=[path], **own)
    return torch.stack(path.weights[1000:]).square().mean().item()


def test_a_constant_rate_leaves_a_variance_proportional_to_it():
    small, large = stationary_variance(0.02), stationary_variance(0.08)
    assert small == pytest.approx(0.02 / 1.98, rel=0.1)  # e / (2 - e), from v = (1-e)^2 v + e^2
    assert large == pytest.approx(0.08 / 1.92, rel=0.1)
    assert large / small == pytest.approx(4, rel=0.1)


def test_steps_of_one_over_t_converge_to_the_mean_and_constant_ones_do_not():
    x, net, path = draw(1500, 200), Chains(200), Path()
    fit(net, HalfSquare(), x, batch_size=1, lr=1.0, schedule=inverse_time(1.0), callbacks=[path])
    assert path.rates[:3] == pytest.approx([1, 1 / 2, 1 / 3])
    assert_close(net.w.detach(), x.mean(0))  # exactly the mean of what was seen
    assert net.w.detach().square().mean().item() == pytest.approx(1 / 1500, rel=0.3)
    assert stationary_variance(0.08) > 30 * net.w.detach().square().mean().item()


class DoubleWell(Objective):
    """(w^2 - 1)^2 + 0.3 w, with a poor valley at 0.96 and the good one at -1.04; rows add noise."""

    def terms(self, net, batch, phase):
        w = net.w
        return {"loss": ((w**2 - 1) ** 2 + 0.3 * w + 4 * batch.x * w).sum(1).mean()}


def test_the_noise_of_stochastic_descent_leaves_a_valley_in_which_descent_stays():
    noise = draw(256, 100)
    noise -= noise.mean(0)  # over all rows it vanishes: the full gradient has none
    escaped = {}
    for size in (1, 256):
        net = Chains(100, start=0.96)
        fit(net, DoubleWell(), noise, batch_size=size, lr=0.05, epochs=2 if size == 1 else 100)
        escaped[size] = (net.w < 0).double().mean().item()
    assert escaped[256] == 0
    assert escaped[1] > 0.1


def test_the_basin_that_is_reached_depends_on_the_start_and_several_starts_find_a_lower_one():
    def valley(start):
        w = torch.tensor([start], dtype=torch.float64, requires_grad=True)
        optimizer = build_optimizer("sgd", [w], lr=0.01)
        for _ in range(400):
            optimizer.zero_grad()
            loss = (w**4 - 4 * w**2 + w).sum()
            loss.backward()
            optimizer.step()
        return round(w.item(), 4), round(loss.item(), 4)

    starts = [2.0, 1.0, 0.5, -0.5, -2.0]
    places, lows = zip(*map(valley, starts), strict=True)
    assert places == (1.3470, 1.3470, 1.3470, -1.4730, -1.4730)  # roots of 4 w^3 - 8 w + 1
    assert min(lows) == lows[-1] < lows[0] - 2


# ---- cliffs and rates ----


class Power(nn.Module):
    """w^10 x: the same weight applied ten times, as in a recurrent network."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(1.6, dtype=torch.float64))

    def forward(self, x):
        return self.w**10 * x


def test_a_step_at_a_cliff_is_thrown_far_away_and_clipping_cures_it():
    x = torch.ones(4, 1, dtype=torch.float64)
    free = fit(Power(), SquaredError(), x, x, lr=0.01, epochs=2)
    losses = [entry["loss"] for entry in free.history]
    assert losses[1] > 10 * losses[0]
    bound = fit(Power(), SquaredError(), x, x, lr=0.01, epochs=120, clip=1.0)
    losses = [entry["loss"] for entry in bound.history]
    assert max(losses) == losses[0]
    assert losses[-1] < 0.02


def test_the_inverse_time_decay_of_the_keras_example():
    path, x = Path(), torch.ones(300, 1, dtype=torch.float64)
    schedule = inverse_time(1e-6)
    own = {"optimizer": "nesterov", "schedule": schedule, "callbacks": [path]}
    fit(line(inputs=1), SquaredError(), x, x, lr=0.01, batch_size=100, epochs=2, **own)
    assert path.rates == pytest.approx([0.01 / (1 + 1e-6 * t) for t in range(6)], rel=1e-12)
    assert 0.01 * schedule(1_000_000, 0) == pytest.approx(0.005)


# ---- inputs on one scale ----


def test_standardised_inputs_have_mean_0_and_deviation_1_and_make_descent_faster():
    random = np.random.default_rng(0)
    scales = np.array([1.0, 10.0, 0.5])
    train, test = (random.normal(size=(200, 3)) * scales + [5, -20, 1] for _ in range(2))
    encoder = TableEncoder().fit(train)
    found = encoder.encode(train, np.float64)
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(found.std(0), 1)
    expected = (test - train.mean(0)) / train.std(0)  # the scales of the training rows
    np.testing.assert_allclose(encoder.encode(test, np.float64), expected)

    def loss_after(x):
        x = torch.as_tensor(x)
        y = torch.as_tensor(train @ [1.0, 0.1, 2.0])[:, None]
        curvature = torch.linalg.eigvalsh(2 * torch.cov(x.T, correction=0))
        net = nn.Linear(3, 1).double()
        with torch.no_grad():
            net.weight.zero_()
            net.bias.copy_(y.mean())
        rate = min(2 / (curvature[0] + curvature[-1]).item(), 0.5)
        return fit(net, SquaredError(), x - x.mean(0), y, lr=rate, epochs=30).history[-1]["loss"]

    assert loss_after(found) < 1e-6
    assert loss_after(train) > 0.1
