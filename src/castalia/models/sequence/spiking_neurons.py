"""Spiking neurons and synapses that tire: the parts of a liquid state machine.

neuron   tau dV/dt = -V + R I; at the threshold it spikes, returns to zero and rests for a while
synapse  at a spike u += U (1 - u), the effect is u x, and x -= u x; in between u falls to 0 with
         ``facilitation`` and x recovers to 1 with ``depression`` as time constants

Both are integrated exactly over a step. Times are in milliseconds.
Shapes: B rows, T steps, N units.
References: 1907, Lapicque; 1998, Markram, Wang, Tsodyks, Differential signaling via the same axon
of neocortical pyramidal neurons, PNAS 95.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["DynamicSynapse", "IntegrateAndFire"]


@dataclass(frozen=True)
class IntegrateAndFire:
    """Leaky integrate-and-fire neurons.

    Attributes
    ----------
    tau
        Time constant of the membrane.
    resistance
        R.
    threshold
        Voltage of a spike; rest and reset are 0.
    refractory
        Rest after a spike.
    step
        Length of a time step.

    Examples
    --------
    >>> neuron = IntegrateAndFire(refractory=0.0, step=0.2)
    >>> spikes = neuron.run(torch.full((1, 2500, 1), 2.0))  # half a second
    >>> int(spikes.sum()), round(500 * neuron.rate(2.0))
    (24, 24)
    """

    tau: float = 30.0
    resistance: float = 1.0
    threshold: float = 1.0
    refractory: float = 2.0
    step: float = 1.0

    def advance(self, voltage: Tensor, rest: Tensor, current: Tensor) -> tuple[Tensor, ...]:
        """Return spikes, voltage and rest left after one step, each (B, N)."""
        kept = math.exp(-self.step / self.tau)
        awake = rest <= 0
        moved = kept * voltage + (1 - kept) * self.resistance * current
        voltage = torch.where(awake, moved, 0.0)
        spikes = awake & (voltage >= self.threshold)
        rest = torch.where(spikes, self.refractory, (rest - self.step).clamp_min(0.0))
        return spikes, torch.where(spikes, 0.0, voltage), rest

    def run(self, current: Tensor) -> Tensor:
        """Return the spikes, (B, T, N) of truths, that currents (B, T, N) cause."""
        voltage = rest = torch.zeros_like(current[:, 0])
        found = []
        for t in range(current.shape[1]):
            spikes, voltage, rest = self.advance(voltage, rest, current[:, t])
            found.append(spikes)
        return torch.stack(found, dim=1)

    def rate(self, current: float) -> float:
        """Return the spikes in a millisecond under a constant current, from the equation."""
        drive = self.resistance * current
        if drive <= self.threshold:
            return 0.0
        return 1 / (self.refractory + self.tau * math.log(drive / (drive - self.threshold)))


@dataclass(frozen=True)
class DynamicSynapse:
    """A synapse whose effect depends on the spikes before.

    Attributes
    ----------
    use
        U: share of the resources that a first spike uses.
    depression
        Time constant with which resources recover; larger depresses more.
    facilitation
        Time constant with which use falls back; larger facilitates more.
    step
        Length of a time step.

    Examples
    --------
    >>> synapse = DynamicSynapse(use=0.5, depression=1000.0, facilitation=1.0)
    >>> spikes = torch.tensor([[[1.0], [0.0], [1.0]]])
    >>> [round(value, 2) for value in synapse.run(spikes)[0, :, 0].tolist()]
    [0.5, 0.0, 0.27]
    """

    use: float = 0.5
    depression: float = 1100.0
    facilitation: float = 50.0
    step: float = 1.0

    def advance(self, u: Tensor, x: Tensor, spikes: Tensor) -> tuple[Tensor, ...]:
        """Return the effect of spikes (0 or 1), u and x after one step, each (B, N)."""
        raised = u + spikes * self.use * (1 - u)
        effect = spikes * raised * x
        x = 1 - (1 - (x - effect)) * math.exp(-self.step / self.depression)
        return effect, raised * math.exp(-self.step / self.facilitation), x

    def run(self, spikes: Tensor) -> Tensor:
        """Return the effects, (B, T, N), of spikes (B, T, N)."""
        u, x = torch.zeros_like(spikes[:, 0]), torch.ones_like(spikes[:, 0])
        found = []
        for t in range(spikes.shape[1]):
            effect, u, x = self.advance(u, x, spikes[:, t])
            found.append(effect)
        return torch.stack(found, dim=1)
