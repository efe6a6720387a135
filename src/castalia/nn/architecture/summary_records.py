"""The records of a summary, and how they are printed."""

from __future__ import annotations

from dataclasses import dataclass

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["Layer", "Summary"]

HEADS = ("name", "layer", "output", "weights", "biases", "FLOPs", "field")


@dataclass(frozen=True)
class Layer:
    """One row of the table.

    Attributes
    ----------
    name
        Of the module in its network; empty for the input and for the network itself.
    kind
        What it is, with its sizes.
    output
        Its output without the batch, positions first and channels last.
    weights, biases
        Numbers learnt; a module that is called again counts once.
    flops
        Operations for one row: two for each multiply-add of products and convolutions. Biases,
        activations, poolings and normalisations are not counted.
    field
        Input positions that one output position depends on along each axis of the input; None
        where it is not known or the input has no positions.
    """

    name: str
    kind: str
    output: tuple[int, ...]
    weights: int = 0
    biases: int = 0
    flops: int = 0
    field: tuple[int, ...] | None = None

    def cells(self) -> tuple[str, ...]:
        """Return what the table shows."""
        field = "x".join(map(str, self.field)) if self.field else "-"
        size = "x".join(map(str, self.output)) or "-"
        counts = (f"{count:,}" for count in (self.weights, self.biases, self.flops))
        return (self.name, self.kind, size, *counts, field)


@dataclass(frozen=True)
class Summary:
    """The layers of a network for inputs of one size; ``str`` prints the table.

    Attributes
    ----------
    layers
        In the order in which they ran; the first is the input.
    output, field
        Of the network, as a ``Layer`` has them.
    """

    layers: tuple[Layer, ...]
    output: tuple[int, ...]
    field: tuple[int, ...] | None

    @property
    def weights(self) -> int:
        """Weights of all layers."""
        return sum(layer.weights for layer in self.layers)

    @property
    def biases(self) -> int:
        """Biases of all layers."""
        return sum(layer.biases for layer in self.layers)

    @property
    def parameters(self) -> int:
        """Weights and biases of all layers."""
        return self.weights + self.biases

    @property
    def flops(self) -> int:
        """FLOPs of all layers for one row."""
        return sum(layer.flops for layer in self.layers)

    def __getitem__(self, name: str) -> Layer:
        """Return the first row of a module."""
        names = {layer.name: layer for layer in reversed(self.layers) if layer.name}
        if name not in names:
            raise InvalidParameter(
                f"Summary: a layer must be {listing(reversed(names))}; got {name!r}."
                f"{did_you_mean(name, names)}"
            )
        return names[name]

    def __str__(self) -> str:
        """Return the table with its totals."""
        counts = self.weights, self.biases, self.flops
        total = Layer("", "total", self.output, *counts, self.field)
        lines = [HEADS, *(layer.cells() for layer in (*self.layers, total))]
        widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
        rule = "  ".join("-" * width for width in widths)
        shown = [_aligned(line, widths) for line in lines]
        return "\n".join([shown[0], rule, *shown[1:-1], rule, shown[-1]])


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    """Return a line; words to the left, numbers to the right."""
    padded = (
        cell.ljust(width) if i < 2 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(padded).rstrip()
