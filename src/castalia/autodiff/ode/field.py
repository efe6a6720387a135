"""The right-hand side f(t, y) on flat vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from castalia.autodiff.flat_vector import Packing

__all__ = ["Field"]


class Field:
    """f on flat vectors (N,): unpacks the state, packs the derivative, counts the evaluations."""

    def __init__(self, f: Callable[[Tensor, Any], Any], packing: Packing) -> None:
        self.f, self.packing = f, packing
        self.evaluations = 0

    def __call__(self, t: Tensor, y: Tensor) -> Tensor:
        """Return the derivative (N,) at a time () and a state (N,)."""
        self.evaluations += 1
        return self.packing.pack(self.f(t, self.packing.unpack(y)))

    def at(self, t: float, y: Tensor) -> Tensor:
        """Evaluate at a time that is a plain number."""
        return self(y.new_tensor(t), y)

    def first(self, t: float, y: Tensor) -> Tensor:
        """Evaluate, and refuse a derivative that is not built like the state."""
        self.evaluations += 1
        slope = self.f(y.new_tensor(t), self.packing.unpack(y))
        self.packing.check_like(slope, "`f(t, y)`")
        return self.packing.pack(slope)
