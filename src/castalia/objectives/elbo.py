"""The evidence lower bound of latent-variable models.

log p(x) >= E_q log p(x | z) - KL(q(z | x) || p(z)),  q = N(mu, s^2), p = N(0, I).
Importance-weighted with k samples: log p(x) >= E log 1/k sum_i p(x | z_i) p(z_i) / q(z_i | x).
References: 2014, Kingma, Welling, Auto-encoding variational Bayes, arXiv 1312.6114. 2014, Rezende,
Mohamed, Wierstra, arXiv 1401.4082. 2016, Burda, Grosse, Salakhutdinov, Importance weighted
autoencoders, arXiv 1509.00519. 2016, Kingma et al., arXiv 1606.04934 (free bits). 2017, Higgins et
al., beta-VAE, ICLR.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.row_likelihoods import RowLikelihood
from castalia.protocols import Batch, StepPlan

__all__ = [
    "ELBO",
    "PartlyLabelledELBO",
    "SequentialELBO",
    "evidence_lower_bound",
    "optimal_posterior",
    "gaussian_kl",
    "importance_weights",
    "log_normal",
    "reparametrise",
]


def reparametrise(mean: Tensor, log_variance: Tensor, noise: Tensor | None = None) -> Tensor:
    """Return z = mu + s eps, eps ~ N(0, I): gradients reach mu and s through the sample.

    >>> reparametrise(torch.ones(2), torch.zeros(2), torch.tensor([0.5, -1.0]))
    tensor([1.5000, 0.0000])
    """
    noise = torch.randn_like(mean) if noise is None else noise
    return mean + (log_variance / 2).exp() * noise


def gaussian_kl(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return KL(N(mu, s^2) || N(0, 1)) = 1/2 (mu^2 + s^2 - 1 - ln s^2) of each dimension.

    >>> gaussian_kl(torch.tensor([1.0]), torch.tensor([0.0]))
    tensor([0.5000])
    """
    return (mean.square() + log_variance.exp() - 1 - log_variance) / 2


def log_normal(z: Tensor, mean: Tensor | float = 0.0, log_variance: Any = 0.0) -> Tensor:
    """Return log N(z | mu, s^2) summed over the last axis."""
    log_variance = torch.as_tensor(log_variance, dtype=z.dtype, device=z.device)
    each = (z - mean).square() * (-log_variance).exp() + log_variance + math.log(2 * math.pi)
    return -each.expand_as(z).sum(dim=-1) / 2


def importance_weights(
    net: Any, likelihood: RowLikelihood, x: Tensor, samples: int, y: Any = None
) -> Tensor:
    """Return log p(x, z_i) - log q(z_i | x) of samples z_i of the posterior, (samples, B)."""
    mean, log_variance = net.posterior(x, y)  # (B, K) each
    shape = (samples, *mean.shape)
    z = reparametrise(mean, log_variance, torch.randn(shape, dtype=mean.dtype, device=mean.device))
    label = None if y is None else y.repeat(samples, *[1] * (y.ndim - 1))
    outputs = net.decode(z.flatten(0, 1), label)  # (samples B, P)
    seen = x.flatten(1).repeat(samples, 1)
    fit = -likelihood.rows(outputs, seen).view(samples, -1)
    return fit + log_normal(z) - log_normal(z, mean, log_variance)


def evidence_lower_bound(log_joint: Tensor, q: Tensor) -> Tensor:
    """Return E_q log p(h, v) + H(q) = log p(v) - KL(q || p(h | v)) of a discrete h.

    Parameters
    ----------
    log_joint
        log p(h, v) for each h, (…, H).
    q
        Probabilities of each h, (…, H).

    Examples
    --------
    >>> joint = torch.tensor([0.1, 0.3])
    >>> posterior = joint / joint.sum()
    >>> evidence_lower_bound(joint.log(), posterior).exp()
    tensor(0.4000)
    """
    return (q * log_joint - torch.special.xlogy(q, q)).sum(dim=-1)


def optimal_posterior(log_joint: Tensor) -> Tensor:
    """Return the q that maximises the bound, p(h | v), (…, H): the E-step.

    >>> optimal_posterior(torch.tensor([0.1, 0.3]).log())
    tensor([0.2500, 0.7500])
    """
    return log_joint.softmax(dim=-1)


