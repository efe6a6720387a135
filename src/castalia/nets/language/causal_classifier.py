"""Scores of texts from the last token of a causal network.

A row is one sequence or R of them, each ended by the same token; v_r is the network's vector there.

scores = W (v_1 + … + v_R) + b          one text, a pair, or a pair in both orders
scores = (w v_1, …, w v_R)              R answers, of which one is right

Shapes: B batch, R sequences of a row, T tokens, K outputs.
Reference: 2018, Radford et al., Improving language understanding by generative pre-training, 3.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from castalia.nets.language.gpt import GPT

__all__ = ["CausalClassifier"]


class CausalClassifier(nn.Module):
    """A linear layer on the last token of each sequence of a row.

    Parameters
    ----------
    decoder
        The network that reads.
    outputs
        Number of scores, K.
    padding
        The id behind a sequence; it is not seen.
    each
        Whether each sequence of a row is an answer and gets a score of its own.
    dropout
        Probability for the inputs of the last layer.

    Examples
    --------
    >>> net = CausalClassifier(GPT(50, context=8, dim=8, depth=1, heads=2), 3, padding=0)
    >>> net(torch.tensor([[1, 7, 2, 0]])).shape, net(torch.tensor([[[1, 7, 2], [2, 7, 1]]])).shape
    (torch.Size([1, 3]), torch.Size([1, 3]))
    """

    def __init__(
        self,
        decoder: GPT,
        outputs: int,
        *,
        padding: int,
        each: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.decoder, self.padding, self.each = decoder, padding, each
        self.dropout = nn.Dropout(dropout)
        # a number added to every answer's score would change nothing
        self.head = nn.Linear(decoder.dim, 1 if each else outputs, bias=not each)
        nn.init.normal_(self.head.weight, 0, 0.02)
        if not each:
            nn.init.zeros_(self.head.bias)

    def forward(self, ids: Tensor) -> Tensor:  # (B, T) or (B, R, T)
        """Return the scores, (B, K)."""
        return self.classify(self.features(ids), ids)

    def features(self, ids: Tensor) -> Tensor:
        """Return a vector for each token of each sequence, (B R, T, dim)."""
        flat = ids.flatten(0, -2)
        return self.decoder.features(flat, keep=flat != self.padding)

    def classify(self, h: Tensor, ids: Tensor) -> Tensor:  # (B R, T, dim), (B, T) or (B, R, T)
        """Return the scores, (B, K), of what ``features`` returned."""
        last = (ids.flatten(0, -2) != self.padding).sum(dim=1) - 1
        v = h[torch.arange(len(h), device=h.device), last]  # (B R, dim)
        v = self.dropout(v.view(len(ids), -1, h.shape[-1]))  # (B, R, dim)
        if self.each:
            return self.head(v).squeeze(-1)  # (B, R)
        return self.head(v.sum(dim=1))  # (B, K)

    def logits(self, h: Tensor) -> Tensor:  # (N, T, dim)
        """Return the logits of the token after each one, (N, T, V)."""
        return self.decoder.head(h)
