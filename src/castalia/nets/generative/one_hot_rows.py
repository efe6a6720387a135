"""Rows with categories as numbers only: each code becomes as many columns of 0 and 1.

Shapes: B batch, D numbers of an encoded row, E columns once categories are spread out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["OneHotRows"]


class OneHotRows:
    """The way from encoded rows (B, D) to columns (B, E) and back.

    Parameters
    ----------
    numbers, flags
        How many numbers, and how many columns of 0 and 1, a row has.
    categories
        Codes of each trailing categorical column.

    Examples
    --------
    >>> rows = OneHotRows(1, 0, (3,))
    >>> wide = rows.expand(torch.tensor([[0.5, 2.0]]))
    >>> wide, rows.codes(wide)
    (tensor([[0.5000, 0.0000, 0.0000, 1.0000]]), tensor([[0.5000, 2.0000]]))
    """

    def __init__(self, numbers: int, flags: int = 0, categories: Sequence[int] = ()) -> None:
        self.numbers, self.flags, self.categories = numbers, flags, tuple(categories)
        self.width = numbers + flags + sum(categories)

    def _split(self, wide: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        number, flag, *hot = wide.split([self.numbers, self.flags, *self.categories], dim=1)
        return number, flag, hot

    def expand(self, x: Tensor) -> Tensor:
        """Return encoded rows with codes spread out, (B, E)."""
        x = x.flatten(1)
        plain, codes = x[:, : self.numbers + self.flags], x[:, self.numbers + self.flags :].long()
        hot = [F.one_hot(codes[:, i], n).to(x.dtype) for i, n in enumerate(self.categories)]
        return torch.cat([plain, *hot], dim=1)

    def squash(self, outputs: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return outputs as rows: numbers as they are, flags and categories as probabilities.

        With uniform ``noise``, (B, E), flags and categories are drawn, 0 or 1, and gradients go
        through the probabilities (straight-through Gumbel softmax).
        """
        number, flag, hot = self._split(outputs)
        if noise is None:
            return torch.cat([number, flag.sigmoid(), *(h.softmax(dim=1) for h in hot)], dim=1)
        noise = noise.clamp(1e-6, 1 - 1e-6)
        _, own, each = self._split(noise)
        flag = _hard((flag + own.log() - (-own).log1p()).sigmoid(), lambda p: (p > 0.5).to(p))
        drawn = [(h - (-u.log()).log()).softmax(dim=1) for h, u in zip(hot, each, strict=True)]
        return torch.cat([number, flag, *(_hard(p, _largest) for p in drawn)], dim=1)

    def codes(self, wide: Tensor) -> Tensor:
        """Return columns (B, E) as encoded rows (B, D): flags to 0 or 1, the largest code."""
        number, flag, hot = self._split(wide)
        codes = [h.argmax(dim=1, keepdim=True).to(wide.dtype) for h in hot]
        return torch.cat([number, (flag > 0.5).to(wide.dtype), *codes], dim=1)


def _largest(p: Tensor) -> Tensor:
    return F.one_hot(p.argmax(dim=1), p.shape[1]).to(p.dtype)


def _hard(p: Tensor, rounding: Callable[[Tensor], Tensor]) -> Tensor:
    """Return rounded probabilities whose gradients are those of the probabilities."""
    return rounding(p) + p - p.detach()
