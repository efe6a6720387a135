"""Kernels: what they say of two rows, and how that changes with their hyperparameters.

Stationary ones are a function of x - z over length scales l. With s = sum_d (x_d - z_d)^2 / l_d^2,
d k / d log l_d = -2 (d k / d s) (x_d - z_d)^2 / l_d^2.
Shapes: N and M rows, D columns, P hyperparameters, R settings in front of everything (or none).
Reference: 2006, Rasmussen, Williams, Gaussian processes for machine learning, chapter 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from castalia.base.saved_values import register
from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.models.kernel.kernel_algebra import Constant, Kernel, Pull, shaped

__all__ = ["RBF", "Linear", "Matern", "Periodic", "RationalQuadratic", "White"]


@register
@dataclass(eq=False, repr=False)
class White(Constant):
    """k(x, z) = variance where x and z are the same row, else 0: noise of each observation.

    Examples
    --------
    >>> White(0.5)([[0.0], [0.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    def cross_and_pull(self, theta: Tensor, X: Tensor, Z: Tensor) -> tuple[Tensor, Pull]:
        """Return 0, one number that stands for all pairs, and its pull."""
        return torch.zeros_like(shaped(theta, 0)), lambda slope: torch.zeros_like(theta)

    def diag(self, theta: Tensor, X: Tensor, *, noise: bool = True) -> Tensor:
        """Return the variance, or 0 without noise."""
        return super().diag(theta, X) if noise else theta.new_zeros(*theta.shape[:-1], X.shape[-2])

    def diag_and_pull(self, theta: Tensor, X: Tensor, *, noise: bool = True) -> tuple[Tensor, Pull]:
        """Return the variance, or 0 without noise, and its pull."""
        k = self.diag(theta, X, noise=noise)
        return k, lambda slope: (k * slope).sum(dim=-1, keepdim=True)


@register
@dataclass(eq=False, repr=False)
class Linear(Kernel):
    """k(x, z) = variance x.z: straight lines through the origin; add a Constant for a level.

    Examples
    --------
    >>> Linear(2.0)([[1.0, 3.0]], [[2.0, 1.0]]).tolist()
    [[10.0]]
    """

    variance: float = 1.0

    def cross_and_pull(self, theta: Tensor, X: Tensor, Z: Tensor) -> tuple[Tensor, Pull]:
        """Return scaled inner products and their pull."""
        k = shaped(theta, 0) * (X @ Z.mT)
        return k, lambda slope: (k * slope).sum(dim=(-2, -1))[..., None]

    def diag(self, theta: Tensor, X: Tensor, *, noise: bool = True) -> Tensor:
        """Return scaled squares."""
        return theta[..., :1].exp() * X.square().sum(dim=-1)

    def diag_and_pull(self, theta: Tensor, X: Tensor, *, noise: bool = True) -> tuple[Tensor, Pull]:
        """Return scaled squares and their pull."""
        k = self.diag(theta, X)
        return k, lambda slope: (k * slope).sum(dim=-1, keepdim=True)


@dataclass(eq=False, repr=False)
class _Stationary(Kernel):
    """A function of x - z over length scales: one for all columns, or one each."""

    length_scale: Any = 1.0
    ard: bool = False
    fixed: ClassVar[tuple[str, ...]] = ("ard",)

    def size(self, width: int) -> int:
        return self._scales(width) + len(self.learnt()) - 1

    def wide(self, width: int) -> Kernel:
        scale = self.length_scale
        if np.ndim(scale) == 0:
            return replace(self, length_scale=(scale,) * width) if self.ard else self
        if len(scale) != width:
            raise ShapeMismatch(
                f"{type(self).__name__}: `length_scale` must have one entry for each of {width} "
                f"columns; got {len(scale)}."
            )
        return self

    def _scales(self, width: int) -> int:
        """Return how many of theta are length scales."""
        return width if self.ard or np.ndim(self.length_scale) else 1

    def _scaled(self, theta: Tensor, X: Tensor) -> Tensor:
        """Return rows over their length scales, (…, N, D)."""
        return X * (-theta[..., None, : self._scales(X.shape[-1])]).exp()

    def cross_and_pull(self, theta: Tensor, X: Tensor, Z: Tensor) -> tuple[Tensor, Pull]:
        """Return the kernel of all pairs and its pull."""
        x, z = self._scaled(theta, X), self._scaled(theta, Z)
        apart = self._apart(x, z)
        k = self._value(theta, apart)

        def pull(slope: Tensor) -> Tensor:
            by_squares = slope * self._falling(theta, apart, k)  # -2 d f / d s, (…, N, M)
            scales = column_squares(by_squares, x, z)
            if self._scales(X.shape[-1]) == 1:
                scales = scales.sum(dim=-1, keepdim=True)
            return torch.cat([scales, self._others(theta, apart, k, slope)], dim=-1)

        return k, pull

    def _apart(self, x: Tensor, z: Tensor) -> Tensor:
        """Return what the kernel is a function of, (…, N, M): s."""
        return squares(x, z)

    def _value(self, theta: Tensor, apart: Tensor) -> Tensor:
        """Return k."""
        raise NotImplementedError

    def _falling(self, theta: Tensor, apart: Tensor, k: Tensor) -> Tensor:
        """Return -2 d k / d s."""
        raise NotImplementedError

    def _others(self, theta: Tensor, apart: Tensor, k: Tensor, slope: Tensor) -> Tensor:
        """Return the pull of what follows the length scales in theta."""
        return slope.new_zeros(*slope.shape[:-2], 0)

    def diag(self, theta: Tensor, X: Tensor, *, noise: bool = True) -> Tensor:
        """Return ones."""
        return torch.ones(*theta.shape[:-1], X.shape[-2], dtype=X.dtype, device=X.device)

    def diag_and_pull(self, theta: Tensor, X: Tensor, *, noise: bool = True) -> tuple[Tensor, Pull]:
        """Return ones and their pull, zeros."""
        return self.diag(theta, X), lambda slope: torch.zeros_like(theta)


@register
@dataclass(eq=False, repr=False)
class RBF(_Stationary):
    """k(x, z) = exp(-|x - z|^2 / (2 l^2)): functions as smooth as can be.

    Parameters
    ----------
    length_scale
        l: over which distance values stay alike; one number, or one a column.
    ard
        Whether each column gets its own: those that do not matter grow long.

    Examples
    --------
    >>> RBF(2.0)([[0.0]], [[2.0]]).round(4).tolist()
    [[0.6065]]
    """

    def _value(self, theta: Tensor, apart: Tensor) -> Tensor:
        return (-0.5 * apart).exp_()

    def _falling(self, theta: Tensor, apart: Tensor, k: Tensor) -> Tensor:
        return k


@register
@dataclass(eq=False, repr=False)
class Matern(_Stationary):
    """Functions that can be differentiated nu - 1/2 times.

    Parameters
    ----------
    length_scale, ard
        As in ``RBF``.
    nu
        0.5 (rough), 1.5 or 2.5.
    """

    nu: float = 2.5
    fixed: ClassVar[tuple[str, ...]] = ("ard", "nu")

    def _apart(self, x: Tensor, z: Tensor) -> Tensor:
        """Return sqrt(2 nu s)."""
        if self.nu not in (0.5, 1.5, 2.5):
            raise InvalidParameter(f"Matern: `nu` must be 0.5, 1.5 or 2.5; got {self.nu!r}.")
        d = torch.cdist(x, z, compute_mode="donot_use_mm_for_euclid_dist")
        return d * math.sqrt(2 * self.nu)

    def _value(self, theta: Tensor, apart: Tensor) -> Tensor:
        if self.nu == 0.5:
            return (-apart).exp()
        shape = 1 + apart if self.nu == 1.5 else 1 + apart + apart.square() / 3
        return shape * (-apart).exp()

    def _falling(self, theta: Tensor, apart: Tensor, k: Tensor) -> Tensor:
        if self.nu == 0.5:
            return torch.where(apart > 0, k / apart, 0.0)
        shape = 3.0 if self.nu == 1.5 else 5 / 3 * (1 + apart)
        return shape * (-apart).exp()


@register
@dataclass(eq=False, repr=False)
class RationalQuadratic(_Stationary):
    """k(x, z) = (1 + |x - z|^2 / (2 alpha l^2))^-alpha: many length scales mixed.

    Parameters
    ----------
    length_scale, ard
        As in ``RBF``.
    alpha
        Small: scales far apart; large: ``RBF``.
    """

    alpha: float = 1.0

    def _ratio(self, theta: Tensor, apart: Tensor) -> tuple[Tensor, Tensor]:
        """Return alpha and s / (2 alpha)."""
        alpha = shaped(theta, -1)
        return alpha, apart / (2 * alpha)

    def _value(self, theta: Tensor, apart: Tensor) -> Tensor:
        alpha, ratio = self._ratio(theta, apart)
        return (-alpha * torch.log1p(ratio)).exp()

    def _falling(self, theta: Tensor, apart: Tensor, k: Tensor) -> Tensor:
        return k / (1 + self._ratio(theta, apart)[1])

    def _others(self, theta: Tensor, apart: Tensor, k: Tensor, slope: Tensor) -> Tensor:
        alpha, ratio = self._ratio(theta, apart)
        change = alpha * (ratio / (1 + ratio) - torch.log1p(ratio))  # d log k / d log alpha
        return (slope * k * change).sum(dim=(-2, -1))[..., None]


@register
@dataclass(eq=False, repr=False)
class Periodic(_Stationary):
    """k(x, z) = exp(-2 sum_d sin^2(pi (x_d - z_d) / p) / l_d^2): what comes again after p.

    Parameters
    ----------
    length_scale, ard
        As in ``RBF``, over a turn of a circle.
    period
        p.
    """

    period: float = 1.0

    def cross(self, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Return the kernel of all pairs: an RBF of points on circles."""
        at, to = (self._circle(theta, rows) for rows in (X, Z))
        return (-0.5 * squares(at, to)).exp()

    def cross_and_pull(self, theta: Tensor, X: Tensor, Z: Tensor) -> tuple[Tensor, Pull]:
        """Return the kernel of all pairs and its pull, by automatic differentiation."""
        return Kernel.cross_and_pull(self, theta, X, Z)

    def _circle(self, theta: Tensor, X: Tensor) -> Tensor:
        """Return points on circles whose distance is 2 sin(angle / 2) / l, (…, N, 2 D)."""
        angles = (2 * math.pi * (-theta[..., None, -1:]).exp()) * X
        sides = [self._scaled(theta, part) for part in (angles.cos(), angles.sin())]
        return torch.cat(sides, dim=-1)


def squares(x: Tensor, z: Tensor) -> Tensor:
    """Return |x - z|^2 of all pairs, (…, N, M), by one matrix product."""
    middle = z.detach().mean(dim=-2, keepdim=True)  # far from zero, squares would lose digits
    x, z = x - middle, z - middle
    one = torch.cat([x, x.square().sum(dim=-1, keepdim=True), torch.ones_like(x[..., :1])], dim=-1)
    two = torch.cat(
        [-2 * z, torch.ones_like(z[..., :1]), z.square().sum(dim=-1, keepdim=True)], dim=-1
    )
    return (one @ two.mT).clamp_min(0)


def column_squares(weight: Tensor, x: Tensor, z: Tensor) -> Tensor:
    """Return sum_ij w_ij (x_id - z_jd)^2, (…, N, M) and rows to (…, D), by one matrix product."""
    middle = z.mean(dim=-2, keepdim=True)
    x, z = x - middle, z - middle
    of_x = (weight.sum(dim=-1, keepdim=True) * x.square()).sum(dim=-2)
    of_z = (weight.sum(dim=-2)[..., None] * z.square()).sum(dim=-2)
    return of_x + of_z - 2 * (x * (weight @ z)).sum(dim=-2)
