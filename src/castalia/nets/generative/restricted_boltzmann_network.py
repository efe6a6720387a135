"""Restricted Boltzmann machine: two layers of units with weights between them only.

E(v, h) = -b.v - c.h - v^T W h, and with normal visible units |v - b|^2 / 2 in place of -b.v.
Given one layer the other's units are independent:
P(h_j = 1 | v) = sigma(c_j + v.W_j), P(v_i = 1 | h) = sigma(b_i + W_i.h) or v ~ N(b + W h, I).
Summed over h, p~(v) = exp(-F(v)), F(v) = -b.v - sum_j softplus(c_j + v.W_j).
Shapes: B rows, D visible units, H hidden units.
References: 1986, Smolensky, Information processing in dynamical systems; 2002, Hinton, Training
products of experts by minimizing contrastive divergence, Neural Computation 14.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter

__all__ = ["ENUMERABLE", "RestrictedBoltzmannNetwork", "binary_states"]

ENUMERABLE = 20  # units of the smaller layer up to which its 2^n states are summed one by one
CHUNK = 2**14  # states that are summed at a time


class RestrictedBoltzmannNetwork(nn.Module):
    """A distribution over visible units, with hidden ones.

    Parameters
    ----------
    inputs
        Number D of visible units.
    hidden
        Number H of hidden units.
    gaussian
        Whether visible units are normal with variance 1; otherwise 0 or 1.

    Examples
    --------
    >>> net = RestrictedBoltzmannNetwork(3, 2)
    >>> v = torch.tensor([[0.0, 1.0, 1.0]])
    >>> net(v).shape, net.free_energy(v).shape
    (torch.Size([1, 2]), torch.Size([1]))
    """

    def __init__(self, inputs: int, hidden: int, *, gaussian: bool = False) -> None:
        super().__init__()
        self.gaussian = gaussian
        self.weight = nn.Parameter(0.01 * torch.randn(inputs, hidden))
        self.visible_bias = nn.Parameter(torch.zeros(inputs))
        self.hidden_bias = nn.Parameter(torch.zeros(hidden))

    def forward(self, v: Tensor) -> Tensor:  # (B, D)
        """Return P(h_j = 1 | v), (B, H)."""
        return self.drive(v).sigmoid()

    def drive(self, v: Tensor) -> Tensor:
        """Return c + v W, the log-odds of the hidden units, (B, H)."""
        return torch.addmm(self.hidden_bias, v, self.weight)

    def reconstruct(self, h: Tensor) -> Tensor:  # (B, H)
        """Return E[v | h], (B, D)."""
        drive = torch.addmm(self.visible_bias, h, self.weight.T)
        return drive if self.gaussian else drive.sigmoid()

    def free_energy(self, v: Tensor) -> Tensor:
        """Return F(v) = -log sum_h exp(-E(v, h)), (B,)."""
        if self.gaussian:
            own = (v - self.visible_bias).square().sum(dim=1) / 2
        else:
            own = -(v @ self.visible_bias)
        return own - F.softplus(self.drive(v)).sum(dim=1)

    def contrast(self, v: Tensor, p: Tensor, drawn: Tensor, q: Tensor) -> Tensor:
        """Return a number with the gradient of sum_i p_i F(v_i) - sum_j q_j F(drawn_j), ().

        F changes by -<v h> with W, -<v> with b and -<h> with c, which needs no softplus.
        """
        with torch.no_grad():
            data, model = self._means(v, p), self._means(drawn, q)
        found = [
            torch.dot((model[name] - data[name]).flatten(), parameter.flatten())
            for name, parameter in self.named_parameters()
        ]
        return torch.stack(found).sum()

    def energy(self, v: Tensor, h: Tensor) -> Tensor:
        """Return E(v, h), (B,)."""
        own = (
            (v - self.visible_bias).square().sum(dim=1) / 2
            if self.gaussian
            else -(v @ self.visible_bias)
        )
        return own - h @ self.hidden_bias - ((v @ self.weight) * h).sum(dim=1)

    # -- chance --

    def draw_hidden(self, v: Tensor, source: torch.Generator | None = None) -> Tensor:
        """Draw all hidden units given the visible ones, (B, H)."""
        return drawn(self(v), source)

    def draw_visible(self, h: Tensor, source: torch.Generator | None = None) -> Tensor:
        """Draw all visible units given the hidden ones, (B, D)."""
        return self.draw_around(self.reconstruct(h), source)

    def draw_around(self, mean: Tensor, source: torch.Generator | None = None) -> Tensor:
        """Draw visible units of these means, (B, D)."""
        return mean + noise(mean, source) if self.gaussian else drawn(mean, source)

    def gibbs(self, v: Tensor, source: torch.Generator | None = None) -> Tensor:
        """Draw all hidden units, then all visible ones, (B, D)."""
        return self.draw_visible(self.draw_hidden(v, source), source)

    # -- exact, where one layer is small --

    @property
    def enumerable(self) -> bool:
        """Whether log Z can be summed exactly."""
        inputs, hidden = self.weight.shape
        return (hidden if self.gaussian else min(inputs, hidden)) <= ENUMERABLE

    def log_z(self) -> Tensor:
        """Return log Z by a sum over all states of the smaller layer; gradients flow, ()."""
        inputs, hidden = self.weight.shape
        if not self.enumerable:
            raise InvalidParameter(
                "RestrictedBoltzmannNetwork: log Z is summed exactly up to "
                f"{ENUMERABLE} units in the smaller layer; got {inputs} and {hidden}. Estimate it "
                "by annealed importance sampling."
            )
        over_hidden = self.gaussian or hidden <= inputs
        states = binary_states(hidden if over_hidden else inputs).to(self.weight)
        parts = [self._log_sum(part, over_hidden) for part in states.split(CHUNK)]
        return torch.stack(parts).logsumexp(dim=0)

    def _log_sum(self, states: Tensor, over_hidden: bool) -> Tensor:
        """Return log sum exp(-F) over states of one layer, with the other summed out."""
        if not over_hidden:
            return (-self.free_energy(states)).logsumexp(dim=0)
        own = states @ self.hidden_bias
        drive = torch.addmm(self.visible_bias, states, self.weight.T)  # (S, D)
        if not self.gaussian:
            return (own + F.softplus(drive).sum(dim=1)).logsumexp(dim=0)
        square = (drive.square() - self.visible_bias.square()).sum(dim=1) / 2
        constant = drive.shape[1] / 2 * math.log(2 * math.pi)
        return (own + square).logsumexp(dim=0) + constant

    def likelihood_gradient(self, v: Tensor) -> dict[str, Tensor]:
        """Return the exact gradient of the mean log-likelihood: <.>_data - <.>_model.

        ``weight``: <v h>; ``visible_bias``: <v>; ``hidden_bias``: <h>; 0 or 1 units only.
        """
        inputs = len(self.visible_bias)
        if self.gaussian or inputs > ENUMERABLE:
            raise InvalidParameter(
                "RestrictedBoltzmannNetwork: the exact gradient sums over all visible states, so "
                f"they must be at most {ENUMERABLE} units of 0 or 1; got {inputs}."
            )
        states = binary_states(inputs).to(v)
        p = (-self.free_energy(states)).softmax(dim=0)
        equal = v.new_full((len(v),), 1 / len(v))
        data, model = self._means(v, equal), self._means(states, p)
        return {name: data[name] - model[name] for name in data}

    def _means(self, v: Tensor, p: Tensor) -> dict[str, Tensor]:
        h, weighted = self(v), v * p[:, None]
        return {
            "weight": weighted.T @ h,
            "visible_bias": weighted.sum(dim=0),
            "hidden_bias": p @ h,
        }


def binary_states(n: int) -> Tensor:
    """Return all 2^n rows of zeros and ones, (2^n, n).

    >>> binary_states(2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    codes = torch.arange(2**n)[:, None]
    return ((codes >> torch.arange(n - 1, -1, -1)) & 1).float()


def drawn(p: Tensor, source: torch.Generator | None) -> Tensor:
    """Draw 1 with probability p, else 0."""
    chance = torch.rand(p.shape, generator=source, device=p.device, dtype=p.dtype)
    return (chance < p).to(p.dtype)


def noise(like: Tensor, source: torch.Generator | None) -> Tensor:
    """Draw standard normal numbers."""
    return torch.randn(like.shape, generator=source, device=like.device, dtype=like.dtype)