class ELBO(Objective):
    """Negative evidence lower bound of a network with ``posterior(x)`` and ``decode(z, y)``.

    Parameters
    ----------
    likelihood
        Distribution of a row given the decoder's outputs.
    beta
        Weight of the divergence; above 1 codes are simpler, below 1 reconstructions better.
    free_bits
        Nats of each dimension, a mean over the batch, that cost nothing: against collapse.
    samples
        Above 1: the importance-weighted bound with as many samples, which is tighter.
    warm_up
        Epochs over which beta rises from 0; a fraction of one will do.

    Notes
    -----
    ``terms`` has ``reconstruction`` (-E_q log p(x | z)) and ``kl`` beside the loss, so both are in
    the history.
    """

    def __init__(
        self,
        likelihood: RowLikelihood,
        *,
        beta: float = 1.0,
        free_bits: float = 0.0,
        samples: int = 1,
        warm_up: float = 0.0,
    ) -> None:
        self.likelihood, self.beta, self.free_bits = likelihood, beta, free_bits
        self.samples, self.warm_up = samples, warm_up
        self.seen, self.rows = torch.zeros((), dtype=torch.double), 0

    def prepare(self, plan: StepPlan) -> None:
        """Receive the rows of an epoch, by which the warm-up is counted."""
        self.rows = plan.rows

    def state_dict(self) -> dict[str, Tensor]:
        """Return how many rows were seen."""
        return {"seen": self.seen.clone()} if self.warm_up else {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on with the warm-up."""
        self.seen = (
            state["seen"].clone() if "seen" in state else torch.zeros((), dtype=torch.double)
        )

    def weight(self, net: Any) -> Tensor | float:
        """Return beta as it is now; on rows that are not trained on, as it will be."""
        if not self.warm_up or not net.training:
            return self.beta
        return self.beta * (self.seen / max(1.0, self.warm_up * self.rows)).clamp_max(1.0)

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss, its reconstruction and its divergence, means over rows."""
        if self.warm_up and net.training:
            self.seen = self.seen.to(batch.x.device).add_(len(batch.x))
        if self.samples > 1:
            return self._weighted(net, batch)
        mean, log_variance = net.posterior(batch.x, batch.y if net.classes else None)  # (B, K) each
        outputs = net.decode(reparametrise(mean, log_variance), batch.y)
        fit = weighted_mean(self.likelihood.rows(outputs, batch.x.flatten(1)), batch.weight)
        each = gaussian_kl(mean, log_variance)  # (B, K)
        kl = weighted_mean(each.sum(dim=1), batch.weight)
        paid = kl
        if self.free_bits:
            paid = each.mean(dim=0).clamp_min(self.free_bits).sum()
        return {"loss": fit + self.weight(net) * paid, "reconstruction": fit, "kl": kl}

    def _weighted(self, net: Any, batch: Batch) -> dict[str, Tensor]:
        """Return the importance-weighted bound."""
        weights = importance_weights(
            net, self.likelihood, batch.x, self.samples, batch.y if net.classes else None
        )
        bound = weights.logsumexp(dim=0) - math.log(self.samples)
        return {
            "loss": -weighted_mean(bound, batch.weight),
            "elbo": weighted_mean(weights.mean(dim=0), batch.weight),
        }


class PartlyLabelledELBO(Objective):
    """Negative bound of rows of which some have a class: the semi-supervised model M2.

    With L(x, y) the negative bound of log p(x, y), rows of a class pay L(x, y), others
    sum_y q(y | x) (L(x, y) + log q(y | x)), a bound of -log p(x); and those of a class teach
    q(y | x) by a cross-entropy beside. Targets are class numbers, -1 where they are unknown.
    Reference: 2014, Kingma, Rezende, Mohamed, Welling, arXiv 1406.5298.

    Parameters
    ----------
    likelihood
        Distribution of a row given the decoder's outputs.
    beta
        Weight of the divergence.
    label_weight
        Of the mean cross-entropy of the rows that have a class.
    """

    def __init__(
        self, likelihood: RowLikelihood, *, beta: float = 1.0, label_weight: float = 10.0
    ) -> None:
        self.likelihood, self.beta, self.label_weight = likelihood, beta, label_weight

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss, the bound, and the cross-entropy of the labels."""
        log_q = net.log_classes(batch.x)  # (B, Y)
        each = self.bounds(net, batch.x)  # (B, Y)
        known, own = batch.y >= 0, batch.y.clamp_min(0)[:, None]
        unknown = (log_q.exp() * (each + log_q)).sum(dim=1)
        rows = torch.where(known, each.gather(1, own)[:, 0], unknown)
        weight = known.to(rows) if batch.weight is None else known * batch.weight
        wrong = -(weight * log_q.gather(1, own)[:, 0]).sum() / weight.sum().clamp_min(1e-6)
        bound = weighted_mean(rows, batch.weight)
        return {"loss": bound + self.label_weight * wrong, "elbo": -bound, "labels": wrong}

    def bounds(self, net: Any, x: Tensor) -> Tensor:
        """Return L(x, y) of every class, (B, Y), classes alike beforehand."""
        again = x.repeat(net.classes, *[1] * (x.ndim - 1))
        y = torch.arange(net.classes, device=x.device).repeat_interleave(len(x))
        mean, log_variance = net.posterior(again, y)
        outputs = net.decode(reparametrise(mean, log_variance), y)
        fit = self.likelihood.rows(outputs, again.flatten(1))
        kl = gaussian_kl(mean, log_variance).sum(dim=1)
        return (fit + self.beta * kl).view(net.classes, -1).T + math.log(net.classes)


class SequentialELBO(Objective):
    """Negative bound of a network that draws a sequence of codes, such as DRAW.

    The network returns a record with ``canvas``, the outputs of a row, and ``mean`` and
    ``log_variance`` of the codes, (B, T, K).

    Parameters
    ----------
    likelihood
        Distribution of a row given the canvas.
    """

    def __init__(self, likelihood: RowLikelihood) -> None:
        self.likelihood = likelihood

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss, its reconstruction and its divergence, means over rows."""
        found = net(batch.x)
        losses = self.likelihood.rows(found.canvas, batch.x.flatten(1))
        fit = weighted_mean(losses, batch.weight)
        each = gaussian_kl(found.mean, found.log_variance).flatten(1).sum(dim=1)
        kl = weighted_mean(each, batch.weight)
        return {"loss": fit + kl, "reconstruction": fit, "kl": kl}
