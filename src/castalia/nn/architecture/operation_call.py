"""One operation of torch as the rules see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from castalia.nn.architecture.input_reach import Reach, merge

__all__ = ["Call", "Reaches", "Rule", "later", "merged"]

Reaches = tuple[Reach, ...]


@dataclass(frozen=True)
class Call:
    """One operation: its arguments by name, its outputs, and the reaches of its tensors.

    Attributes
    ----------
    given
        Arguments by their names, defaults included.
    out
        The outputs, in order.
    reaches
        Reaches by the identity of a tensor; a tensor that is not in it depends on no input.
    """

    given: Mapping[str, Any]
    out: Sequence[Tensor]
    reaches: Mapping[int, Reaches]

    def of(self, name: str) -> tuple[Tensor, Reaches]:
        """Return an argument and its reaches."""
        tensor = self.given[name]
        return tensor, self.reaches.get(id(tensor), ())

    def dims(self, count: int, name: str = "dim") -> list[int]:
        """Return the axes that an argument names; all where it names none."""
        value = self.given.get(name)
        dims = [value] if isinstance(value, int) else list(value or range(count))
        return [dim % count for dim in dims]


Rule = Callable[[Call], Reaches | list[Reaches]]


def later(reach: Reach, axes: int) -> Reach:
    """Return the reach so many axes later, if it lies along one."""
    return reach if reach.axis is None or not axes else reach.moved(reach.axis + axes)


def merged(parts: Sequence[Reaches], out: Tensor) -> Reaches:
    """Merge what several tensors bring; where it lies along different axes, over all of them."""

    def joined(reaches: tuple[Reach, ...]) -> Reach:
        axes = {reach.axis for reach in reaches} - {None}
        if len(axes) > 1:
            reaches = tuple(
                r if r.axis is None else r.collapsed(out.shape[r.axis]) for r in reaches
            )
        return merge(reaches)

    return tuple(joined(found) for found in zip(*[p for p in parts if p], strict=True))
