"""Contrastive divergence: raise the probability of data, lower that of what the model draws.

d log p(v) = -dF(v) + E_model dF: the second mean is taken over states after k steps of Gibbs
sampling from the data (CD), or of chains that go on from step to step (persistent: PCD). As a loss,
one with the gradient of mean F(data) - mean F(chains), the chains held fixed; its value says
nothing.
References: 2002, Hinton, Training products of experts, Neural Computation 14; 2008, Tieleman,
Training restricted Boltzmann machines using approximations to the likelihood gradient, ICML.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.tokens import chance
from castalia.protocols import Batch

__all__ = ["ContrastiveDivergence", "ExactLikelihood"]

TINY = 1e-6


class ContrastiveDivergence(Objective):
    """CD-k or PCD-k for a network with ``contrast``, ``gibbs`` and ``reconstruct``.

    Parameters
    ----------
    k
        Steps of Gibbs sampling.
    persistent
        Number of chains that go on from step to step; 0 starts at the data each time.
    sparsity
        Share of rows for which a hidden unit should be on; None does not mind.
    sparsity_weight
        Strength of that wish: it multiplies the cross-entropy of wanted and mean activation.

    Notes
    -----
    The term ``reconstruction``, the mean squared difference between rows and what one step makes of
    them, is a monitor only: it falls with slow mixing too, and nothing minimises it.
    """

    def __init__(
        self,
        k: int = 1,
        *,
        persistent: int = 0,
        sparsity: float | None = None,
        sparsity_weight: float = 0.1,
    ) -> None:
        self.k, self.persistent = k, persistent
        self.sparsity, self.sparsity_weight = sparsity, sparsity_weight
        self.chains: Tensor | None = None

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss whose gradient is that of contrastive divergence, and the monitor."""
        machine, v = cast(Any, net), batch.x
        source = chance(net, v.device)
        with torch.no_grad():
            once = machine.reconstruct(machine.draw_hidden(v, source))
            apart = weighted_mean((v - once).square().mean(dim=1), batch.weight)
            model = self._model(machine, v, once, source)
            share = _shares(v, batch.weight)
            other = _shares(model, None) if self.persistent else share
        loss = machine.contrast(v, share, model, other)
        if self.sparsity is not None:
            loss = loss + self.sparsity_weight * self._crowding(machine(v), batch.weight)
        return {"loss": loss, "reconstruction": apart}

    def _model(
        self, machine: Any, v: Tensor, once: Tensor, source: torch.Generator | None
    ) -> Tensor:
        """Return draws from the model, (B or chains, D); ``once`` is half of a first step."""
        if not self.persistent:
            return _walk(machine, machine.draw_around(once, source), self.k - 1, source)
        if self.chains is None:
            at = torch.randint(len(v), (self.persistent,), device=v.device, generator=source)
            self.chains = v[at]
        drawn = _walk(machine, self.chains, self.k, source)
        if machine.training:
            self.chains.copy_(drawn)
        return drawn

    def _crowding(self, h: Tensor, weight: Tensor | None) -> Tensor:
        """Return the cross-entropy of the wanted share and each unit's mean activation, summed."""
        share = 1 / len(h) if weight is None else (weight / weight.sum())[:, None]
        q = (h * share).sum(dim=0).clamp(TINY, 1 - TINY)
        wanted = cast(float, self.sparsity)
        return -(wanted * q.log() + (1 - wanted) * (1 - q).log()).sum()

    def state_dict(self) -> dict[str, Tensor]:
        """Return the persistent chains."""
        return {} if self.chains is None else {"chains": self.chains}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on with these chains."""
        self.chains = state["chains"].clone() if "chains" in state else None


class ExactLikelihood(Objective):
    """-log p(v) = F(v) + log Z, with Z summed over every state: for machines of a few units.

    The network has ``free_energy`` and ``log_z``.
    """

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean of -log p(v)."""
        machine = cast(Any, net)
        energy = weighted_mean(machine.free_energy(batch.x), batch.weight)
        return {"loss": energy + machine.log_z()}


def _shares(rows: Tensor, weight: Tensor | None) -> Tensor:
    """Return what each row counts in a mean, (B,)."""
    if weight is None:
        return rows.new_full((len(rows),), 1 / len(rows))
    return weight / weight.sum().clamp_min(torch.finfo(weight.dtype).tiny)


def _walk(machine: Any, v: Tensor, k: int, source: torch.Generator | None) -> Tensor:
    for _ in range(k):
        v = machine.gibbs(v, source)
    return v
