"""Rows of a mixed table as one wide vector, by a fixed map without weights.

A standardised number z enters as z / sqrt(1 + (z/3)^2), which no outlier takes beyond 3, and, piece
by piece, as clamp((z - a_t) / (a_{t+1} - a_t), 0, 1) for the quantiles a_0 … a_T of its column. A
category code becomes a column of 0 and 1 for each value; code 0, missing or unseen, none.

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
    """Clipped numbers, a column of 0 and 1 for each category, and the numbers piece by piece.

    Parameters
    ----------
    numeric
        Number of leading numeric columns.
    categories
        Number of codes of each trailing categorical column, slot 0 included.
    quantiles
        Of the first numeric columns, each ascending: where they are cut into pieces. Pieces without
        a length are left out.

    Attributes
    ----------
    width
        Width of the output.
    pieces
        How many of the features, the last ones, are pieces.

    Examples
    --------
    >>> block = TableFeatures(1, [3], [[0.0, 1.0, 2.0, 2.0]])
    >>> block(torch.tensor([[0.5, 1.0]]))
    tensor([[0.4932, 1.0000, 0.0000, 0.5000, 0.0000]])
    """

    column: Tensor  # of each piece; and where it begins, and 1 over its length
    low: Tensor
    slope: Tensor

    def __init__(
        self,
        numeric: int,
        categories: Sequence[int] = (),
        quantiles: Sequence[Sequence[float]] = (),
    ) -> None:
        super().__init__()
        self.numeric, self.categories = numeric, tuple(categories)
        ends = len(quantiles[0]) if quantiles else 1
        # On the CPU whatever the device: how many pieces there are depends on the values.
        grid = torch.tensor(quantiles, dtype=torch.float64, device="cpu").reshape(-1, ends)
        low, size = grid[:, :-1], grid.diff(dim=1)  # of grid (N, T + 1)
        real, kind = size > 0, (torch.get_default_device(), torch.get_default_dtype())
        column = torch.arange(len(grid), device="cpu").unsqueeze(1).expand_as(low)[real]
        self.register_buffer("column", column.to(kind[0]), persistent=False)
        self.register_buffer("low", low[real].to(*kind), persistent=False)
        self.register_buffer("slope", (1 / size[real]).to(*kind), persistent=False)
        self.pieces = len(column)
        self.width = numeric + sum(size - 1 for size in self.categories) + self.pieces

    def forward(self, x: Tensor) -> Tensor:  # (B, N + C)
        """Return the features, (B, width)."""
        parts = [smooth_clip(x[:, : self.numeric])]
        codes = x[:, self.numeric :].long()
        for i, size in enumerate(self.categories):
            parts.append(F.one_hot(codes[:, i], size)[:, 1:].to(x.dtype))
        if self.pieces:
            cut = x.index_select(1, self.column).sub_(self.low).mul_(self.slope)
            parts.append(cut.clamp_(0, 1))
        return torch.cat(parts, dim=1)
