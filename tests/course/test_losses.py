"""Risk, likelihood and the best that can be done: the course's statements, tried on data."""

import math

import numpy as np
import pytest
import scipy.stats as st
import torch
from torch import nn
from torch.testing import assert_close

from castalia import MLPClassifier, MLPRegressor, Training
from castalia.evaluate import bootstrap
from castalia.nets.dense import MLP
from castalia.objectives import (
    L1,
    L2,
    BernoulliLikelihood,
    CrossEntropy,
    GaussianLikelihood,
    Hinge,
    Logistic,
    MultinoulliLikelihood,
    Objective,
    SquaredError,
    ZeroOne,
    bayes_error,
    cross_entropy,
    entropy,
    kl_divergence,
    map_hypothesis,
    posterior,
    weighted_mean,
)
from castalia.protocols import Batch
from castalia.testing import train_tensors

WHOLE = Training(optimizer="lbfgs", validation=0)  # on all rows at once


class Constant(nn.Module):
    """Answers every row alike: the network of an unconditional distribution."""

    def __init__(self, outputs):
        super().__init__()
        self.answer = nn.Parameter(torch.zeros(outputs, dtype=torch.float64))

    def forward(self, x):
        return self.answer.expand(len(x), -1)


def fit_constant(objective, outputs, y):
    net = Constant(outputs)
    settings = {"epochs": 5, "batch_size": len(y), "lr": 1.0}
    train_tensors(net, objective, torch.zeros(len(y), 1).double(), y, training=WHOLE, **settings)
    return net.answer.detach()


def test_minimising_a_surrogate_lowers_the_error():
    source = torch.Generator().manual_seed(0)
    x = torch.randn(200, 2, generator=source, dtype=torch.float64)
    y = (x[:, 0] + x[:, 1] > 0.3).double()[:, None]
    for objective in (Hinge(), Logistic()):
        torch.manual_seed(3)
        net = MLP(2, 1, hidden=()).double()
        before = ZeroOne().rows(net(x), y).mean().item()
        train_tensors(net, objective, x, y, training=Training(validation=0), epochs=20, lr=0.05)
        assert ZeroOne().rows(net(x), y).mean().item() < 0.05 < before


def test_the_mean_loss_of_a_sample_estimates_the_risk():
    source, spread = torch.Generator().manual_seed(0), 0.3
    x = torch.randn(100_000, 1, generator=source, dtype=torch.float64)
    y = 2 * x + spread * torch.randn(x.shape, generator=source, dtype=torch.float64)
    rows = SquaredError().rows(1.5 * x, y)  # of the predictor 1.5 x, where 2 x is right
    risk = 0.5**2 * 1.0 + spread**2
    error = rows.std() / math.sqrt(len(x))
    assert abs(rows.mean() - risk) < 3 * error
    assert error < 0.01 * risk


def test_the_trained_model_beats_every_competitor_on_its_training_rows():
    source = torch.Generator().manual_seed(0)
    x = torch.randn(25, 3, generator=source, dtype=torch.float64)
    truth = torch.tensor([[1.0], [-2.0], [0.5]]).double()
    y = x @ truth + 0.5 * torch.randn(25, 1, generator=source, dtype=torch.float64)
    net = MLP(3, 1, hidden=()).double()
    train_tensors(net, SquaredError(), x, y, training=WHOLE, epochs=3, batch_size=25, lr=1.0)
    best = SquaredError().rows(net(x), y).mean().item()
    rivals = [truth, *(truth + 0.3 * torch.randn(3, 1, generator=source) for _ in range(200))]
    assert best < min(SquaredError().rows(x @ w.double(), y).mean().item() for w in rivals)
    new = torch.randn(2000, 3, generator=source, dtype=torch.float64)
    fresh = new @ truth + 0.5 * torch.randn(2000, 1, generator=source, dtype=torch.float64)
    # The same minimum says too little about new rows: there the truth is better.
    ideal = SquaredError().rows(new @ truth, fresh).mean()
    assert best < ideal < SquaredError().rows(net(new), fresh).mean()


