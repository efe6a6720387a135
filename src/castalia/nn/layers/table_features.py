"""Rows of a mixed table as one wide vector, by a fixed map without weights.

A number z = (x - median) / spread enters as z / sqrt(1 + (z/3)^2), which no outlier takes beyond 3,
and, piece by piece, as clamp((x - a_t) / (a_{t+1} - a_t), 0, 1) for the quantiles a_0 … a_T of its
column. A category code becomes a column of 0 and 1 for each value; code 0, missing or unseen, none.

Shapes: B batch, N numbers, C categorical columns, T pieces.
References: 2024, Holzmüller, Grinsztajn, Steinwart, Better by default: strong pre-tuned MLPs and
boosted trees on tabular data, arXiv 2407.04491. 2022, Gorishniy, Rubachev, Babenko, On embeddings
for numerical features in tabular deep learning, arXiv 2203.05556.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["TableFeatures", "smooth_clip"]

MOST = 3.0  # no clipped number lies beyond


def smooth_clip(z: Tensor) -> Tensor:
    """Return z / sqrt(1 + (z/3)^2): z itself near 0, at most 3 far away.

    >>> smooth_clip(torch.tensor([0.0, 0.1, 1e6]))
    tensor([0.0000, 0.0999, 3.0000])
    """
    return z * torch.rsqrt(1 + (z / MOST).square())


class TableFeatures(nn.Module):
    """Clipped numbers, their pieces, and a column of 0 and 1 for each category, side by side.

    Parameters
    ----------
    numeric
        Number of leading numeric columns.
    categories
        Number of codes of each trailing categorical column, slot 0 included.
    quantiles
        Of some leading numeric columns, each from the smallest value to the largest, evenly spaced
        in probability; the other numbers, such as marks of missing values, pass unchanged.
    pieces
        Whether numbers also enter piece by piece.

    Attributes
    ----------
    width
        Width of the output.

    Examples
    --------
    >>> block = TableFeatures(1, [3], [[0.0, 1.0, 2.0, 3.0, 4.0]])
    >>> block(torch.tensor([[2.0, 1.0]]))
    tensor([[0., 1., 1., 0., 0., 1., 0.]])
    """

    def __init__(
        self,
        numeric: int,
        categories: Sequence[int] = (),
        quantiles: Sequence[Sequence[float]] = (),
        pieces: bool = True,
        robust: bool = True,
        share: float = 1.0,
    ) -> None:
        super().__init__()
        self.share = share
        self.numeric, self.categories, self.scaled = numeric, tuple(categories), len(quantiles)
        ends = len(quantiles[0]) if quantiles else 1
        grid = torch.tensor(quantiles, dtype=torch.float64).reshape(self.scaled, ends)  # (N, T + 1)
        centre, spread = _at(grid, 0.5), _spread(grid)
        if not robust:
            centre, spread = torch.zeros_like(centre), torch.ones_like(spread)
        column, low, size = _pieces(grid if pieces else grid[:, :1])
        self.register_buffer("column", column, persistent=False)
        for name, value in (
            ("centre", centre),
            ("inverse", 1 / spread),
            ("low", low),
            ("slope", 1 / size),
        ):
            self.register_buffer(name, value.to(torch.get_default_dtype()), persistent=False)
        self.width = numeric + len(column) + sum(size - 1 for size in self.categories)

    def forward(self, x: Tensor) -> Tensor:  # (B, N + C)
        """Return the features, (B, width)."""
        scaled, rest = x[:, : self.scaled], x[:, self.scaled : self.numeric]
        parts = [smooth_clip((scaled - self.centre) * self.inverse), rest]
        if len(self.column):
            pieces = scaled.index_select(1, self.column).sub_(self.low)
            parts.append(pieces.mul_(self.slope).clamp_(0, 1).mul_(self.share))
        codes = x[:, self.numeric :].long()
        for i, size in enumerate(self.categories):
            parts.append(F.one_hot(codes[:, i], size)[:, 1:].to(x.dtype))
        return torch.cat(parts, dim=1)


def _at(grid: Tensor, share: float) -> Tensor:
    """Return a quantile of each column, (N,)."""
    return grid[:, round(share * (grid.shape[1] - 1))]


def _spread(grid: Tensor) -> Tensor:
    """Return the distance between the quartiles; where it is 0, half the range, or 1."""
    quartiles = (_at(grid, 0.75) - _at(grid, 0.25)) / 1.35  # 1 for a normal distribution
    whole = (_at(grid, 1.0) - _at(grid, 0.0)) / 2
    found = torch.where(quartiles > 0, quartiles, whole)
    return torch.where(found > 0, found, torch.ones_like(found))


def _pieces(grid: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return column, beginning and length of every piece that has a length."""
    low, size = grid[:, :-1], grid.diff(dim=1)
    column = torch.arange(len(grid)).unsqueeze(1).expand_as(low)
    real = size > 0
    return column[real], low[real], size[real]
