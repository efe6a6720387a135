"""Scores of keys for a query, and the weighted sums made of them.

additive (Bahdanau)      e_ij = v' tanh(W1 h_j + W2 u_i)
multiplicative           e_ij = u_i' W h_j
dot product              e_ij = u_i' h_j / sqrt(d)
pooling                  a_j = softmax_j(u' tanh(W h_j + b)),  c = sum_j a_j h_j, with u learnt

The output is sum_j softmax_j(e_ij) h_j, a convex combination of the values.
Shapes: B batch, Q queries, K keys, D width.
References: 2015, Bahdanau, Cho, Bengio, Neural machine translation by jointly learning to align
and translate, arXiv 1409.0473; 2015, Luong, Pham, Manning, Effective approaches to attention-based
neural machine translation, arXiv 1508.04025; 2016, Yang et al., Hierarchical attention networks
for document classification.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from castalia.nn.attention.attention_masks import Mask, additive

__all__ = [
    "AdditiveAttention",
    "AttentionPooling",
    "DotProductAttention",
    "MultiplicativeAttention",
]


SQUARE = 0.1  # of tanh(W1 h_j + W2 u_i) in the mean, for states of a network not yet trained


class ScoredAttention(nn.Module, ABC):
    """Attention whose weights are the softmax of some score."""

    @abstractmethod
    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return e, (B, Q, K)."""

    def weights(self, queries: Tensor, keys: Tensor, mask: Mask | None = None) -> Tensor:
        """Return softmax(e + mask), (B, Q, K)."""
        scores = self.scores(queries, keys)
        if mask is not None:
            seen = mask.visible(*scores.shape[-2:], device=scores.device)
            scores = scores + additive(seen.squeeze(1) if seen.ndim == 4 else seen, scores.dtype)
        return scores.softmax(dim=-1)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor | None = None,
        *,
        mask: Mask | None = None,
    ) -> Tensor:  # (B, Q, D), (B, K, D), (B, K, V)
        """Return the weighted sums of the values, which are the keys unless given, (B, Q, V)."""
        return self.weights(queries, keys, mask) @ (keys if values is None else values)


class AdditiveAttention(ScoredAttention):
    """Scores of a small network: v' tanh(W1 h_j + W2 u_i).

    v is drawn so that scores begin with a variance of about 1: with the usual small weights the
    softmax is flat, its gradient tiny, and a decoder takes several times as long to find where to
    look.

    Parameters
    ----------
    dim
        Width of a key.
    query_dim
        Width of a query; None: that of a key.
    hidden
        Units of the small network; None: ``dim``.

    Examples
    --------
    >>> attention = AdditiveAttention(8, query_dim=6)
    >>> attention(torch.ones(2, 1, 6), torch.ones(2, 5, 8)).shape
    torch.Size([2, 1, 8])
    """

    def __init__(
        self, dim: int, *, query_dim: int | None = None, hidden: int | None = None
    ) -> None:
        super().__init__()
        hidden = hidden or dim
        self.of_key = nn.Linear(dim, hidden, bias=False)
        self.of_query = nn.Linear(query_dim or dim, hidden, bias=False)
        self.v = nn.Linear(hidden, 1, bias=False)
        nn.init.xavier_uniform_(self.of_key.weight)
        nn.init.xavier_uniform_(self.of_query.weight)
        nn.init.normal_(self.v.weight, std=math.sqrt(1 / (SQUARE * hidden)))

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return v' tanh(W1 h_j + W2 u_i), (B, Q, K)."""
        pairs = self.of_query(queries)[:, :, None] + self.of_key(keys)[:, None]  # (B, Q, K, hidden)
        return self.v(torch.tanh(pairs)).squeeze(-1)


class MultiplicativeAttention(ScoredAttention):
    """Bilinear scores: u_i' W h_j. With W = I they are dot products.

    Parameters
    ----------
    dim
        Width of a key.
    query_dim
        Width of a query; None: that of a key.

    Examples
    --------
    >>> MultiplicativeAttention(8)(torch.ones(2, 1, 8), torch.ones(2, 5, 8)).shape
    torch.Size([2, 1, 8])
    """

    def __init__(self, dim: int, *, query_dim: int | None = None) -> None:
        super().__init__()
        self.w = nn.Linear(dim, query_dim or dim, bias=False)

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return u_i' W h_j, (B, Q, K)."""
        return queries @ self.w(keys).transpose(-2, -1)


class DotProductAttention(ScoredAttention):
    """Dot products, divided by sqrt(d) by default; nothing is learnt.

    The products of d independent numbers of variance 1 have variance d; divided by sqrt(d) they
    stay where the softmax has a gradient.

    Parameters
    ----------
    scale
        Factor of the products; None: 1 / sqrt(d).

    Examples
    --------
    >>> x = torch.eye(2)[None]
    >>> DotProductAttention(scale=1.0)(x, x)[0]
    tensor([[0.7311, 0.2689],
            [0.2689, 0.7311]])
    """

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        self.scale = scale

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return u_i' h_j scale, (B, Q, K)."""
        scale = 1 / math.sqrt(queries.shape[-1]) if self.scale is None else self.scale
        return (queries @ keys.transpose(-2, -1)) * scale


class AttentionPooling(nn.Module):
    """One vector for a sequence: the sum of its vectors weighted by a learnt question u.

    Parameters
    ----------
    dim
        Width of the vectors.
    hidden
        Width of the question; None: ``dim``.

    Examples
    --------
    >>> pool = AttentionPooling(8)
    >>> pool(torch.ones(2, 5, 8)).shape
    torch.Size([2, 8])
    """

    def __init__(self, dim: int, *, hidden: int | None = None) -> None:
        super().__init__()
        self.lift = nn.Linear(dim, hidden or dim)
        self.question = nn.Linear(hidden or dim, 1, bias=False)

    def weights(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Return a, (B, T); ``keep``, (B, T), is false at padding."""
        scores = self.question(torch.tanh(self.lift(x))).squeeze(-1)
        if keep is not None:
            scores = scores + additive(keep.bool(), scores.dtype)
        return scores.softmax(dim=-1)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:  # (B, T, D)
        """Return sum_t a_t x_t, (B, D)."""
        return (self.weights(x, keep)[:, None] @ x).squeeze(1)
