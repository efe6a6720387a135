"""Losses of forecasts: squared error, pinball losses of quantiles, or a likelihood.

The network gives numbers relative to the level of each window, with that level's shift and scale;
what is forecast is brought to the same units. Squared errors and pinball losses count in the units
of the series, log-likelihoods lack a constant.
Shapes: B batch, L context, H horizon, K channels, P numbers a value, Q quantiles.
Reference: 1978, Koenker, Bassett, Regression quantiles, Econometrica 46.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from castalia.objectives.likelihood import Likelihood
from castalia.objectives.objective import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["ForecastLikelihood", "ForecastLoss", "ForecastQuantiles", "pinball"]


def pinball(found: Tensor, wanted: Tensor, levels: Tensor) -> Tensor:
    """Return the pinball losses, (..., Q), of quantiles (..., Q) of values (..., 1).

    >>> pinball(torch.tensor([0.0]), torch.tensor([2.0]), torch.tensor([0.9]))
    tensor([1.8000])
    """
    gap = wanted - found
    return torch.maximum(levels * gap, (levels - 1) * gap)


class ForecastLoss(Objective):
    """Mean squared error over steps and channels; a batch's x is past and future.

    Examples
    --------
    >>> class Zero(nn.Module):
    ...     def forward(self, past):
    ...         from types import SimpleNamespace
    ...         one = torch.ones(1, 1, 1)
    ...         return SimpleNamespace(values=one[..., None], shift=one, scale=one)
    >>> batch = Batch((torch.zeros(1, 2, 1), torch.full((1, 1, 1), 5.0)))
    >>> ForecastLoss().terms(Zero(), batch, "train")["loss"]
    tensor(9.)
    """

    def values(self) -> int:
        """Return how many numbers the network gives for each value."""
        return 1

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean loss of the windows."""
        past, future = batch.x
        return {"loss": weighted_mean(self.rows(net(past), future), batch.weight)}

    def rows(self, forecast: Any, future: Tensor) -> Tensor:
        """Return the loss of each window, (B,)."""
        return self.each(forecast, future).flatten(1).mean(dim=1)

    def each(self, forecast: Any, future: Tensor) -> Tensor:
        """Return the loss of each value, (B, H, K)."""
        gap = forecast.values[..., 0] * forecast.scale + forecast.shift - future
        return gap.square()


class ForecastQuantiles(ForecastLoss):
    """Mean pinball loss of several quantiles.

    Parameters
    ----------
    levels
        Probabilities of the quantiles.
    """

    def __init__(self, levels: Sequence[float]) -> None:
        self.levels = tuple(levels)

    def values(self) -> int:
        """Return the number of quantiles."""
        return len(self.levels)

    def each(self, forecast: Any, future: Tensor) -> Tensor:
        """Return the loss of each value, (B, H, K)."""
        scale, shift = forecast.scale[..., None], forecast.shift[..., None]
        levels = future.new_tensor(self.levels)
        return pinball(forecast.values * scale + shift, future[..., None], levels).mean(dim=-1)


class ForecastLikelihood(ForecastLoss):
    """Negative log-likelihood of each value, a mean over steps and channels.

    Parameters
    ----------
    likelihood
        Of one number.
    """

    def __init__(self, likelihood: Likelihood) -> None:
        self.likelihood = likelihood

    def values(self) -> int:
        """Return the parameters of the likelihood."""
        return self.likelihood.outputs(1)

    def each(self, forecast: Any, future: Tensor) -> Tensor:
        """Return the loss of each value, (B, H, K)."""
        wanted = ((future - forecast.shift) / forecast.scale).flatten()[:, None]
        losses = self.likelihood.rows(forecast.values.flatten(0, -2), wanted)
        spread = forecast.scale.log().expand_as(future) if self.likelihood.scaled else 0.0
        return losses.view_as(future) + spread
