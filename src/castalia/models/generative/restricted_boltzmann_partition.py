"""log Z of a restricted Boltzmann machine: exactly where it is small, else by annealing.

The path of distributions goes from independent visible units with the rows' own means to the
machine: visible biases move from one to the other, weights and hidden biases grow from 0.
Reference: 2008, Salakhutdinov, Murray, On the quantitative analysis of deep belief networks, ICML.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.nets.generative.restricted_boltzmann_network import (
    RestrictedBoltzmannNetwork,
    drawn,
    noise,
)
from castalia.sampling import annealed_importance
from castalia.utils.seeds import generator, seed_from

__all__ = ["Partition", "partition"]


class Partition(NamedTuple):
    """log Z, the interval it lies in by three standard errors, and whether it is exact."""

    log_z: float
    low: float
    high: float
    exact: bool


@torch.no_grad()
def partition(
    net: RestrictedBoltzmannNetwork,
    base: Tensor,
    *,
    runs: int,
    betas: int,
    random_state: Any,
    exact: bool = True,
) -> Partition:
    """Return log Z.

    Parameters
    ----------
    net
        The machine.
    base
        Visible biases at which the path begins, (D,).
    runs, betas
        Runs of the annealing side by side, and its temperatures.
    random_state
        Seed.
    exact
        Whether to sum over all states where that is possible.
    """
    if exact and net.enumerable:
        log_z = float(net.log_z())
        return Partition(log_z, log_z, log_z, True)
    path = _Path(net, base)
    found = annealed_importance(
        path.log_density,
        path.step,
        path.start(runs, random_state),
        log_z=path.log_z,
        betas=betas,
        random_state=random_state,
    )
    return Partition(found.log_z, found.low, found.high, False)


class _Path:
    """Distributions between independent units (beta = 0) and the machine (beta = 1)."""

    def __init__(self, net: RestrictedBoltzmannNetwork, base: Tensor) -> None:
        self.net, self.base = net, base
        inputs, hidden = net.weight.shape
        units = (
            inputs / 2 * math.log(2 * math.pi) if net.gaussian else float(F.softplus(base).sum())
        )
        self.log_z = units + hidden * math.log(2)

    def bias(self, beta: float) -> Tensor:
        return (1 - beta) * self.base + beta * self.net.visible_bias

    def log_density(self, v: Tensor, beta: float) -> Tensor:
        hidden = F.softplus(beta * self.net.drive(v)).sum(dim=1)
        if self.net.gaussian:
            return hidden - (v - self.bias(beta)).square().sum(dim=1) / 2
        return hidden + v @ self.bias(beta)

    def step(self, v: Tensor, beta: float, source: torch.Generator) -> Tensor:
        h = drawn((beta * self.net.drive(v)).sigmoid(), source)
        return self._visible(torch.addmm(self.bias(beta), h, beta * self.net.weight.T), source)

    def _visible(self, drive: Tensor, source: torch.Generator) -> Tensor:
        if self.net.gaussian:
            return drive + noise(drive, source)
        return drawn(drive.sigmoid(), source)

    def start(self, runs: int, random_state: Any) -> Tensor:
        source = generator(seed_from(random_state), 1, device=self.base.device)
        return self._visible(self.base.expand(runs, -1), source)
