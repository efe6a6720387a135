"""Random numbers for rows that are drawn block by block.

Row i gets the same numbers however many rows are wanted, so ``sample(5)`` begins with the row of
``sample(1)``, and a million rows can be drawn without being held together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from castalia.utils.seeds import generator

if TYPE_CHECKING:
    from torch import Generator, Tensor

__all__ = ["RowNoise"]

BLOCK = 256  # rows


class RowNoise:
    """Numbers for some leading rows of a block.

    Parameters
    ----------
    rows
        How many rows are wanted, at most 256.
    chance
        Where the numbers come from.

    Examples
    --------
    >>> one, five = next(RowNoise.blocks(1, seed=0)), next(RowNoise.blocks(5, seed=0))
    >>> bool((one.normal(3) == five.normal(3)[:1]).all())
    True
    """

    def __init__(self, rows: int, chance: Generator) -> None:
        self.rows, self.chance = rows, chance

    @classmethod
    def blocks(cls, n: int, seed: int) -> Iterator[RowNoise]:
        """Yield the noise of n rows, block after block."""
        for block, start in enumerate(range(0, n, BLOCK)):
            yield cls(min(BLOCK, n - start), generator(seed, block))

    def normal(self, *shape: int) -> Tensor:
        """Return standard normal numbers, (rows, *shape)."""
        import torch

        return torch.randn(BLOCK, *shape, generator=self.chance)[: self.rows]

    def uniform(self, *shape: int) -> Tensor:
        """Return numbers between 0 and 1, (rows, *shape)."""
        import torch

        return torch.rand(BLOCK, *shape, generator=self.chance)[: self.rows]
