"""The algebra of kernels: sums and products of kernels are kernels.

A kernel is a small record of hyperparameters. Computation is by functions of theta, their
logarithms, so that many settings can be tried in one batch. A *pull* carries d f / d K back to
d f / d theta = sum_ij (d f / d K_ij) (d K_ij / d theta).
Shapes: N and M rows, D columns, P hyperparameters, R settings in front of everything (or none).
Reference: 2006, Rasmussen, Williams, Gaussian processes for machine learning, chapters 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from castalia.base.saved_values import register
from castalia.errors import InvalidParameter

__all__ = ["Constant", "Kernel", "ProductKernel", "Pull", "SumKernel", "shaped"]

Pull = Callable[[Tensor], Tensor]


class Kernel(BaseEstimator):
    """Base of kernels: ``a + b``, ``a * b`` and ``2.0 * a`` are kernels too.

    A subclass gives ``diag``, and ``cross`` or ``cross_and_pull``; its fields, in order, are the
    hyperparameters that are learnt, but for those named in ``fixed``.
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

    def size(self, width: int) -> int:
        """Return the number P of hyperparameters for rows of D columns."""
        return len(self.learnt())

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
        return self.cross_and_pull(theta, X, Z)[0]

    def diag(self, theta: Tensor, X: Tensor, *, noise: bool = True) -> Tensor:
        """Return k(x, x) of each row with itself, white noise included or not, (…, N)."""
        raise NotImplementedError

    def cross_and_pull(self, theta: Tensor, X: Tensor, Z: Tensor) -> tuple[Tensor, Pull]:
        """Return ``cross`` and its pull, (…, N, M) to (…, P)."""
        return _by_autograd(lambda at: self.cross(at, X, Z), theta)

    def diag_and_pull(self, theta: Tensor, X: Tensor, *, noise: bool = True) -> tuple[Tensor, Pull]:
        """Return ``diag`` and its pull, (…, N) to (…, P)."""
        return _by_autograd(lambda at: self.diag(at, X, noise=noise), theta)

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


def _by_autograd(function: Pull, theta: Tensor) -> tuple[Tensor, Pull]:
    inner = theta.detach().requires_grad_()
    with torch.enable_grad():
        found = function(inner)

    def pull(slope: Tensor) -> Tensor:
        whole = found.expand(slope.shape)
        return torch.autograd.grad(whole, inner, slope, retain_graph=True)[0]

    return found.detach().clone(), pull


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

    def size(self, width: int) -> int:
        return self.left.size(width) + self.right.size(width)

    def theta(self, width: int) -> Tensor:
        return torch.cat([self.left.theta(width), self.right.theta(width)])

    def wide(self, width: int) -> Kernel:
        return replace(self, left=self.left.wide(width), right=self.right.wide(width))

    def with_theta(self, theta: Tensor, width: int) -> Kernel:
        a, b = self._cut(theta, width)
        left, right = self.left.with_theta(a, width), self.right.with_theta(b, width)
        return replace(self, left=left, right=right)

    def _cut(self, theta: Tensor, width: int) -> tuple[Tensor, Tensor]:
        cut = self.left.size(width)
        return theta[..., :cut], theta[..., cut:]

    def _join(self, a: Tensor, b: Tensor) -> Tensor:
        raise NotImplementedError

    def _join_pulls(self, a: tuple[Tensor, Pull], b: tuple[Tensor, Pull]) -> Pull:
        raise NotImplementedError

    def cross(self, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Return that of both, joined."""
        a, b = self._cut(theta, X.shape[-1])
        return self._join(self.left.cross(a, X, Z), self.right.cross(b, X, Z))

    def diag(self, theta: Tensor, X: Tensor, *, noise: bool = True) -> Tensor:
        """Return that of both, joined."""
        a, b = self._cut(theta, X.shape[-1])
        return self._join(self.left.diag(a, X, noise=noise), self.right.diag(b, X, noise=noise))

    def cross_and_pull(self, theta: Tensor, X: Tensor, Z: Tensor) -> tuple[Tensor, Pull]:
        """Return that of both, joined."""
        a, b = self._cut(theta, X.shape[-1])
        one, two = self.left.cross_and_pull(a, X, Z), self.right.cross_and_pull(b, X, Z)
        return self._join(one[0], two[0]), self._join_pulls(one, two)

    def diag_and_pull(self, theta: Tensor, X: Tensor, *, noise: bool = True) -> tuple[Tensor, Pull]:
        """Return that of both, joined."""
        a, b = self._cut(theta, X.shape[-1])
        one = self.left.diag_and_pull(a, X, noise=noise)
        two = self.right.diag_and_pull(b, X, noise=noise)
        return self._join(one[0], two[0]), self._join_pulls(one, two)


@register
@dataclass(eq=False, repr=False)
class SumKernel(_Pair):
    """k(x, z) = a(x, z) + b(x, z)."""

    def _join(self, a: Tensor, b: Tensor) -> Tensor:
        return a + b

    def _join_pulls(self, a: tuple[Tensor, Pull], b: tuple[Tensor, Pull]) -> Pull:
        return lambda slope: torch.cat([a[1](slope), b[1](slope)], dim=-1)

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"


@register
@dataclass(eq=False, repr=False)
class ProductKernel(_Pair):
    """k(x, z) = a(x, z) b(x, z)."""

    def _join(self, a: Tensor, b: Tensor) -> Tensor:
        return a * b

    def _join_pulls(self, a: tuple[Tensor, Pull], b: tuple[Tensor, Pull]) -> Pull:
        return lambda slope: torch.cat([a[1](slope * b[0]), b[1](slope * a[0])], dim=-1)

    def __repr__(self) -> str:
        sides = (self.left, self.right)
        return " * ".join(f"({s!r})" if isinstance(s, SumKernel) else repr(s) for s in sides)


# -- the kernel of a number --


def shaped(theta: Tensor, place: int) -> Tensor:
    """Return a hyperparameter, shaped to multiply (…, N, M)."""
    return theta[..., place, None, None].exp()


@register
@dataclass(eq=False, repr=False)
class Constant(Kernel):
    """k(x, z) = variance: an unknown level; as a factor, the variance of another kernel.

    Examples
    --------
    >>> (2.0 * Constant(1.5))([[0.0], [1.0]]).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """

    variance: float = 1.0

    def cross_and_pull(self, theta: Tensor, X: Tensor, Z: Tensor) -> tuple[Tensor, Pull]:
        """Return the variance, one number that stands for all pairs, and its pull."""
        k = shaped(theta, 0)
        return k, lambda slope: k[..., 0] * slope.sum(dim=(-2, -1))[..., None]

    def diag(self, theta: Tensor, X: Tensor, *, noise: bool = True) -> Tensor:
        """Return the variance."""
        return theta[..., :1].exp().expand(*theta.shape[:-1], X.shape[-2])

    def diag_and_pull(self, theta: Tensor, X: Tensor, *, noise: bool = True) -> tuple[Tensor, Pull]:
        """Return the variance and its pull."""
        k = self.diag(theta, X)
        return k, lambda slope: (k * slope).sum(dim=-1, keepdim=True)
