"""Window language model: the last n tokens predict the next one, by causal convolutions.

h_t = tanh(H [e_{t-n+1}, …, e_t] + d),  logits_t = U h_t + b; with more layers, h takes the place of
the embeddings e. The same weights act at every place: H is a convolution over words.

Shapes: B batch, T tokens, V vocabulary, D width of a vector.
Reference: 2003, Bengio, Ducharme, Vincent, Jauvin, A neural probabilistic language model.
Departs from it: no direct connections from the embeddings to the output.
"""

from __future__ import annotations

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["WindowNetwork"]


class WindowNetwork(nn.Module):
    """Embeddings, one or more causal convolutions, output layer.

    Parameters
    ----------
    vocabulary
        Number of tokens known.
    window
        Tokens n that a layer reads, the last included.
    dim
        Width of the embeddings.
    hidden
        Units of each layer.
    depth
        Layers; the network sees depth (n - 1) + 1 tokens.
    dropout
        Probability for embeddings and hidden units.

    Examples
    --------
    >>> import torch
    >>> net = WindowNetwork(50, window=3, dim=8, hidden=16, depth=2)
    >>> net(torch.tensor([[3, 1, 4, 1, 5]])).shape, net.context
    (torch.Size([1, 5, 50]), 5)
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        window: int = 4,
        dim: int = 64,
        hidden: int = 128,
        depth: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.vocabulary, self.window = vocabulary, window
        self.context = depth * (window - 1) + 1  # tokens that are seen
        self.tokens = nn.Embedding(vocabulary, dim)
        self.dropout = nn.Dropout(dropout)
        widths = pairwise([dim] + [hidden] * depth)
        self.layers = nn.ModuleList(nn.Conv1d(a, b, window) for a, b in widths)
        self.output = nn.Linear(hidden, vocabulary)
        nn.init.uniform_(self.tokens.weight, -0.1, 0.1)

    def forward(self, ids: Tensor) -> Tensor:  # (B, T)
        """Return the logits of the token after each one, (B, T, V)."""
        return self.head(self.features(ids))

    def features(self, ids: Tensor, *, keep: Tensor | None = None, cache: None = None) -> Tensor:
        """Return the vectors below the output layer, (B, T, D); before the first token are zeros.

        Parameters
        ----------
        ids
            Tokens, (B, T).
        keep
            Which tokens are real, (B, T); None: all. Padding counts as zeros.
        cache
            None: a short window is read again.
        """
        h = self.tokens(ids)
        real = None if keep is None else keep[:, None].to(h.dtype)  # (B, 1, T)
        h = self.dropout(h).transpose(1, 2)  # (B, D, T)
        for layer in self.layers:
            h = h if real is None else h * real
            h = self.dropout(layer(F.pad(h, (self.window - 1, 0))).tanh())
        return h.transpose(1, 2)

    def head(self, h: Tensor) -> Tensor:  # (B, T, D)
        """Return the logits of vectors, (B, T, V)."""
        return self.output(h)
