"""Networks whose outputs are the parameters of a distribution of y, fitted by maximum likelihood.

loss = - (1/B) sum_i log p(y_i | theta(x_i)).  Shapes: B batch, T targets, M mixture components.
References: 1994, Nix, Weigend (mean and variance); 1994, Bishop, Mixture density networks,
NCRG/94/004.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import (
    Bernoulli,
    Categorical,
    Distribution,
    Independent,
    Laplace,
    MixtureSameFamily,
    Normal,
    Poisson,
)

from castalia.errors import InvalidParameter
from castalia.objectives.objective import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = [
    "LIKELIHOODS",
    "BernoulliLikelihood",
    "GaussianLikelihood",
    "LaplaceLikelihood",
    "Likelihood",
    "MixtureLikelihood",
    "MultinoulliLikelihood",
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

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the negative log-likelihood of each row, (B,)."""
        return -self.distribution(outputs).log_prob(targets)

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean negative log-likelihood."""
        return {"loss": weighted_mean(self.rows(net(batch.x), batch.y), batch.weight)}


class GaussianLikelihood(Likelihood):
    """Normal with its own mean and standard deviation for every row.

    Parameters
    ----------
    scale
        A standard deviation that is known and the same for every row; None lets the network say it.
        With a known one the loss is that of ``SquaredError(scale="half")`` divided by scale^2, plus
        a constant.

    Examples
    --------
    >>> GaussianLikelihood().distribution(torch.zeros(5, 2)).mean.shape
    torch.Size([5, 1])
    """

    family: type[Normal | Laplace] = Normal

    def __init__(self, scale: float | None = None) -> None:
        if scale is not None and scale <= 0:
            raise InvalidParameter(
                f"{type(self).__name__}: `scale` must be above 0, or None; got {scale}."
            )
        self.scale = scale

    def outputs(self, targets: int) -> int:
        """Mean and spread of each target; the mean alone where the spread is known."""
        return 2 * targets if self.scale is None else targets

    def distribution(self, outputs: Tensor) -> Distribution:
        """Return independent distributions of the targets."""
        if self.scale is None:
            location, spread = outputs.chunk(2, dim=1)
            spread = F.softplus(spread) + FLOOR
        else:
            location, spread = outputs, torch.full_like(outputs, self.scale)
        return Independent(
            self.family(location, spread, validate_args=False), 1, validate_args=False
        )


class LaplaceLikelihood(GaussianLikelihood):
    """Laplace with its own location and scale for every row: heavier tails, robust to outliers."""

    family = Laplace


class BernoulliLikelihood(Likelihood):
    """Yes or no for each of L independent labels, with log-odds f(x).

    The likelihood of a row is a product over its labels, so this is L times
    ``BinaryCrossEntropy``, which averages over them.

    Examples
    --------
    >>> BernoulliLikelihood().distribution(torch.zeros(1, 2)).log_prob(torch.ones(1, 2)).exp()
    tensor([0.2500])
    """

    scaled = False

    def outputs(self, targets: int) -> int:
        """One log-odds a label."""
        return targets

    def distribution(self, outputs: Tensor) -> Distribution:
        """Return independent Bernoulli distributions."""
        return Independent(Bernoulli(logits=outputs, validate_args=False), 1, validate_args=False)


class MultinoulliLikelihood(Likelihood):
    """One of K classes, with log-probabilities f(x) up to a constant: ``CrossEntropy``.

    Examples
    --------
    >>> MultinoulliLikelihood().distribution(torch.zeros(1, 4)).probs
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    scaled = False

    def outputs(self, targets: int) -> int:
        """One logit for each of as many classes."""
        return targets

    def distribution(self, outputs: Tensor) -> Distribution:
        """Return categorical distributions; targets are class codes (B,)."""
        return Categorical(logits=outputs, validate_args=False)


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


# Those of numbers to regress on; classes have their own losses.
LIKELIHOODS: dict[str, type[Likelihood]] = {
    "gaussian": GaussianLikelihood,
    "laplace": LaplaceLikelihood,
    "poisson": PoissonLikelihood,
    "mixture": MixtureLikelihood,
}
