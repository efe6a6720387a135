"""A linear map of windows in closed form: ridge regression of the next steps on the last ones.

W = (Z^T Z + alpha I)^-1 Z^T Y with the constant term free; errors count in the units of the series.
The sums are added up over blocks of windows, so overlapping windows take no room.
Shapes: N windows, L context, C channels, K channels forecast, H horizon, F features, O outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from castalia.data.batches import Samples
from castalia.errors import InvalidParameter
from castalia.models.sequence.echo_state_readout import RidgeSums, ridge
from castalia.nets.sequence import ForecastNetwork
from castalia.objectives import ForecastLoss
from castalia.protocols import Batch, Stage

__all__ = ["PENALTIES", "RidgeMap", "best_penalty", "ridge_stages", "window_sums"]

PENALTIES = tuple(10.0**power for power in range(-2, 6))
BLOCK = 1 << 22  # numbers of a block of windows


def window_sums(net: ForecastNetwork, samples: Samples) -> list[RidgeSums]:
    """Return the sums of windows: one for all outputs, or where windows have scales one a channel.

    Parameters
    ----------
    net
        Says what its body reads of a window.
    samples
        Windows, past (N, L, C) and future (N, H, K), and perhaps their weights.
    """
    each = ([RidgeSums.of(*pair) for pair in _pairs(net, block)] for block in _blocks(samples))
    return [reduce(add, parts) for parts in zip(*each, strict=True)]


def _blocks(samples: Samples) -> Iterator[Batch]:
    size = max(1, BLOCK // int(np.prod(samples.x.shape)))
    for window, order in samples.windows(None, 0):
        for index in order.split(size):
            yield window.batch(index)


def _pairs(net: ForecastNetwork, batch: Batch) -> Iterator[tuple[Sequence[Tensor], Tensor]]:
    """Yield features, with a constant beside them, and what they are to give; weighted."""
    past, future = (part.double() for part in batch.x)
    z, shift, scale = net.seen(past)
    wanted = future - shift  # (N, H, K)
    if batch.weight is not None:
        root = batch.weight.double().sqrt()[:, None, None]
        wanted, scale = wanted * root, scale * root
    if net.shared:
        weight = scale.transpose(1, 2).reshape(-1, 1)  # (N K, 1)
        yield (z.flatten(1) * weight, weight), wanted.transpose(1, 2).flatten(0, 1)
    elif net.level != "window":  # one scale for all channels
        yield (z.flatten(1) * scale[..., 0], scale[..., 0]), wanted.flatten(1)
    else:
        for weight, own in zip(scale.unbind(2), wanted.unbind(2), strict=True):
            yield (z.flatten(1) * weight, weight), own


def _solved(sums: list[RidgeSums], alpha: float) -> list[np.ndarray]:
    """Return the weights of each part, (F + 1, O); the last row is the constant term."""
    penalty = np.full(len(sums[0].gram), alpha)
    penalty[-1] = 0.0
    return [ridge(part, penalty) for part in sums]


def best_penalty(sums: list[RidgeSums], held: list[RidgeSums]) -> float:
    """Return the penalty whose map has the least squared error on further windows."""

    def error(alpha: float) -> float:  # less a constant: |Z W|^2 - 2 (Z W) Y
        pairs = zip(_solved(sums, alpha), held, strict=True)
        return sum(float(np.sum(w * (h.gram @ w - 2 * h.cross))) for w, h in pairs)

    return min(PENALTIES, key=error)


class RidgeMap(ForecastLoss):
    """Squared errors of forecasts, whose best linear map is solved for.

    Parameters
    ----------
    alpha
        Penalty; None: the one whose map has the least squared error on the validation windows, 1
        where there are none.
    """

    def __init__(self, alpha: float | None = None) -> None:
        self.alpha = alpha

    def solve(self, net: nn.Module, data: Samples, validation: Samples | None) -> dict[str, float]:
        """Give the network's only linear layer the best weights; return loss and penalty."""
        made: Any = net
        sums, alpha = window_sums(made, data), self.alpha
        if alpha is None:
            alpha = 1.0 if validation is None else best_penalty(sums, window_sums(made, validation))
        (layer,) = (part for part in made.body.modules() if isinstance(part, nn.Linear))
        found = np.stack(_solved(sums, alpha), axis=-1)  # (F + 1, O / parts, parts)
        whole = torch.from_numpy(found.reshape(len(found), -1).T)  # (O, F + 1)
        with torch.no_grad():
            layer.weight.copy_(whole[:, :-1])
            layer.bias.copy_(whole[:, -1])
        return {"loss": self._mean(made, data), "alpha": alpha}

    @torch.inference_mode()
    def _mean(self, net: ForecastNetwork, samples: Samples) -> float:
        parts = [
            (len(batch.x[0]), float(self.terms(net, batch, "train")["loss"]))
            for batch in _blocks(samples)
        ]
        return sum(n * loss for n, loss in parts) / sum(n for n, _ in parts)


def ridge_stages(est: Any) -> list[Stage]:
    """Return the only stage of a linear map in closed form, or refuse what is none."""
    for name, only in (("hidden", ()), ("output", "mean")):
        if getattr(est, name) != only:
            raise InvalidParameter(
                f"{type(est).__name__}: `{name}` must be {only!r} for the solver 'ridge'; got "
                f"{getattr(est, name)!r}. Use solver='sgd'."
            )
    return [Stage("ridge", RidgeMap(est.alpha), epochs=1)]
