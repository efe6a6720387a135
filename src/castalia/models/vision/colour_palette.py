"""The palette of an image: mean and covariance of its colours, and giving one to another.

x' = S_s^(1/2) S_c^(-1/2) (x - m_c) + m_s  has the mean m_s and the covariance S_s.
Shapes: H height, W width; colours are red, green and blue.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["palette", "with_palette"]

LEAST = 1e-5  # variance added to every direction: an image may have a single colour


def palette(x: Tensor) -> tuple[Tensor, Tensor]:  # (1, 3, H, W)
    """Return the mean, (3,), and the covariance, (3, 3), of an image's colours.

    >>> mean, covariance = palette(torch.zeros(1, 3, 4, 4))
    >>> mean, bool(covariance.abs().max() < 1e-4)
    (tensor([0., 0., 0.]), True)
    """
    pixels = x[0].flatten(1)  # (3, M)
    mean = pixels.mean(dim=1)
    off = pixels - mean[:, None]
    return mean, off @ off.T / off.shape[1] + LEAST * torch.eye(len(off)).to(off)


def with_palette(x: Tensor, mean: Tensor, covariance: Tensor) -> Tensor:  # (1, 3, H, W)
    """Return an image in the colours of another one, cut to between 0 and 1."""
    own, spread = palette(x)
    turn = _power(covariance, 0.5) @ _power(spread, -0.5)
    moved = turn @ (x[0].flatten(1) - own[:, None]) + mean[:, None]
    return moved.clamp(0, 1).view_as(x)


def _power(symmetric: Tensor, exponent: float) -> Tensor:
    values, vectors = torch.linalg.eigh(symmetric)
    return (vectors * values.clamp_min(LEAST).pow(exponent)) @ vectors.T
