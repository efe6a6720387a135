"""Maximum mean discrepancy: a generator trained alone, by comparing all moments of a kernel.

MMD^2 = E k(x, x') - 2 E k(x, y) + E k(y, y'),  k(a, b) = sum_s exp(-||a - b||^2 / 2 s^2).
References: 2012, Gretton, Borgwardt, Rasch, Schölkopf, Smola, A kernel two-sample test, JMLR 13.
2015, Li, Swersky, Zemel, Generative moment matching networks, arXiv 1502.02761.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from castalia.objectives.objective import Objective
from castalia.protocols import Batch, Phase

__all__ = ["MMD", "energy_distance", "mmd"]


def mmd(x: Tensor, y: Tensor, scales: Sequence[float], weight: Tensor | None = None) -> Tensor:
    """Return MMD^2 between rows x and y, with weights of x; biased, never negative.

    Parameters
    ----------
    x, y
        Rows, (N, D) and (M, D).
    scales
        Widths s of the kernels.
    weight
        Of each row of x.

    Examples
    --------
    >>> mmd(torch.zeros(3, 2), torch.zeros(2, 2), [1.0])
    tensor(0.)
    """
    own = torch.ones_like(x[:, 0]) if weight is None else weight
    own = own / own.sum()
    other = torch.ones_like(y[:, 0]) / len(y)
    a, b = torch.cat([x, y]), torch.cat([own, -other])
    squared = (a[:, None] - a).square().sum(dim=2)  # (N + M, N + M)
    kernel = sum((-squared / (2 * s**2)).exp() for s in scales)
    return (b @ kernel @ b).clamp_min(0)  # type: ignore[operator]


def energy_distance(x: Tensor, y: Tensor) -> Tensor:
    """Return 2 E||x - y|| - E||x - x'|| - E||y - y'||, 0 for equal distributions.

    >>> energy_distance(torch.zeros(2, 1), torch.ones(2, 1))
    tensor(2.)
    """
    return 2 * torch.cdist(x, y).mean() - torch.cdist(x, x).mean() - torch.cdist(y, y).mean()


class MMD(Objective):
    """MMD^2 between a batch and as many samples of the generator.

    Parameters
    ----------
    scales
        Widths of the kernels, in multiples of sqrt(columns).

    Notes
    -----
    The loss compares all rows of a batch, so micro-batches give another loss than whole ones, and
    large batches a better one.
    """

    def __init__(self, scales: Sequence[float] = (0.1, 0.3, 1.0, 3.0)) -> None:
        self.scales = tuple(scales)

    def phases(self, net: Any) -> list[Phase]:
        """One phase over the generator."""
        return [Phase("train", list(net.generator.parameters()))]

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss, MMD^2."""
        data = net.expand(batch.x)
        z = torch.randn(len(data), net.generator.noise, dtype=data.dtype, device=data.device)
        scales = [s * data.shape[1] ** 0.5 for s in self.scales]
        return {"loss": mmd(data, net.generator(z), scales, batch.weight)}
