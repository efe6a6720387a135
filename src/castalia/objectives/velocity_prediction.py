"""Diffusion: rows are noised step by step, and a network learns to tell row and noise apart.

x_t = sqrt(a_t) x_0 + sqrt(1 - a_t) eps, eps ~ N(0, I);  loss E ||v - v(x_t, t)||^2 with
v = sqrt(a_t) eps - sqrt(1 - a_t) x_0, so that x_0 = sqrt(a_t) x_t - sqrt(1 - a_t) v and
eps = sqrt(a_t) v + sqrt(1 - a_t) x_t. That is the noise's error divided by a_t: where hardly any
signal is left, to say the noise teaches nothing, and to say the row does. The noise is, up to sign
and scale, the score of the noised rows.
References: 2020, Ho, Jain, Abbeel, Denoising diffusion models, arXiv 2006.11239. 2021, Nichol,
Dhariwal, arXiv 2102.09672 (cosine schedule). 2022, Salimans, Ho, Progressive distillation, arXiv
2202.00512 (v). 2022, Ho, Salimans, Classifier-free diffusion guidance, arXiv 2207.12598. 2021,
Song, Meng, Ermon, Denoising diffusion implicit models, arXiv 2010.02502.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from castalia.objectives.objective import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["VelocityPrediction", "ddim_step", "signal_shares"]


def signal_shares(steps: int) -> Tensor:
    """Return a_t for t = 1 … steps: the share of a row's variance that is signal, falling to 0.

    a_t = cos^2(pi/2 (t/T + 0.008) / 1.008), scaled so that a_0 is 1.

    >>> signal_shares(4).round(decimals=2)
    tensor([0.8500, 0.4900, 0.1400, 0.0000])
    """
    t = torch.arange(steps + 1, dtype=torch.float64) / steps
    share = (math.pi / 2 * (t + 0.008) / 1.008).cos().square()
    return (share / share[0])[1:].clamp(1e-4, 0.9999).float()


def ddim_step(x: Tensor, v: Tensor, now: Tensor, then: Tensor, low: Any, high: Any) -> Tensor:
    """Return the row at a smaller level of noise, of one with its predicted v.

    x_0 = sqrt(a) x - sqrt(1 - a) v, held between ``low`` and ``high``;
    x' = sqrt(a') x_0 + sqrt(1 - a') eps.
    """
    clean = (now.sqrt() * x - (1 - now).sqrt() * v).clamp(low, high)
    noise = (x - now.sqrt() * clean) / (1 - now).sqrt()
    return then.sqrt() * clean + (1 - then).sqrt() * noise


class VelocityPrediction(Objective):
    """Mean of ||v - v(x_t, t, y)||^2 / D over steps t drawn at random.

    The network has ``expand(x)``, rows to columns of about mean 0, is called as ``net(x_t, t, y)``,
    and has ``classes``, their number (0: y is not used).

    Parameters
    ----------
    steps
        Number T of levels of noise.
    unlabelled
        Share of rows whose class is hidden, so that guidance can compare.
    """

    def __init__(self, steps: int = 1000, unlabelled: float = 0.1) -> None:
        self.shares, self.unlabelled = signal_shares(steps), unlabelled

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss."""
        x = net.expand(batch.x)  # (B, D)
        self.shares = self.shares.to(x.device)
        t = torch.randint(len(self.shares), (len(x),), device=x.device)
        a, noise = self.shares[t].to(x.dtype)[:, None], torch.randn_like(x)
        signal, spread = a.sqrt(), (1 - a).sqrt()
        y = None
        if net.classes:
            hidden = torch.rand(len(x), device=x.device) < self.unlabelled
            y = torch.where(hidden, net.classes, batch.y)
        found = net(signal * x + spread * noise, t, y)
        error = (found - (signal * noise - spread * x)).square().mean(dim=1)
        return {"loss": weighted_mean(error, batch.weight)}
