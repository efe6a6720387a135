"""The probability of a word in full.

p(o | h) = exp(v'_o . h) / sum_w exp(v'_w . h).  Shapes: B batch, D dim, V words.
Reference: 2013, Mikolov, Chen, Corrado, Dean, Efficient estimation of word representations in
vector space, arXiv 1301.3781.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

__all__ = ["FullSoftmax"]


class FullSoftmax(nn.Module):
    """Softmax over all words, with output vectors of its own; a word costs O(V).

    Parameters
    ----------
    n_words
        V, the number of words.
    dim
        D, the size of a vector.

    Examples
    --------
    >>> FullSoftmax(4, 3).log_probabilities(torch.ones(1, 3)).exp()
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]], grad_fn=<ExpBackward0>)
    """

    def __init__(self, n_words: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_words, dim))

    def forward(self, h: Tensor, target: Tensor) -> Tensor:  # (B, D), (B,)
        """Return -log p(target | h), (B,)."""
        return cross_entropy(h @ self.weight.T, target, reduction="none")

    def log_probabilities(self, h: Tensor) -> Tensor:
        """Return log p of every word, (B, V)."""
        return (h @ self.weight.T).log_softmax(dim=1)