def test_an_interval_from_held_out_rows_covers_the_true_error():
    random = np.random.default_rng(0)
    rate = st.norm.cdf(1.0)  # accuracy of the sign of x when the classes lie at -1 and +1
    covered = 0
    for i in range(200):
        y = random.integers(0, 2, 300)
        x = random.normal(2 * y - 1)
        found = bootstrap("accuracy", y, (x > 0).astype(int), random_state=i)
        covered += found.low <= rate <= found.high
    assert 180 <= covered <= 199  # 95 % of 200, give or take three standard errors


def test_a_fitted_gaussian_has_the_mean_the_variance_and_the_entropy_of_the_sample():
    y = torch.randn(400, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2 + 3
    objective = GaussianLikelihood()
    answer = fit_constant(objective, 2, y)
    fitted = objective.distribution(answer[None])
    assert fitted.mean.item() == pytest.approx(y.mean().item(), rel=1e-4)
    assert fitted.variance.item() == pytest.approx(y.var(correction=0).item(), rel=1e-4)
    loss = objective.terms(nn.Identity(), Batch(answer.expand(400, 2), y), "train")["loss"].item()
    closed = 0.5 * math.log(2 * math.pi * math.e * y.var(correction=0).item())
    assert loss == pytest.approx(closed, abs=1e-8)


def test_the_most_likely_coin_and_die_are_the_frequencies():
    heads = torch.tensor([1.0] * 7 + [0.0] * 3, dtype=torch.float64)[:, None]
    logit = fit_constant(BernoulliLikelihood(), 1, heads)
    assert torch.sigmoid(logit).item() == pytest.approx(0.7, abs=1e-5)
    faces = torch.tensor([0] * 5 + [1] * 3 + [2] * 2)
    share = torch.softmax(fit_constant(MultinoulliLikelihood(), 3, faces), dim=0)
    assert share.tolist() == pytest.approx([0.5, 0.3, 0.2], abs=1e-5)


def test_likelihood_cross_entropy_and_divergence_have_one_minimum():
    faces, seen = torch.tensor([0] * 5 + [1] * 3 + [2] * 2), [0.5, 0.3, 0.2]
    source = torch.Generator().manual_seed(0)
    z = torch.randn(50, 3, generator=source, dtype=torch.float64)
    p = torch.softmax(z, dim=1)
    rows = CrossEntropy().rows(z.repeat_interleave(10, dim=0), faces.repeat(50))
    nll = rows.reshape(50, 10).mean(dim=1)
    assert_close(nll, cross_entropy(torch.tensor(seen).double().expand(50, 3), p))
    assert_close(nll, entropy(seen) + kl_divergence(torch.tensor(seen).double().expand(50, 3), p))


def test_a_flat_prior_makes_the_most_probable_the_most_likely_and_another_the_penalised_fit():
    source, sigma, tau = torch.Generator().manual_seed(0), 0.5, 0.4
    x = torch.randn(12, 1, generator=source, dtype=torch.float64)
    y = 1.2 * x + sigma * torch.randn(12, 1, generator=source, dtype=torch.float64)
    w = torch.linspace(-3, 3, 60_001, dtype=torch.float64)  # the hypotheses
    log_likelihood = -(y - x * w).square().sum(dim=0) / (2 * sigma**2)
    flat = torch.full_like(w, 1 / len(w))
    prior = posterior(-w.square() / (2 * tau**2), flat, log=True)  # a Gaussian on the grid
    ml = w[map_hypothesis(log_likelihood, flat, log=True)].item()
    least_squares = float(x.T @ y / (x.T @ x))
    assert ml == w[log_likelihood.argmax()].item() == pytest.approx(least_squares, abs=1e-4)
    net = nn.Linear(1, 1, bias=False).double()
    objective = SquaredError(scale="half") + L2(sigma**2 / (12 * tau**2))
    train_tensors(net, objective, x, y, training=WHOLE, epochs=5, batch_size=12, lr=1.0)
    found = w[map_hypothesis(log_likelihood, prior, log=True)].item()
    assert found == pytest.approx(net.weight.item(), abs=1e-4)
    assert abs(found - ml) > 0.01


def test_a_network_trained_on_squares_finds_the_conditional_mean_not_the_median():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (4000, 1))
    y = np.sin(3 * X[:, 0]) + random.exponential(size=4000)  # mean 1, median ln 2
    training = Training()  # without patience: every epoch counts
    settings = {"hidden": (32,), "epochs": 30, "lr": 0.01, "batch_size": 256, "random_state": 0}
    model = MLPRegressor(**settings, training=training).fit(X, y)
    places = np.linspace(-0.9, 0.9, 50)
    mean = np.sin(3 * places) + 1
    assert np.abs(model.predict(places[:, None]) - mean).max() < 0.2
    median = mean - 1 + math.log(2)
    gaps = [np.square(model.predict(places[:, None]) - line).mean() for line in (mean, median)]
    assert gaps[0] < 0.1 * gaps[1]


