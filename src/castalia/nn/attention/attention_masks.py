"""Which keys a query may attend to, as a rule on positions that becomes an additive mask.

A forbidden score gets the most negative number *added*; its weight exp(.) / sum exp(.) is then
exactly 0. Multiplying scores by 0 would leave it the weight exp(0).
Shapes: B batch, Q queries, K keys; i is the position of a query, j that of a key.
References: 2019, Child et al., Generating long sequences with sparse transformers, arXiv
1904.10509; 2020, Raffel et al., Exploring the limits of transfer learning, arXiv 1910.10683.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from castalia.errors import InvalidParameter

__all__ = [
    "Mask",
    "block",
    "causal",
    "full",
    "global_tokens",
    "local",
    "padding",
    "prefix",
    "strided",
]

Rule = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Mask:
    """A rule that says which keys a query sees; rules are joined with ``&`` and ``|``.

    Parameters
    ----------
    rule
        From positions i, (Q, 1), and j, (1, K), to truth values that broadcast to (B, 1, Q, K).
    name
        How it was made; ``"causal"`` alone lets attention take its fast way.

    Examples
    --------
    >>> mask = causal() & local(2)
    >>> mask.visible(3, 3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=torch.int32)
    >>> mask
    causal & local(2)
    """

    rule: Rule
    name: str = "mask"

    def __and__(self, other: Mask) -> Mask:
        """Let a query see what both rules let it see."""
        if not isinstance(other, Mask):
            return NotImplemented
        if self.name == "full":
            return other
        if other.name == "full":
            return self
        rule = _both(self.rule, other.rule)
        return Mask(rule, f"{self.name} & {other.name}")

    def __or__(self, other: Mask) -> Mask:
        """Let a query see what either rule lets it see."""
        if not isinstance(other, Mask):
            return NotImplemented
        rule = _either(self.rule, other.rule)
        return Mask(rule, f"({self.name} | {other.name})")

    def __repr__(self) -> str:
        return self.name

    @property
    def only_causal(self) -> bool:
        """Whether it is the causal rule and nothing else."""
        return self.name == "causal"

    def at(self, i: Tensor, j: Tensor) -> Tensor:
        """Return which keys at positions j, (K,), the queries at positions i, (Q,), see."""
        return self.rule(i[:, None], j[None, :])

    def visible(self, queries: int, keys: int, *, device: Any = None) -> Tensor:
        """Return truth values, (Q, K) or (B, 1, Q, K), for positions counted from zero."""
        return self.at(torch.arange(queries, device=device), torch.arange(keys, device=device))

    def additive(
        self, queries: int, keys: int, *, dtype: torch.dtype | None = None, device: Any = None
    ) -> Tensor:
        """Return what is added to the scores: 0 where a key is seen, else the lowest number."""
        return additive(self.visible(queries, keys, device=device), dtype)


def additive(visible: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Turn truth values into what is added to scores.

    The lowest finite number serves as -inf: its exponential is exactly 0, and a row in which
    nothing is visible (a padded query) stays finite.
    """
    dtype = dtype or torch.get_default_dtype()
    zeros = torch.zeros(visible.shape, dtype=dtype, device=visible.device)
    return zeros.masked_fill_(~visible, torch.finfo(dtype).min)


def _both(one: Rule, other: Rule) -> Rule:
    return lambda i, j: one(i, j) & other(i, j)


def _either(one: Rule, other: Rule) -> Rule:
    return lambda i, j: one(i, j) | other(i, j)


def _per_row(count: int | Tensor) -> int | Tensor:
    """Shape one number a row, (B,), to broadcast over (B, 1, Q, K)."""
    return count[:, None, None, None] if isinstance(count, Tensor) and count.ndim else count


def _count(value: int, name: str, owner: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidParameter(f"{owner}: `{name}` must be a whole number from 1; got {value!r}.")
    return value


def full() -> Mask:
    """Every query sees every key.

    >>> full().visible(1, 2)
    tensor([[True, True]])
    """
    return Mask(lambda i, j: torch.ones_like(i + j, dtype=torch.bool), "full")


def causal() -> Mask:
    """A query sees itself and the past: j <= i.

    >>> causal().additive(2, 2)[0, 0].item()
    0.0
    """
    return Mask(lambda i, j: j <= i, "causal")


def prefix(length: int | Tensor) -> Mask:
    """Everybody sees the first ``length`` keys; after them the rule is causal.

    Parameters
    ----------
    length
        Tokens of the prefix, one number or one a row, (B,).

    Examples
    --------
    >>> prefix(2).visible(3, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    size = _per_row(length)
    return Mask(lambda i, j: (j < size) | (j <= i), "prefix")


def padding(keep: Tensor) -> Mask:
    """Nobody sees padded keys.

    Parameters
    ----------
    keep
        Real tokens of each row: their number, (B,) whole numbers (padding stands last), or truth
        values (B, K).

    Examples
    --------
    >>> padding(torch.tensor([1, 2])).visible(1, 2)[:, 0, 0]
    tensor([[ True, False],
            [ True,  True]])
    """
    if keep.ndim == 1 and keep.dtype != torch.bool:
        lengths = keep[:, None, None, None]
        return Mask(lambda i, j: j < lengths, "padding")
    if keep.ndim != 2:
        raise InvalidParameter(
            "padding: `keep` must be lengths (B,) or truth values (B, K); got a tensor of shape "
            f"{tuple(keep.shape)} and type {keep.dtype}."
        )
    real = keep.bool()
    return Mask(lambda i, j: real[:, None, None, :].index_select(-1, j[0]), "padding")


def local(window: int) -> Mask:
    """A query sees keys nearer than ``window``: |i - j| < window.

    Parameters
    ----------
    window
        With 1 a token sees itself only; ``causal() & local(w)`` sees the last w tokens.

    Examples
    --------
    >>> local(2).visible(1, 3)
    tensor([[ True,  True, False]])
    """
    size = _count(window, "window", "local")
    return Mask(lambda i, j: (i - j).abs() < size, f"local({size})")


def strided(stride: int) -> Mask:
    """A query sees every ``stride``-th key, counted from itself.

    >>> strided(2).visible(1, 4)
    tensor([[ True, False,  True, False]])
    """
    size = _count(stride, "stride", "strided")
    return Mask(lambda i, j: (i - j) % size == 0, f"strided({size})")


def block(size: int) -> Mask:
    """A query sees the keys of its own block of ``size`` tokens.

    >>> block(2).visible(3, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [0, 0, 1]], dtype=torch.int32)
    """
    size = _count(size, "size", "block")
    return Mask(lambda i, j: i // size == j // size, f"block({size})")


def global_tokens(count: int) -> Mask:
    """The first ``count`` tokens see everything and are seen by everybody.

    >>> (local(1) | global_tokens(1)).visible(3, 3).int()
    tensor([[1, 1, 1],
            [1, 1, 0],
            [1, 0, 1]], dtype=torch.int32)
    """
    size = _count(count, "count", "global_tokens")
    return Mask(lambda i, j: (i < size) | (j < size), f"global_tokens({size})")
