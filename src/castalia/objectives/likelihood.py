"""Networks whose outputs are the parameters of a distribution of y, fitted by maximum likelihood.

loss = - (1/B) sum_i log p(y_i | theta(x_i)).  Shapes: B batch, T targets, M mixture components.
References: 1994, Nix, Weigend (mean and variance); 1994, Bishop, Mixture density networks,
NCRG/94/004.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import (
    Categorical,
    Distribution,
    Independent,
    Laplace,
    MixtureSameFamily,
    Normal,
    Poisson,
)

from castalia.objectives.base import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = [
    "LIKELIHOODS",
    "GaussianLikelihood",
    "LaplaceLikelihood",
    "Likelihood",
    "MixtureLikelihood",
    "PoissonLikelihood",
]

# A spread below this is a point mass in float32; the floor keeps log-densities finite.
FLOOR = 1e-4


class Likelihood(Objective):
    """Negative log-likelihood of a family of distributions.

    Attributes
    ----------
    scaled
        Whether targets may be standardised first; counts may not.
    """

    scaled = True

    def outputs(self, targets: int) -> int:
        """Number of network outputs for this many targets."""
        raise NotImplementedError

    def distribution(self, outputs: Tensor) -> Distribution:
        """Return the distribution of y, one row of targets per row of outputs."""
        raise NotImplementedError

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean negative log-likelihood."""
        log_prob = self.distribution(net(batch.x)).log_prob(batch.y)  # (B,)
        return {"loss": weighted_mean(-log_prob, batch.weight)}


def _halves(outputs: Tensor) -> tuple[Tensor, Tensor]:
    location, spread = outputs.chunk(2, dim=1)
    return location, F.softplus(spread) + FLOOR


class GaussianLikelihood(Likelihood):
    """Normal with its own mean and standard deviation for every row.

    Examples
    --------
    >>> GaussianLikelihood().distribution(torch.zeros(5, 2)).mean.shape
    torch.Size([5, 1])
    """

    def outputs(self, targets: int) -> int:
        """Mean and spread of each target."""
        return 2 * targets

    def distribution(self, outputs: Tensor) -> Distribution:
        """Return independent normals."""
        return Independent(Normal(*_halves(outputs), validate_args=False), 1, validate_args=False)


class LaplaceLikelihood(GaussianLikelihood):
    """Laplace with its own location and scale for every row: heavier tails, robust to outliers."""

    def distribution(self, outputs: Tensor) -> Distribution:
        """Return independent Laplace distributions."""
        return Independent(Laplace(*_halves(outputs), validate_args=False), 1, validate_args=False)


class PoissonLikelihood(Likelihood):
    """Counts with a rate exp(f(x))."""

    scaled = False

    def outputs(self, targets: int) -> int:
        """One log-rate a target."""
        return targets

    def distribution(self, outputs: Tensor) -> Distribution:
        """Return independent Poisson distributions; rates are capped at e^20."""
        return Independent(
            Poisson(outputs.clamp(max=20.0).exp(), validate_args=False), 1, validate_args=False
        )


class MixtureLikelihood(Likelihood):
    """A mixture of normals for every row: several answers may be right.

    Parameters
    ----------
    components
        Number M of normals.
    """

    def __init__(self, components: int = 3) -> None:
        self.components = components

    def outputs(self, targets: int) -> int:
        """One logit and, for each target, a mean and a spread per component."""
        return self.components * (1 + 2 * targets)

    def distribution(self, outputs: Tensor) -> Distribution:
        """Return mixtures of independent normals."""
        m = self.components
        logits = outputs[:, :m]  # (B, M)
        location, spread = outputs[:, m:].reshape(len(outputs), m, -1).chunk(2, dim=2)  # (B, M, T)
        # Spread the starting means, or every component would learn the same.
        location = (
            location + torch.linspace(-1, 1, m, dtype=outputs.dtype, device=outputs.device)[:, None]
        )
        parts = Independent(
            Normal(location, F.softplus(spread) + FLOOR, validate_args=False),
            1,
            validate_args=False,
        )
        return MixtureSameFamily(
            Categorical(logits=logits, validate_args=False), parts, validate_args=False
        )


LIKELIHOODS: dict[str, type[Likelihood]] = {
    "gaussian": GaussianLikelihood,
    "laplace": LaplaceLikelihood,
    "poisson": PoissonLikelihood,
    "mixture": MixtureLikelihood,
}