def test_the_risk_is_noise_plus_the_distance_to_the_conditional_mean():
    source = torch.Generator().manual_seed(0)
    x = torch.rand(100_000, 1, generator=source, dtype=torch.float64)
    mean = torch.sin(3 * x)
    y = mean + 0.5 * torch.randn(x.shape, generator=source, dtype=torch.float64)
    torch.manual_seed(0)
    answer = MLP(1, 1, hidden=(8,)).double()(x).detach()  # any predictor
    loss = SquaredError().rows
    gap = loss(answer, y) - loss(mean, y) - loss(answer, mean)  # has expectation zero
    assert abs(gap.mean()) < 3 * gap.std() / math.sqrt(len(x))
    assert loss(answer, mean).mean() > 0.1  # and is not trivially so


def test_no_classifier_beats_the_bayes_error_of_two_gaussians():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 1000)
    X = random.normal(2.0 * y)[:, None]
    best = bayes_error(0.0, 2.0, 1.0).item()
    assert best == pytest.approx(st.norm.cdf(-1))
    x = np.linspace(-8, 10, 20_001)
    joint = np.stack([st.norm(0, 1).pdf(x), st.norm(2, 1).pdf(x)]) / 2

    def true_error(answers):
        return np.trapezoid(np.where(answers == 1, joint[0], joint[1]), x)

    model = MLPClassifier(hidden=(16,), epochs=20, lr=0.01, random_state=0).fit(X, y)
    rivals = [x > cut for cut in np.linspace(-1, 3, 41)] + [model.predict(x[:, None])]
    errors = [true_error(np.asarray(answers).astype(int)) for answers in rivals]
    assert min(errors) > best - 1e-6
    assert true_error((x > 1).astype(int)) == pytest.approx(best, abs=1e-4)
    assert errors[-1] < best + 0.02


class LogCosh(Objective):
    """A loss nobody provided for: log cosh(f(x) - y)."""

    def rows(self, outputs, targets):
        gap = outputs - targets
        return (gap.abs() + nn.functional.softplus(-2 * gap.abs()) - math.log(2)).sum(dim=1)

    def terms(self, net, batch, phase):
        return {"loss": weighted_mean(self.rows(net(batch.x), batch.y), batch.weight)}


def test_any_differentiable_loss_can_be_trained():
    source = torch.Generator().manual_seed(0)
    x = torch.randn(60, 2, generator=source, dtype=torch.float64)
    y = x[:, :1] - 2 * x[:, 1:]
    torch.autograd.gradcheck(lambda z: LogCosh().rows(z, y), x[:, :1].clone().requires_grad_())
    net = MLP(2, 1, hidden=()).double()
    before = LogCosh().rows(net(x), y).mean().item()
    train_tensors(net, LogCosh(), x, y, training=Training(validation=0), epochs=60, lr=0.05)
    assert LogCosh().rows(net(x), y).mean().item() < 0.01 * before


@pytest.mark.parametrize("strength", [0.5, 3.0])
def test_penalties_are_the_negative_logs_of_priors_up_to_a_constant(strength):
    source = torch.Generator().manual_seed(0)
    net, values = nn.Linear(4, 2, bias=False).double(), []
    normal = st.norm(0, 1 / math.sqrt(strength))
    laplace = st.laplace(0, 1 / strength)
    for _ in range(5):
        w = torch.randn(2, 4, generator=source, dtype=torch.float64)
        net.weight.data = w
        gaps = [
            L2(strength).value(net).item() + normal.logpdf(w.numpy()).sum(),
            L1(strength).value(net).item() + laplace.logpdf(w.numpy()).sum(),
        ]
        values.append(gaps)
    np.testing.assert_allclose(values, np.broadcast_to(values[0], (5, 2)), atol=1e-10)
