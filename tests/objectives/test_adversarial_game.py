import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.nets.dense import MLP
from castalia.nets.generative import AdversarialPair, GeneratorNetwork, OneHotRows, affine_generator
from castalia.objectives import Minimax, NonSaturating, Wasserstein, optimal_discriminator
from castalia.protocols import Batch


def pair(critic=None):
    torch.manual_seed(0)
    generator = GeneratorNetwork(nn.Linear(2, 1), OneHotRows(1), noise=2)
    return AdversarialPair(generator, critic or MLP(1, 1, hidden=(32, 32), activation="tanh"))


def test_a_trained_discriminator_is_the_ratio_of_the_densities():
    """Data N(1, 1), samples N(-1, 1): D*(x) = p / (p + p_G)."""
    net = pair()
    net.generator = affine_generator(torch.tensor([-1.0]), torch.tensor([[1.0]]))
    optimizer, game = torch.optim.Adam(net.critic.parameters(), lr=5e-3), Minimax()
    for _ in range(400):
        loss = game.terms(net, Batch(1 + torch.randn(512, 1)), "discriminator")["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x = torch.linspace(-2, 2, 9)[:, None]
    density = [torch.distributions.Normal(m, 1.0).log_prob(x[:, 0]).exp() for m in (1.0, -1.0)]
    found = net.discriminate(x).sigmoid()
    assert_close(found, optimal_discriminator(*density), atol=0.05, rtol=0)


def test_the_value_is_log_four_when_samples_are_data():
    game, half = Minimax(), torch.zeros(1)  # D = 1/2
    assert_close(game.real(half) + game.fake(half), torch.tensor([math.log(4)]))
    assert_close(optimal_discriminator(half + 0.3, half + 0.3), torch.tensor([0.5]))


def test_the_other_loss_has_a_gradient_where_the_discriminator_is_sure():
    slopes = {}
    for game in (Minimax(), NonSaturating()):
        f = torch.tensor([-8.0], requires_grad=True)  # D(G(z)) = 0.0003
        game.fool(f).sum().backward()
        slopes[type(game)] = -f.grad.item()  # a larger f fools more
    assert slopes[NonSaturating] > 1000 * slopes[Minimax] > 0


def test_the_generator_waits_for_its_turn():
    phases = Wasserstein(steps=4).phases(pair())
    assert [(p.name, p.every) for p in phases] == [("discriminator", 1), ("generator", 4)]


def test_the_penalty_is_zero_for_a_critic_of_slope_one():
    critic = nn.Linear(1, 1)
    with torch.no_grad():
        critic.weight.fill_(1.0)
    batch = Batch(torch.randn(16, 1))
    with_penalty, without = Wasserstein(penalty=10.0), Wasserstein(penalty=0.0)
    found = []
    for game in (with_penalty, without):
        torch.manual_seed(1)
        found.append(game.terms(pair(critic), batch, "discriminator")["loss"])
    assert_close(*found)
    with torch.no_grad():
        critic.weight.fill_(3.0)
    torch.manual_seed(1)
    steep = with_penalty.terms(pair(critic), batch, "discriminator")["loss"]
    torch.manual_seed(1)
    base = without.terms(pair(critic), batch, "discriminator")["loss"]
    assert_close(steep - base, torch.tensor(40.0), atol=1e-3, rtol=0)


def test_gradients_reach_the_generator_through_its_samples():
    net = pair()
    z = torch.randn(8, 2, dtype=torch.double)
    body = net.generator.body.double()

    def mean_square(weight):
        return (z @ weight.T + body.bias).square().mean()

    net.generator(z).square().mean().backward()
    (wanted,) = torch.autograd.grad(mean_square(body.weight), body.weight)
    assert_close(body.weight.grad, wanted)


def test_an_affine_generator_draws_the_normal_it_was_made_of():
    mean, covariance = torch.tensor([1.0, -2.0]), torch.tensor([[2.0, 0.6], [0.6, 0.5]])
    torch.manual_seed(0)
    drawn = affine_generator(mean, covariance)(torch.randn(50_000, 2)).detach()
    assert_close(drawn.mean(dim=0), mean, atol=0.03, rtol=0)
    assert_close(torch.cov(drawn.T), covariance, atol=0.05, rtol=0)


def test_categories_are_drawn_as_often_as_they_are_likely_and_gradients_reach_them():
    rows = OneHotRows(0, 1, (3,))
    logits = torch.tensor([[0.5, 1.0, 0.0, -1.0]]).repeat(20_000, 1).requires_grad_()
    torch.manual_seed(0)
    drawn = rows.squash(logits, torch.rand(20_000, 4))
    wanted = torch.cat([logits[:1, :1].sigmoid(), logits[:1, 1:].softmax(dim=1)], dim=1)[0]
    assert_close(drawn.mean(dim=0), wanted, atol=0.02, rtol=0)
    (drawn * torch.tensor([1.0, 0.5, 0.2, 0.9])).sum().backward()
    assert (logits.grad.abs().sum(dim=0) > 0).all()


@pytest.mark.parametrize("spectral", [True, False])
def test_spectral_norm_holds_the_slope(spectral):
    torch.manual_seed(0)
    critic = MLP(2, 1, hidden=(8,), activation="relu")
    with torch.no_grad():
        for p in critic.parameters():
            p.mul_(5)
    generator = GeneratorNetwork(nn.Linear(2, 2), OneHotRows(2), noise=2)
    net = AdversarialPair(generator, critic, spectral=spectral).train()
    for _ in range(20):  # power iterations
        net.discriminate(torch.randn(4, 2))
    x = torch.randn(64, 2, requires_grad=True)
    (slope,) = torch.autograd.grad(net.eval().discriminate(x).sum(), x)
    assert (slope.norm(dim=1).max() <= 1.05) == spectral
