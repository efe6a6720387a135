"""Where a token stands: vectors to add, a bias for the scores, or a rotation of queries and keys.

sinusoidal   PE(k, 2i) = sin(k / n^(2i/d)),  PE(k, 2i+1) = cos(k / n^(2i/d)),  0 <= i < d/2
learned      one vector a position
relative     a number for each head and each distance j - i, far distances sharing buckets
rotary       pairs of coordinates turned by the angle k / n^(2i/d), so that q.k depends on j - i

References: 2017, Vaswani et al., Attention is all you need, arXiv 1706.03762; 2020, Raffel et al.,
Exploring the limits of transfer learning, arXiv 1910.10683; 2021, Su et al., RoFormer, arXiv
2104.09864.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidData, InvalidParameter
from castalia.nn.attention.rotary_stretch import stretch

__all__ = [
    "LearnedPositions",
    "RelativeBias",
    "Rotary",
    "SinusoidalPositions",
    "token_positions",
]


def token_positions(ids: Tensor, keep: Tensor | None = None) -> Tensor:
    """Return the position of each token, (T,) or, with padding, which has none, (B, T).

    >>> token_positions(torch.tensor([[9, 9, 5, 6]]), torch.tensor([[0, 0, 1, 1]]))
    tensor([[0, 0, 0, 1]])
    """
    if keep is None:
        return torch.arange(ids.shape[1], device=ids.device)
    return (keep.long().cumsum(dim=1) - 1).clamp(min=0)


def _frequencies(dim: int, base: float, owner: str) -> Tensor:
    """Return n^(-2i/d), (d/2,)."""
    if dim % 2:
        raise InvalidParameter(f"{owner}: `dim` must be even; got {dim}.")
    return torch.exp(torch.arange(0, dim, 2, dtype=torch.float64) * (-math.log(base) / dim))


class SinusoidalPositions(nn.Module):
    """Fixed vectors of sines and cosines; PE(k + m) is a rotation of PE(k).

    Parameters
    ----------
    dim
        Width of the vectors, even.
    base
        The number n; the longest wave has length 2 pi n.

    Examples
    --------
    >>> SinusoidalPositions(4, base=100.0)(torch.arange(2))
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0998, 0.9950]])
    """

    frequencies: Tensor

    def __init__(self, dim: int, *, base: float = 10000.0) -> None:
        super().__init__()
        found = _frequencies(dim, base, "SinusoidalPositions")
        self.register_buffer("frequencies", found.to(torch.get_default_dtype()), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:  # (..., T)
        """Return the vectors of the positions, (..., T, dim)."""
        angles = positions[..., None].to(self.frequencies.dtype) * self.frequencies
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class LearnedPositions(nn.Embedding):
    """One trained vector for each position.

    Parameters
    ----------
    length
        Number of positions.
    dim
        Width of the vectors.

    Examples
    --------
    >>> LearnedPositions(16, 4)(torch.arange(3)).shape
    torch.Size([3, 4])
    """

    def __init__(self, length: int, dim: int) -> None:
        super().__init__(length, dim)

    def forward(self, positions: Tensor) -> Tensor:  # (..., T)
        """Return the vectors of the positions, (..., T, dim)."""
        if positions.shape[-1] > self.num_embeddings:
            raise InvalidData(
                f"LearnedPositions: a sequence must have at most {self.num_embeddings} tokens; got "
                f"{positions.shape[-1]}. Cut it, or build the network with a longer context."
            )
        return super().forward(positions)


class RelativeBias(nn.Module):
    """A learnt number added to the score, for each head and each distance from query to key.

    Near distances have a bucket each; farther ones share buckets that grow with the logarithm, up
    to ``furthest``; beyond it all are one.

    Parameters
    ----------
    heads
        Attention heads.
    buckets
        Numbers a head learns.
    furthest
        Distance from which on the bucket stays the same.
    both_ways
        Whether keys after the query have buckets of their own; false in causal attention.

    Examples
    --------
    >>> RelativeBias(heads=2)(torch.arange(3), torch.arange(5)).shape
    torch.Size([1, 2, 3, 5])
    """

    def __init__(
        self, heads: int, *, buckets: int = 32, furthest: int = 128, both_ways: bool = True
    ) -> None:
        super().__init__()
        self.table = nn.Embedding(buckets, heads)
        self.buckets, self.furthest, self.both_ways = buckets, furthest, both_ways

    def bucket(self, offset: Tensor) -> Tensor:
        """Return the bucket of each offset j - i."""
        count = self.buckets // 2 if self.both_ways else self.buckets
        ahead = (offset > 0) * count if self.both_ways else torch.zeros_like(offset)
        distance = offset.abs() if self.both_ways else (-offset).clamp(min=0)
        exact = count // 2
        ratio = distance.clamp(min=1).float() / exact
        shared = torch.log(ratio) / math.log(self.furthest / exact) * (count - exact)
        far = (exact + shared.long()).clamp(max=count - 1)
        return ahead + torch.where(distance < exact, distance, far)

    def forward(self, i: Tensor, j: Tensor) -> Tensor:  # (Q,), (K,)
        """Return the bias for queries at positions i and keys at positions j, (1, H, Q, K)."""
        table: Tensor = self.table(self.bucket(j[None, :] - i[:, None]))  # (Q, K, H)
        return table.permute(2, 0, 1)[None]


class Rotary(nn.Module):
    """Queries and keys turned by their position: their products depend on the distance only.

    Parameters
    ----------
    dim
        Width of a head, even; coordinate c is paired with c + dim / 2.
    base
        The number n of the angles k / n^(2i/d).
    scaling
        How angles are stretched for longer texts, ``rope_type`` ``"linear"`` or ``"llama3"`` and
        its numbers; None: not at all.

    Examples
    --------
    >>> x = torch.ones(1, 2, 3, 4)  # (B, H, T, D)
    >>> Rotary(4)(x, torch.arange(3))[0, 0, 0]
    tensor([1., 1., 1., 1.])
    """

    frequencies: Tensor

    def __init__(
        self, dim: int, *, base: float = 10000.0, scaling: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.dim, self.base, self.scaling = dim, base, scaling
        self.register_buffer("frequencies", self._made(), persistent=False)

    def _made(self) -> Tensor:
        with torch.device("cpu"):  # a network without memory of its own has them all the same
            found = stretch(_frequencies(self.dim, self.base, "Rotary"), self.scaling)
        return found.to(torch.get_default_dtype())

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:  # (B, H, T, D), (T,) or (B, T)
        """Return x turned by its positions, (B, H, T, D)."""
        # Half precision, to which a network may be moved, would lose far positions.
        if self.frequencies.dtype.itemsize < 4 or self.frequencies.device != x.device:
            self.frequencies = self._made().to(x.device)
        angles = positions[..., None].to(self.frequencies.dtype) * self.frequencies  # (.., T, D/2)
        if positions.ndim == 2:
            angles = angles[:, None]  # (B, 1, T, D/2)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
