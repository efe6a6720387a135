"""Intrinsic plasticity: gain and threshold of each unit change until its outputs obey a given law.

sigmoid, exponential law of mean m, of all laws with that mean the one of most information:
    db = r (1 - (2 + 1/m) y + y^2 / m),                 da = r / a + db x
tanh, normal law of mean 0 and deviation s:
    db = -r (y / s^2) (2 s^2 + 1 - y^2),                da = r / a + db x

x is what a unit receives and y = g(a x + b). Shapes: B sequences, T steps, N units.
References: 2005, Triesch, A gradient rule for the plasticity of a neuron's intrinsic excitability;
2008, Schrauwen et al., Improving reservoirs using intrinsic plasticity.
"""

from __future__ import annotations

import torch
from torch import Tensor

from castalia.errors import InvalidParameter
from castalia.models.sequence.reservoir import ACTIVATIONS, Reservoir

__all__ = ["intrinsic_plasticity"]


def intrinsic_plasticity(
    reservoir: Reservoir, x: Tensor, *, target: float = 0.2, lr: float = 1e-3, epochs: int = 1
) -> Reservoir:
    """Return the reservoir with gains and thresholds adapted while x, (B, T, D), drives it.

    Parameters
    ----------
    reservoir
        With sigmoid or tanh units.
    x
        Sequences.
    target
        Mean m of a sigmoid unit's output, or deviation s of a tanh unit's.
    lr
        Rate r.
    epochs
        Passes over x.

    Examples
    --------
    >>> from castalia.models.sequence.reservoir import random_reservoir
    >>> reservoir = random_reservoir(20, 1, activation="sigmoid", seed=0)
    >>> x = torch.randn(1, 2000, 1, generator=torch.Generator().manual_seed(0))
    >>> adapted = intrinsic_plasticity(reservoir, x, lr=0.01)
    >>> round(float(adapted.run(x)[:, 1000:].mean()), 1), round(float(reservoir.run(x).mean()), 1)
    (0.2, 0.5)
    """
    if reservoir.activation not in ("sigmoid", "tanh"):
        raise InvalidParameter(
            "intrinsic_plasticity: units must be sigmoid or tanh; got "
            f"{reservoir.activation!r}, which has no law to adapt to."
        )
    rule = _exponential if reservoir.activation == "sigmoid" else _normal
    drive = reservoir.drive(x.double())
    gain, threshold = (torch.from_numpy(a).to(drive) for a in (reservoir.gain, reservoir.threshold))
    weights = torch.from_numpy(reservoir.weights.T.toarray()).to(drive)
    squash, leak = ACTIVATIONS[reservoir.activation], reservoir.leak
    for _ in range(epochs):
        h = torch.zeros_like(drive[:, 0])
        for t in range(drive.shape[1]):
            received = drive[:, t] + h @ weights
            y = squash(gain * received + threshold)
            moved = rule(y, target)
            threshold = threshold + lr * moved.mean(dim=0)
            gain = gain + lr * (1 / gain + (moved * received).mean(dim=0))
            h = (1 - leak) * h + (leak if reservoir.scaled else 1.0) * y
    return reservoir.tuned(gain.cpu().numpy(), threshold.cpu().numpy())


def _exponential(y: Tensor, mean: float) -> Tensor:
    return 1 - (2 + 1 / mean) * y + y.square() / mean


def _normal(y: Tensor, deviation: float) -> Tensor:
    return -(y / deviation**2) * (2 * deviation**2 + 1 - y.square())
