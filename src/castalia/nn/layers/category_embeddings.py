"""Rows of a mixed table as one dense vector.

A row arrives as numbers followed by category codes, all in one float tensor; each code is looked up
in its own embedding. Code 0 stands for unseen and missing values, and its embedding is learnt as
the others are.

Shapes: B batch, N numeric columns, C categorical columns.
Reference: 2016, Guo, Berkhahn, Entity embeddings of categorical variables, arXiv 1604.06737.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["TableEmbedding", "embedding_width"]


def embedding_width(size: int) -> int:
    """Width of the embedding of a column with ``size`` codes: grows as size**0.56, at most 50.

    >>> [embedding_width(size) for size in (3, 10, 1000)]
    [3, 6, 50]
    """
    return min(50, max(2, round(1.6 * size**0.56)))


class TableEmbedding(nn.Module):
    """Numbers passed through, category codes embedded, all side by side.

    Parameters
    ----------
    numeric
        Number of leading numeric columns.
    categories
        Number of codes of each trailing categorical column, slot 0 included.

    Attributes
    ----------
    width
        Width of the output.

    Examples
    --------
    >>> block = TableEmbedding(2, [4])
    >>> block(torch.tensor([[0.5, -1.0, 3.0]])).shape
    torch.Size([1, 5])
    """

    def __init__(self, numeric: int, categories: Sequence[int]) -> None:
        super().__init__()
        self.numeric = numeric
        self.tables = nn.ModuleList(
            nn.Embedding(size, embedding_width(size)) for size in categories
        )
        self.width = numeric + sum(embedding_width(size) for size in categories)

    def forward(self, x: Tensor) -> Tensor:  # (B, N + C)
        """Return numbers and embeddings side by side."""
        codes = x[:, self.numeric :].long()  # (B, C)
        embedded = [table(codes[:, i]) for i, table in enumerate(self.tables)]
        return torch.cat([x[:, : self.numeric], *embedded], dim=1)  # (B, width)
