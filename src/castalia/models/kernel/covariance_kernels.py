"""Kernels and their algebra: sums and products of kernels are kernels.

A kernel is a small record of hyperparameters. Computation is by functions of theta, their
logarithms, so that gradients flow and many settings can be tried in one batch.
Shapes: N and M rows, D columns, P hyperparameters, R settings in front of everything (or none).
Reference: 2006, Rasmussen, Williams, Gaussian processes for machine learning, chapter 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from castalia.base.saved_values import register
from castalia.errors import InvalidParameter, ShapeMismatch

__all__ = [
    "RBF",
    "Constant",
    "Kernel",
    "Linear",
    "Matern",
    "Periodic",
    "ProductKernel",
    "RationalQuadratic",
    "SumKernel",
    "White",
]


class Kernel(BaseEstimator):
    """Base of kernels: ``a + b``, ``a * b`` and ``2.0 * a`` are kernels too.

    A subclass gives ``cross`` and ``diag``; its fields, in order, are the hyperparameters that are
    learnt, but for those named in ``fixed``.
    """

    fixed: ClassVar[tuple[str, ...]] = ()

    # -- the algebra --

    def __add__(self, other: Any) -> Kernel:
        return SumKernel(self, as_kernel(other))

    def __radd__(self, other: Any) -> Kernel:
        return SumKernel(as_kernel(other), self)

    def __mul__(self, other: Any) -> Kernel:
        return ProductKernel(self, as_kernel(other))

    def __rmul__(self, other: Any) -> Kernel:
        return ProductKernel(as_kernel(other), self)

    # -- hyperparameters --

    def learnt(self) -> list[str]:
        """Return the names of the hyperparameters that are learnt."""
        return [f.name for f in fields(self) if f.name not in self.fixed]  # type: ignore[arg-type]

    def theta(self, width: int) -> Tensor:
        """Return the logarithms of the hyperparameters for rows of D columns, (P,)."""
        parts = [np.atleast_1d(getattr(self.wide(width), name)) for name in self.learnt()]
        values = np.concatenate([np.zeros(0), *parts]).astype(np.float64)
        if not np.all(values > 0):
            raise InvalidParameter(
                f"{type(self).__name__}: hyperparameters must be above 0; got {self!r}."
            )
        return torch.from_numpy(np.log(values))

    def wide(self, width: int) -> Kernel:
        """Return the kernel with as many length scales as it needs for D columns."""
        return self

    def with_theta(self, theta: Tensor, width: int) -> Kernel:
        """Return the kernel with other hyperparameters."""
        made, values, at = self.wide(width), theta.exp().tolist(), 0
        found: dict[str, Any] = {}
        for name in self.learnt():
            size = len(np.atleast_1d(getattr(made, name)))
            part = values[at : at + size]
            found[name] = tuple(part) if np.ndim(getattr(made, name)) else part[0]
            at += size
        return replace(made, **found)  # type: ignore[type-var]

    # -- computation --

    def cross(self, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Return k(x, z) of all pairs of different rows, (…, N, M): white noise is none of it."""
        raise NotImplementedError

    def diag(self, theta: Tensor, X: Tensor) -> Tensor:
        """Return k(x, x) of each row with itself, white noise included, (…, N)."""
        raise NotImplementedError

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """Return the kernel matrix of rows X with rows Z, or with themselves, (N, M)."""
        x = torch.as_tensor(np.asarray(X, dtype=np.float64))
        theta = self.theta(x.shape[1])
        if Z is not None:
            z = torch.as_tensor(np.asarray(Z, dtype=np.float64))
            return self.cross(theta, x, z).expand(len(x), len(z)).numpy()
        K = self.cross(theta, x, x).expand(len(x), len(x)).clone()
        K.diagonal().copy_(self.diag(theta, x))
        return K.numpy()

    def __repr__(self) -> str:
        shown = [f"{f.name}={_short(getattr(self, f.name))}" for f in fields(self)]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown)})"


def _short(value: Any) -> str:
    if isinstance(value, tuple | list | np.ndarray):
        return f"({', '.join(f'{v:.4g}' for v in value)})"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def as_kernel(value: Any) -> Kernel:
    """Return a kernel; a number above 0 is a constant one."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, Real) and not isinstance(value, bool) and float(value) > 0:
        return Constant(float(value))
    raise InvalidParameter(
        f"Kernel: an operand must be a kernel or a number above 0; got {value!r}."
    )


# -- kernels of two kernels --


@dataclass(eq=False, repr=False)
class _Pair(Kernel):
    left: Kernel
    right: Kernel

    def theta(self, width: int) -> Tensor:
        return torch.cat([self.left.theta(width), self.right.theta(width)])

    def wide(self, width: int) -> Kernel:
        return replace(self, left=self.left.wide(width), right=self.right.wide(width))

    def with_theta(self, theta: Tensor, width: int) -> Kernel:
        cut = len(self.left.theta(width))
        left = self.left.with_theta(theta[:cut], width)
        return replace(self, left=left, right=self.right.with_theta(theta[cut:], width))

    def _cut(self, theta: Tensor, width: int) -> tuple[Tensor, Tensor]:
        cut = len(self.left.theta(width))
        return theta[..., :cut], theta[..., cut:]


@register
@dataclass(eq=False, repr=False)
class SumKernel(_Pair):
    """k(x, z) = a(x, z) + b(x, z)."""

    def cross(self, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Return both added up."""
        a, b = self._cut(theta, X.shape[-1])
        return self.left.cross(a, X, Z) + self.right.cross(b, X, Z)

    def diag(self, theta: Tensor, X: Tensor) -> Tensor:
        """Return both added up."""
        a, b = self._cut(theta, X.shape[-1])
        return self.left.diag(a, X) + self.right.diag(b, X)

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"


