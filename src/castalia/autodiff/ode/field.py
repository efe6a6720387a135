"""The right-hand side f(t, y) on flat vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from castalia.autodiff.flat_vector import Packing

__all__ = ["Field"]


class Field:
    """f on flat vectors (N,): unpacks the state, packs the derivative, counts the evaluations.

    Parameters
    ----------
    f, packing
        The right-hand side, and how states lie in a vector.
    parameters
        Tensors inside f to differentiate by; None: those that its graph at the first state shows.
    """

    def __init__(
        self,
        f: Callable[[Tensor, Any], Any],
        packing: Packing,
        parameters: list[Tensor] | None = None,
    ) -> None:
        self.f, self.packing, self.parameters = f, packing, parameters
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

    def tensors(self, t: float, y: Tensor) -> list[Tensor]:
        """Return the tensors inside f that need gradients: a module's, and leaves of its graph."""
        if self.parameters is None:
            found = _leaves(self.first(t, y.detach()))
            owner = getattr(self.f, "__self__", self.f)  # a method of a module counts as the module
            if isinstance(owner, nn.Module):
                found |= {id(p): p for p in owner.parameters() if p.requires_grad}
            self.parameters = list(found.values())
        return self.parameters


def _leaves(value: Tensor) -> dict[int, Tensor]:
    """Return the leaves of the graph that computed a value, by their identity."""
    found: dict[int, Tensor] = {}
    waiting, seen = [value.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found[id(node.variable)] = node.variable
        waiting.extend(following for following, _ in node.next_functions)
    return found
