"""Gaussian noise on inputs or hidden units, in training only.

Additive: x + sigma n.  Multiplicative: x (1 + sigma n).  n ~ N(0, I).
For a linear model with squared error, additive noise on the inputs is ridge regression:
E sum_i (y_i - w (x_i + sigma n_i))^2 = sum_i (y_i - w x_i)^2 + N sigma^2 ||w||^2 over N rows.
Reference: 1995, Bishop, Training with noise is equivalent to Tikhonov regularization, Neural
Computation 7.
"""

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter

__all__ = ["GaussianNoise"]


class GaussianNoise(nn.Module):
    """Noise that leaves the mean alone and vanishes at inference.

    Parameters
    ----------
    std
        Standard deviation sigma, at least 0; larger values regularise more.
    multiplicative
        Multiply by 1 + sigma n instead of adding sigma n. With sigma^2 = (1 - q) / q this has the
        mean and the variance of dropout that keeps with probability q.

    Examples
    --------
    >>> GaussianNoise(0.5).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, std: float, *, multiplicative: bool = False) -> None:
        super().__init__()
        if std < 0:
            raise InvalidParameter(f"GaussianNoise: `std` must be at least 0; got {std}.")
        self.std, self.multiplicative = std, multiplicative

    def forward(self, x: Tensor) -> Tensor:
        """Return x with noise in training, x itself otherwise."""
        if not self.training or self.std == 0:
            return x
        noise = self.std * torch.randn_like(x)
        return x + x * noise if self.multiplicative else x + noise

    def extra_repr(self) -> str:
        """Show the settings."""
        return f"std={self.std}" + (", multiplicative=True" if self.multiplicative else "")
