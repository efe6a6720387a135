"""A tensor, or a tuple, list or dict of tensors, as one flat vector, and back."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from castalia.errors import InvalidData, ShapeMismatch
from castalia.utils.text import listing

__all__ = ["Packing"]


class Packing:
    """How the tensors of a structure lie in one vector.

    Parameters
    ----------
    example
        A tensor, or a tuple, list or dict of tensors of one floating or complex type on one device.
        Complex numbers lie in the vector as pairs of real ones.
    owner, name
        How messages call the function and the argument.

    Examples
    --------
    >>> packing = Packing({"x": torch.ones(2), "v": torch.zeros(1, 2)}, "demo", "y0")
    >>> packing.pack({"x": torch.ones(2), "v": torch.zeros(1, 2)})
    tensor([1., 1., 0., 0.])
    >>> packing.unpack(torch.arange(4.0))["v"]
    tensor([[2., 3.]])
    """

    def __init__(self, example: Any, owner: str, name: str) -> None:
        self.owner, self.name = owner, name
        self.kind: type = next((k for k in (tuple, list, dict) if isinstance(example, k)), Tensor)
        self.keys = list(example) if self.kind is dict else None
        leaves = self._leaves(example)
        self._check(leaves)
        self.dtype, self.device = leaves[0].dtype, leaves[0].device
        self.shapes = [leaf.shape for leaf in leaves]
        self.sizes = [leaf.numel() * (1 + self.dtype.is_complex) for leaf in leaves]
        self.size = sum(self.sizes)  # N

    def pack(self, tree: Any) -> Tensor:
        """Return the structure as one vector (N,)."""
        if self.kind is Tensor:
            return self._flat(tree)
        return torch.cat([self._flat(leaf) for leaf in self._leaves(tree)])

    def unpack(self, flat: Tensor) -> Any:
        """Return vectors (..., N) as the structure, the leading dimensions kept in every tensor."""
        if self.kind is Tensor:
            return self._shaped(flat, self.shapes[0])
        parts = flat.split(self.sizes, dim=-1)
        leaves = [self._shaped(p, s) for p, s in zip(parts, self.shapes, strict=True)]
        if self.keys is not None:
            return dict(zip(self.keys, leaves, strict=True))
        return self.kind(leaves)

    def check_like(self, tree: Any, what: str) -> None:
        """Refuse a structure that is not built like the example."""
        try:
            leaves = self._leaves(tree)
            found = [tuple(leaf.shape) for leaf in leaves]
        except (AttributeError, TypeError):
            leaves, found = [], []
        wanted = [tuple(shape) for shape in self.shapes]
        if found != wanted:
            got = found[0] if self.kind is Tensor and found else found or type(tree).__name__
            raise ShapeMismatch(
                f"{self.owner}: {what} must have the shape of `{self.name}`, "
                f"{wanted[0] if self.kind is Tensor else wanted}; got {got}."
            )
        for leaf in leaves:
            if leaf.dtype != self.dtype or leaf.device != self.device:
                raise InvalidData(
                    f"{self.owner}: {what} must be {self.dtype} on {self.device} like "
                    f"`{self.name}`; got {leaf.dtype} on {leaf.device}."
                )

    def rows(self) -> int:
        """Return the size of the batch, the first dimension that all tensors share."""
        found = {shape[0] if shape else None for shape in self.shapes}
        if len(found) > 1 or None in found:
            shapes = [tuple(shape) for shape in self.shapes]
            raise ShapeMismatch(
                f"{self.owner}: `{self.name}` must have the batch as first dimension of every "
                f'tensor when `norm` is "max"; got shapes {listing(shapes, "and")}.'
            )
        return found.pop() or 0

    def _flat(self, leaf: Tensor) -> Tensor:
        real = torch.view_as_real(leaf.resolve_conj()) if self.dtype.is_complex else leaf
        return real.reshape(-1)

    def _shaped(self, flat: Tensor, shape: torch.Size) -> Tensor:
        lead = flat.shape[:-1]
        if self.dtype.is_complex:
            return torch.view_as_complex(flat.reshape(*lead, *shape, 2))
        return flat.reshape(lead + shape)

    def _leaves(self, tree: Any) -> list[Tensor]:
        if self.kind is Tensor:
            return [tree]
        if self.keys is not None:
            if set(tree) != set(self.keys):
                raise InvalidData(
                    f"{self.owner}: keys must be those of `{self.name}`, "
                    f"{listing(self.keys, 'and')}; got {listing(tree, 'and')}."
                )
            return [tree[key] for key in self.keys]
        return list(tree)

    def _check(self, leaves: list[Any]) -> None:
        """Refuse what is no tensor of floats, and mixtures of types and devices."""
        wrong = next((x for x in leaves if not isinstance(x, Tensor)), None)
        if wrong is not None or not leaves:
            got = "nothing" if not leaves else type(wrong).__name__
            raise InvalidData(
                f"{self.owner}: `{self.name}` must be a tensor, or a tuple, list or dict of "
                f"tensors; got {got}."
            )
        kinds = {(leaf.dtype, leaf.device) for leaf in leaves}
        if len(kinds) > 1:
            names = sorted(f"{dtype} on {device}" for dtype, device in kinds)
            raise InvalidData(
                f"{self.owner}: the tensors of `{self.name}` must share one type and device; "
                f"got {listing(names, 'and')}."
            )
        if not (leaves[0].is_floating_point() or leaves[0].is_complex()):
            raise InvalidData(
                f"{self.owner}: `{self.name}` must hold floating-point numbers; got "
                f"{leaves[0].dtype}. Convert it with `.float()` or `.double()`."
            )
        if not math.prod(leaves[0].shape):
            raise InvalidData(f"{self.owner}: `{self.name}` must not be empty; got no numbers.")
