"""Generative adversarial games: a discriminator and a generator that take turns.

min_G max_D E log D(x) + E log(1 - D(G(z))).  D = sigmoid(f); for a Wasserstein critic f itself.
References: 2014, Goodfellow et al., Generative adversarial networks, arXiv 1406.2661. 2017,
Arjovsky, Chintala, Bottou, Wasserstein GAN, arXiv 1701.07875. 2017, Gulrajani et al., Improved
training of Wasserstein GANs, arXiv 1704.00028. 2017, Lim, Ye, Geometric GAN, arXiv 1705.02894.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.objectives.objective import Objective, weighted_mean
from castalia.protocols import Batch, Phase

__all__ = [
    "AdversarialGame",
    "HingeGame",
    "Minimax",
    "NonSaturating",
    "Wasserstein",
    "optimal_discriminator",
]


def optimal_discriminator(p: Tensor, generated: Tensor) -> Tensor:
    """Return D* = p / (p + p_G), of densities at the same points.

    >>> optimal_discriminator(torch.tensor([0.3]), torch.tensor([0.1]))
    tensor([0.7500])
    """
    return p / (p + generated)


class AdversarialGame(Objective):
    """Two phases: the discriminator in every batch, the generator in every ``steps``-th.

    So each step of the generator follows ``steps`` steps of the discriminator on batches of their
    own, as in Algorithm 1 of the paper. The network has ``generator(z, y)``, ``expand(x)`` and
    ``discriminate(columns, y)``.

    Parameters
    ----------
    steps
        Discriminator steps for each of the generator.
    penalty
        Weight of (||grad f|| - target)^2 at points between data and samples; 0: none.
    """

    target = 1.0  # slope of the critic that costs nothing

    def __init__(self, *, steps: int = 1, penalty: float = 0.0) -> None:
        self.steps, self.penalty = steps, penalty

    def phases(self, net: Any) -> list[Phase]:
        """The discriminator's parameters, and the generator's less often."""
        return [
            Phase("discriminator", list(net.critic.parameters())),
            Phase("generator", list(net.generator.parameters()), every=self.steps),
        ]

    def real(self, f: Tensor) -> Tensor:
        """Loss of the discriminator on data, of each row."""
        raise NotImplementedError

    def fake(self, f: Tensor) -> Tensor:
        """Loss of the discriminator on samples, of each row."""
        raise NotImplementedError

    def fool(self, f: Tensor) -> Tensor:
        """Loss of the generator, of each row."""
        raise NotImplementedError

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss of a phase; the discriminator's with its mean on data and samples."""
        data = net.expand(batch.x)
        z = torch.randn(len(data), net.generator.noise, dtype=data.dtype, device=data.device)
        y = batch.y if net.generator.classes else None
        drawn = net.generator(z, y)
        if phase == "generator":
            return {"loss": weighted_mean(self.fool(net.discriminate(drawn, y)), batch.weight)}
        drawn = drawn.detach()
        real, fake = net.discriminate(data, y), net.discriminate(drawn, y)
        loss = weighted_mean(self.real(real) + self.fake(fake), batch.weight)
        if self.penalty:
            loss = loss + self.penalty * self._slope(net, data, drawn, y, batch.weight)
        shown = {"real": real, "fake": fake}
        return {"loss": loss, **{name: f.sigmoid().mean() for name, f in shown.items()}}

    def _slope(
        self, net: Any, data: Tensor, drawn: Tensor, y: Tensor | None, weight: Tensor | None
    ) -> Tensor:
        """Return the mean of (||grad f|| - target)^2 at random points between pairs."""
        training = torch.is_grad_enabled()
        with torch.enable_grad():  # validation runs without gradients; this needs them by x
            share = torch.rand_like(data[:, :1])
            between = (share * data + (1 - share) * drawn).detach().requires_grad_()
            f = net.discriminate(between, y).sum()
            (slope,) = torch.autograd.grad(f, between, create_graph=training)
            length = (slope.square().sum(dim=1) + 1e-12).sqrt()
        return weighted_mean((length - self.target).square(), weight)


class Minimax(AdversarialGame):
    """The game as it was posed: the generator minimises E log(1 - D(G(z))).

    At D* = p / (p + p_G) the value is 2 JS(p, p_G) - log 4. Where D is sure, the generator's
    gradient vanishes.

    Examples
    --------
    >>> game = Minimax()
    >>> round((game.real(torch.zeros(1)) + game.fake(torch.zeros(1))).item(), 4)  # log 4
    1.3863
    """

    def real(self, f: Tensor) -> Tensor:
        """Return -log D(x)."""
        return F.softplus(-f)

    def fake(self, f: Tensor) -> Tensor:
        """Return -log(1 - D(G(z)))."""
        return F.softplus(f)

    def fool(self, f: Tensor) -> Tensor:
        """Return log(1 - D(G(z)))."""
        return -F.softplus(f)


class NonSaturating(Minimax):
    """The generator maximises E log D(G(z)) instead: large gradients where it loses."""

    def fool(self, f: Tensor) -> Tensor:
        """Return -log D(G(z))."""
        return F.softplus(-f)


class Wasserstein(AdversarialGame):
    """A critic of slope 1: E f(x) - E f(G(z)) estimates the Wasserstein distance.

    Parameters
    ----------
    steps
        Critic steps for each of the generator.
    penalty
        Weight of the gradient penalty that keeps the slope at 1.
    """

    def __init__(self, *, steps: int = 5, penalty: float = 10.0) -> None:
        super().__init__(steps=steps, penalty=penalty)

    def real(self, f: Tensor) -> Tensor:
        """Return -f(x)."""
        return -f

    def fake(self, f: Tensor) -> Tensor:
        """Return f(G(z))."""
        return f

    def fool(self, f: Tensor) -> Tensor:
        """Return -f(G(z))."""
        return -f


class HingeGame(AdversarialGame):
    """Hinge losses of the discriminator, as spectral normalisation is mostly used with."""

    def real(self, f: Tensor) -> Tensor:
        """Return max(0, 1 - f(x))."""
        return F.relu(1 - f)

    def fake(self, f: Tensor) -> Tensor:
        """Return max(0, 1 + f(G(z)))."""
        return F.relu(1 + f)

    def fool(self, f: Tensor) -> Tensor:
        """Return -f(G(z))."""
        return -f