@register
@dataclass(eq=False, repr=False)
class ProductKernel(_Pair):
    """k(x, z) = a(x, z) b(x, z)."""

    def cross(self, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Return the product."""
        a, b = self._cut(theta, X.shape[-1])
        return self.left.cross(a, X, Z) * self.right.cross(b, X, Z)

    def diag(self, theta: Tensor, X: Tensor) -> Tensor:
        """Return the product."""
        a, b = self._cut(theta, X.shape[-1])
        return self.left.diag(a, X) * self.right.diag(b, X)

    def __repr__(self) -> str:
        sides = (self.left, self.right)
        return " * ".join(f"({s!r})" if isinstance(s, SumKernel) else repr(s) for s in sides)


# -- kernels of their own --


def _column(theta: Tensor, place: int) -> Tensor:
    """Return a hyperparameter, shaped to multiply (…, N, M)."""
    return theta[..., place, None, None].exp()


@register
@dataclass(eq=False, repr=False)
class Constant(Kernel):
    """k(x, z) = variance: an unknown level; as a factor, the variance of another kernel.

    Examples
    --------
    >>> (2.0 * RBF())([[0.0], [1.0]]).round(3).tolist()
    [[2.0, 1.213], [1.213, 2.0]]
    """

    variance: float = 1.0

    def cross(self, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Return the variance; one number stands for all pairs."""
        return _column(theta, 0)

    def diag(self, theta: Tensor, X: Tensor) -> Tensor:
        """Return the variance."""
        return theta[..., :1].exp().expand(*theta.shape[:-1], X.shape[-2])


@register
@dataclass(eq=False, repr=False)
class White(Kernel):
    """k(x, z) = variance where x and z are the same row, else 0: noise of each observation."""

    variance: float = 1.0

    def cross(self, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Return 0; one number stands for all pairs."""
        return torch.zeros_like(_column(theta, 0))

    def diag(self, theta: Tensor, X: Tensor) -> Tensor:
        """Return the variance."""
        return theta[..., :1].exp().expand(*theta.shape[:-1], X.shape[-2])


@register
@dataclass(eq=False, repr=False)
class Linear(Kernel):
    """k(x, z) = variance x.z: straight lines through the origin; add a Constant for a level."""

    variance: float = 1.0

    def cross(self, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Return scaled inner products."""
        return _column(theta, 0) * (X @ Z.mT)

    def diag(self, theta: Tensor, X: Tensor) -> Tensor:
        """Return scaled squares."""
        return theta[..., :1].exp() * X.square().sum(dim=-1)


@dataclass(eq=False, repr=False)
class _Stationary(Kernel):
    """A function of x - z over length scales: one for all columns, or one each."""

    length_scale: Any = 1.0
    ard: bool = False
    fixed: ClassVar[tuple[str, ...]] = ("ard",)

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

    def diag(self, theta: Tensor, X: Tensor) -> Tensor:
        """Return ones."""
        return torch.ones(*theta.shape[:-1], X.shape[-2], dtype=X.dtype, device=X.device)


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

    def cross(self, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Return the kernel of all pairs."""
        return (-0.5 * squares(self._scaled(theta, X), self._scaled(theta, Z))).exp()


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

    def cross(self, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Return the kernel of all pairs."""
        if self.nu not in (0.5, 1.5, 2.5):
            raise InvalidParameter(f"Matern: `nu` must be 0.5, 1.5 or 2.5; got {self.nu!r}.")
        x, z = self._scaled(theta, X), self._scaled(theta, Z)
        d = torch.cdist(x, z, compute_mode="donot_use_mm_for_euclid_dist")
        d = d * math.sqrt(2 * self.nu)
        if self.nu == 0.5:
            return (-d).exp()
        shape = 1 + d if self.nu == 1.5 else 1 + d + d.square() / 3
        return shape * (-d).exp()


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

    def cross(self, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Return the kernel of all pairs."""
        alpha = _column(theta, self._scales(X.shape[-1]))
        apart = squares(self._scaled(theta, X), self._scaled(theta, Z))
        return (-alpha * torch.log1p(apart / (2 * alpha))).exp()


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
        scales = self._scales(X.shape[-1])
        turn = (2 * math.pi * (-theta[..., None, scales : scales + 1]).exp()) * X
        other = (2 * math.pi * (-theta[..., None, scales : scales + 1]).exp()) * Z
        at, to = (self._circle(theta, angles) for angles in (turn, other))
        return (-0.5 * squares(at, to)).exp()

    def _circle(self, theta: Tensor, angles: Tensor) -> Tensor:
        """Return points on circles whose distance is 2 sin(angle / 2) / l, (…, N, 2 D)."""
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
