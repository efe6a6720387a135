"""Ising model of black and white images: neighbouring pixels tend to agree.

p(s | y) ~ exp(J sum_<ij> s_i s_j + h sum_i y_i s_i), with h = ln((1 - e) / e) / 2 for pixels
flipped with probability e, and h = 0 where a pixel is missing. Mean field updates the squares of a
checkerboard in turns, m_i = tanh(J sum m_j + h y_i), so its bound rises with every half sweep.
Shapes: H, W of the image.
Reference: 1984, Geman, Geman, Stochastic relaxation, Gibbs distributions, and the Bayesian
restoration of images, IEEE PAMI 6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from castalia.errors import InvalidData, InvalidParameter

__all__ = ["RestoredImage", "restore_image"]


class RestoredImage(NamedTuple):
    """A restored image.

    Attributes
    ----------
    image
        Most probable pixel each, 0 or 1, (H, W).
    probability
        Of a 1, (H, W).
    bounds
        Lower bound of the log evidence after each half sweep; it never falls.
    """

    image: np.ndarray
    probability: np.ndarray
    bounds: list[float]


def restore_image(
    image: Any, *, coupling: float = 1.0, noise: float = 0.1, steps: int = 50, tol: float = 1e-6
) -> RestoredImage:
    """Denoise a binary image and fill in its missing pixels, by mean field in an Ising model.

    Parameters
    ----------
    image
        Pixels 0 and 1, NaN where missing, (H, W).
    coupling
        J: larger makes smoother images.
    noise
        Probability that a pixel was flipped, above 0 and below one half.
    steps
        Most sweeps.
    tol
        Gain of the bound, a pixel, below which sweeps end.

    Examples
    --------
    >>> image = np.zeros((5, 5))
    >>> image[2, 2], image[0, 0] = 1, np.nan  # a speck, and a gap
    >>> int(restore_image(image).image.sum())
    0
    """
    y = np.asarray(image, dtype=float)
    if y.ndim != 2 or not np.isin(y[~np.isnan(y)], (0, 1)).all():
        raise InvalidData(
            "restore_image: `image` must be (H, W) of 0, 1 and NaN; got shape "
            f"{y.shape} and values such as {np.unique(y)[:4].tolist()}. Compare with a threshold."
        )
    if not 0 < noise < 0.5:
        raise InvalidParameter(
            f"restore_image: `noise` must be above 0 and below 0.5; got {noise!r}."
        )
    h = np.where(np.isnan(y), 0.0, 2 * y - 1) * 0.5 * np.log((1 - noise) / noise)
    m = np.tanh(h)
    white = np.indices(y.shape).sum(axis=0) % 2 == 0
    bounds = [_bound(m, h, coupling)]
    for _ in range(steps):
        for colour in (white, ~white):
            m = np.where(colour, np.tanh(coupling * _neighbours(m) + h), m)
            bounds.append(_bound(m, h, coupling))
        if bounds[-1] - bounds[-3] < tol * y.size:
            break
    p = (1 + m) / 2
    return RestoredImage((p > 0.5).astype(int), p, bounds)


def _neighbours(m: np.ndarray) -> np.ndarray:
    """Return the sum of the four neighbours; beyond the edge there are none."""
    total = np.zeros_like(m)
    total[1:] += m[:-1]
    total[:-1] += m[1:]
    total[:, 1:] += m[:, :-1]
    total[:, :-1] += m[:, 1:]
    return total


def _bound(m: np.ndarray, h: np.ndarray, coupling: float) -> float:
    """Return E_q ln p~ + H(q) of spins with means m."""
    p = (1 + m) / 2
    entropy = -(xlogy(p, p) + xlogy(1 - p, 1 - p)).sum()
    return float(coupling * (m * _neighbours(m)).sum() / 2 + (h * m).sum() + entropy)
