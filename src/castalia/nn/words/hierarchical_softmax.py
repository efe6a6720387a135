"""The probability of a word as a way down a tree.

p(o | h) = prod_l s(t_l n_l . h) over the inner nodes n_l on the way to o, with turns t_l = ±1 and
s the logistic function.  Shapes: B batch, D dim, V words, L longest way.
Reference: 2005, Morin, Bengio, Hierarchical probabilistic neural network language model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from castalia.nn.words.huffman_tree import huffman_paths

__all__ = ["HierarchicalSoftmax"]


class HierarchicalSoftmax(nn.Module):
    """Softmax along Huffman's tree: a word costs O(log V), and all still sum to one.

    Parameters
    ----------
    counts
        How often each of V words occurs; frequent ones stand near the root.
    dim
        D, the size of a vector.

    Examples
    --------
    >>> HierarchicalSoftmax([4, 2, 2], 3).log_probabilities(torch.ones(1, 3)).exp()
    tensor([[0.5000, 0.2500, 0.2500]], grad_fn=<ExpBackward0>)
    """

    nodes: Tensor
    turns: Tensor

    def __init__(self, counts: Sequence[float] | np.ndarray, dim: int) -> None:
        super().__init__()
        nodes, turns = huffman_paths(counts)
        self.register_buffer("nodes", nodes)
        self.register_buffer("turns", turns)
        self.weight = nn.Parameter(torch.zeros(len(counts) - 1, dim))

    def forward(self, h: Tensor, target: Tensor) -> Tensor:  # (B, D), (B,)
        """Return -log p(target | h), (B,)."""
        scores = torch.einsum("bld,bd->bl", self.weight[self.nodes[target]], h)  # (B, L)
        return -self._log_way(scores, self.turns[target])

    def log_probabilities(self, h: Tensor) -> Tensor:
        """Return log p of every word, (B, V)."""
        scores = h @ self.weight.T  # (B, V - 1)
        return self._log_way(scores[:, self.nodes], self.turns)

    @staticmethod
    def _log_way(scores: Tensor, turns: Tensor) -> Tensor:
        return (logsigmoid(turns * scores) * turns.abs()).sum(dim=-1)
