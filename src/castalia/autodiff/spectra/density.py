"""The whole spectrum of a Hessian, smoothed: stochastic Lanczos quadrature.

From a random vector of length one, m steps of Lanczos give m nodes (Ritz values) and weights
(squared first coordinates) whose weighted sum of any f is an estimate of trace f(H) / n. The mean
over a few vectors is a spectral density.

Reference: 2019, Ghorbani, Krishnan, Xiao, An investigation into neural net optimization via Hessian
eigenvalue density, arXiv 1901.10159.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from castalia.autodiff.arguments import Arguments
from castalia.autodiff.derivatives import Wrt
from castalia.autodiff.functional_calls import differentiating
from castalia.autodiff.spectra.lanczos import lanczos
from castalia.autodiff.spectra.spectrum import HessianOperator, check_counts
from castalia.errors import InvalidParameter

__all__ = ["SpectralDensity", "hessian_density"]


@dataclass(frozen=True)
class SpectralDensity:
    """An estimate of how eigenvalues are spread: points with weights that sum to one.

    Attributes
    ----------
    nodes, weights
        Eigenvalue estimates in ascending order and the share of the spectrum each stands for.
    n
        Number of eigenvalues.
    """

    nodes: Tensor
    weights: Tensor
    n: int

    @property
    def trace(self) -> float:
        """Estimated sum of all eigenvalues."""
        return self.n * float(self.weights @ self.nodes)

    def share(self, low: float = -float("inf"), high: float = float("inf")) -> float:
        """Return the estimated share of eigenvalues between two values."""
        return float(self.weights[(self.nodes >= low) & (self.nodes <= high)].sum())

    def curve(self, points: int = 400, width: float | None = None) -> tuple[Tensor, Tensor]:
        """Return a grid and the density on it, each node widened to a Gaussian.

        Parameters
        ----------
        points
            Size of the grid.
        width
            Standard deviation of the Gaussians; None: a hundredth of the range.
        """
        span = float(self.nodes[-1] - self.nodes[0]) or 1.0
        width = span / 100 if width is None else width
        if not width > 0:
            raise InvalidParameter(
                f"SpectralDensity.curve: `width` must be positive; got {width!r}."
            )
        low, high = float(self.nodes[0]) - 5 * width, float(self.nodes[-1]) + 5 * width
        grid = torch.linspace(low, high, points, dtype=torch.float64)
        bells = torch.distributions.Normal(self.nodes, width).log_prob(grid[:, None]).exp()
        return grid, bells @ self.weights

    def plot(self, ax: Any = None) -> Any:
        """Draw the density on a logarithmic scale and return the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        grid, height = self.curve()
        ax.semilogy(grid, height.clamp_min(1e-8))
        ax.set(xlabel="eigenvalue of the Hessian", ylabel="density")
        return ax


@differentiating()
def hessian_density(
    fn: Callable[..., Tensor],
    *inputs: Any,
    wrt: Wrt = 0,
    n_vectors: int = 4,
    max_steps: int = 64,
    allow_unused: bool = False,
    random_state: Any = 0,
) -> SpectralDensity:
    """Spectral density of the Hessian of a function that returns one number.

    Parameters
    ----------
    fn, inputs, wrt, allow_unused
        As for `gradient`.
    n_vectors
        Random vectors to average over; more make the estimate less noisy.
    max_steps
        Hessian-vector products for each; more resolve finer detail.
    random_state
        Seed of the vectors.

    See Also
    --------
    hessian_spectrum : the eigenvalues at both ends, to a tolerance.

    Examples
    --------
    >>> curvature = torch.cat([torch.full((90,), 0.0), torch.full((10,), 5.0)])
    >>> found = hessian_density(lambda x: (curvature * x**2).sum() / 2, torch.ones(100))
    >>> [round(node) for node in found.curve()[0][[0, -1]].tolist()]
    [0, 5]
    """
    check_counts("hessian_density", n_vectors=n_vectors, max_steps=max_steps)
    asked = Arguments("hessian_density", fn, inputs, wrt, twice=True)
    operator = HessianOperator(asked, random_state, allow_unused)
    nodes, weights = [], []
    for _ in range(n_vectors):
        values, _, coordinates = lanczos(operator, operator.draw(), max_steps).ritz()
        nodes.append(values)
        weights.append(coordinates[0].square() / n_vectors)
    order = torch.cat(nodes).argsort()
    return SpectralDensity(torch.cat(nodes)[order], torch.cat(weights)[order], operator.n)
