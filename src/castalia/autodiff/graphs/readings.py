"""What a pass left in the boxes, read by box or by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from castalia.autodiff.graphs.box import Box
from castalia.errors import InvalidParameter

__all__ = ["Readings"]


class Boxes(Protocol):
    """Boxes in order, each found by itself or by its name."""

    order: tuple[Box, ...]

    def __getitem__(self, box: Box | str) -> Box:
        """Find a box."""


class Readings(Mapping[Box, Any]):
    """Values or adjoints of the boxes of a graph after a pass.

    Parameters
    ----------
    graph
        Whose boxes are read.
    what
        ``"value"`` or ``"adjoint"``.
    """

    def __init__(self, graph: Boxes, what: str) -> None:
        self.graph, self.what = graph, what

    def __getitem__(self, box: Box | str) -> Any:
        found = getattr(self.graph[box], self.what)
        if found is None:
            name = box.name if isinstance(box, Box) else box
            raise NoReading(_why(self.what, name))
        return found

    def __iter__(self) -> Iterator[Box]:
        return (box for box in self.graph.order if getattr(box, self.what) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, box: object) -> bool:
        return isinstance(box, Box | str) and getattr(self.graph[box], self.what) is not None

    def __repr__(self) -> str:
        inside = ", ".join(f"{box.name}: {self[box]!r}" for box in self)
        return f"{{{inside}}}"


class NoReading(InvalidParameter, KeyError):
    """A box that the last pass did not reach."""

    __str__ = Exception.__str__  # KeyError would put the sentence in quotes


def _why(what: str, name: str) -> str:
    if what == "value":
        return f"Graph.values: `{name}` must have been computed; got no pass yet. Call `fprop`."
    return (
        f"Graph.adjoints: `{name}` must be reached by the last `bprop`; got nothing there. Call "
        "`bprop` after `fprop`; integer, detached and unused boxes have no adjoint."
    )
