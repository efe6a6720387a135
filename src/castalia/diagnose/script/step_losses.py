"""The losses of a training step, in whose units validation is reported.

What is trained may be a sum over the batch, several losses with weights, a loss over the number of
accumulated batches or times the factor of a gradient scaler. Validation often computes a plain
mean. The last step before a validation shows how the two compare.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

from torch import Tensor

from castalia.diagnose.script.loss_calls import LossCall

__all__ = ["Step"]

MOST = 63  # losses of one step that are remembered, besides the last
DEPTH = 8  # scalings between a loss and what goes backward


class Step:
    """One training step, from its first loss to ``backward``."""

    def __init__(self) -> None:
        # Name, weak reference to the loss, its value, and what its mean is multiplied with.
        self.losses: list[tuple[str, weakref.ref[Tensor], Tensor, int]] = []
        self._root: Tensor | None = None
        self._factors: list[tuple[float | Tensor, int]] = []

    def add(self, call: LossCall, loss: weakref.ref[Tensor]) -> None:
        """Note a loss; the reference is to the tensor that has the graph."""
        items = call.items if call.reduction == "sum" else 1
        self.losses = [*self.losses[-MOST:], (call.name, loss, call.loss.detach(), items)]

    def end(self, root: Tensor) -> None:
        """Note what goes backward, without its graph."""
        lone = [one for one in self.losses if one[1]() is root]
        if lone:
            self.losses = lone
        else:
            self._root, self._factors = root.detach(), _factors(root)

    def in_its_units(self, means: dict[str, float]) -> float | None:
        """Return mean losses as the loss that was trained, scaling of the whole left out.

        Terms that were trained but are not among ``means`` are supposed to be in proportion.
        """
        parts = [(name, value, items) for name, _, value, items in self.losses if name in means]
        if not parts:
            return None
        total = sum(means[name] * items for name, _, items in parts)
        if self._root is None:
            return total
        scale = math.prod(float(factor) ** power for factor, power in self._factors)
        seen = sum(float(value.float().mean()) for _, value, _ in parts) * scale
        ratio = float(self._root.sum()) / seen if seen else math.nan
        return total * ratio if math.isfinite(ratio) else total


def _factors(root: Tensor) -> list[tuple[float | Tensor, int]]:
    """Return the numbers, and their powers, that a loss was multiplied with as a whole."""
    found: list[tuple[float | Tensor, int]] = []
    node: Any = root.grad_fn
    for _ in range(DEPTH):
        if node is None or not node.name().startswith(("Mul", "Div", "ToCopy")):
            break
        below = [source for source, _ in node.next_functions if source is not None]
        if len(below) != 1:
            break
        saved = [getattr(node, f"_saved_{side}", None) for side in ("other", "self")]
        number = next((x for x in saved if x is not None), 1.0)
        if isinstance(number, Tensor) and number.numel() != 1:
            break
        found.append((number, -1 if node.name().startswith("Div") else 1))
        node = below[0]
    return found
