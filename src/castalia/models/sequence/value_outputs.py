"""What a network says about a number: its mean, its quantiles, or a distribution of it.

Shapes: P numbers that the network gives for each value; values are (..., P).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution

from castalia.objectives import (
    LIKELIHOODS,
    ForecastLikelihood,
    ForecastLoss,
    ForecastQuantiles,
    Likelihood,
    MixtureLikelihood,
)

__all__ = ["OUTPUTS", "ValueOutput"]

OUTPUTS = ("mean", "quantile", *LIKELIHOODS)
QUANTILES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
COMPONENTS = 3
DRAWS = 500  # of a distribution without quantiles in closed form


class ValueOutput:
    """How a network's numbers are trained and read.

    Parameters
    ----------
    output
        ``"mean"``, ``"quantile"``, or a likelihood: ``"gaussian"``, ``"laplace"``, ``"poisson"``,
        ``"mixture"``.

    Examples
    --------
    >>> ValueOutput("gaussian").middle(torch.tensor([[3.0, 0.0]]))
    tensor([3.], dtype=torch.float64)
    """

    def __init__(self, output: str) -> None:
        self.output = output

    def likelihood(self) -> Likelihood:
        """Return the likelihood of one number."""
        if self.output == "mixture":
            return MixtureLikelihood(COMPONENTS)
        return LIKELIHOODS[self.output]()

    def loss(self) -> ForecastLoss:
        """Return what is minimised."""
        if self.output == "mean":
            return ForecastLoss()
        if self.output == "quantile":
            return ForecastQuantiles(QUANTILES)
        return ForecastLikelihood(self.likelihood())

    def middle(self, values: Tensor) -> Tensor:
        """Return the mean, or the median of quantiles, (...)."""
        if self.output == "mean":
            return values[..., 0]
        if self.output == "quantile":
            return values.sort(dim=-1).values[..., QUANTILES.index(0.5)]
        return self._distribution(values).mean.view(values.shape[:-1])

    def quantile(self, values: Tensor, level: float) -> Tensor:
        """Return the quantile of a level, (...)."""
        if self.output == "quantile":
            ordered = values.sort(dim=-1).values.numpy()
            place = np.interp(level, QUANTILES, np.arange(len(QUANTILES)))
            low = int(place)
            high = min(low + 1, len(QUANTILES) - 1)
            return torch.from_numpy(
                ordered[..., low] + (place - low) * (ordered[..., high] - ordered[..., low])
            )
        found = self._distribution(values)
        base = getattr(found, "base_dist", found)
        if self.output in ("gaussian", "laplace"):
            return base.icdf(torch.tensor(level, dtype=torch.float64)).view(values.shape[:-1])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            drawn = found.sample(torch.Size([DRAWS]))
        return drawn.quantile(level, dim=0).view(values.shape[:-1])

    def _distribution(self, values: Tensor) -> Distribution:
        return self.likelihood().distribution(values.flatten(0, -2).double())
