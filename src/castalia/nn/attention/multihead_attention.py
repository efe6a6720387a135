"""Multi-head attention: several scaled dot-product attentions side by side.

head_h = softmax(Q_h K_h' / sqrt(d_h) + mask) V_h,  output = [head_1 … head_H] W_O.

How a head gets its queries, keys and values is the ``layout``:
standard   each head projects the whole vector to dim / heads numbers   3 dim^2 weights
chunked    each head sees only its own dim / heads numbers              3 dim^2 / heads
whole      each head projects the whole vector to dim numbers           3 heads dim^2

With fewer heads of keys and values, G, each serves H / G heads of queries in turn.

Shapes: B batch, Q queries, K keys, H heads, G heads of keys and values, D width of a head.
References: 2017, Vaswani et al., Attention is all you need, arXiv 1706.03762; 2023, Ainslie et al.,
GQA: training generalized multi-query transformer models, arXiv 2305.13245.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn.attention.attention_masks import Mask
from castalia.nn.attention.key_value_cache import Cache
from castalia.nn.attention.position_encodings import Rotary
from castalia.utils.text import did_you_mean, listing

__all__ = ["MultiHeadAttention", "attend"]

LAYOUTS = ("standard", "chunked", "whole")


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Mask | Tensor | None = None,
    bias: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Return softmax(q k' scale + bias + mask) v by torch's fused attention.

    Parameters
    ----------
    q, k, v
        (B, H, Q, D), (B, G, K, D), (B, G, K, D).
    mask
        A rule on positions counted from zero, or what it adds to the scores, which broadcasts to
        (B, H, Q, K).
    bias
        Added to the scores; broadcasts to (B, H, Q, K).
    scale
        Factor of the products; None: 1 / sqrt(D).
    dropout
        Probability that a weight is set to zero.

    Examples
    --------
    >>> from castalia.nn.attention import causal
    >>> x = torch.eye(2)[None, None]
    >>> attend(x, x, x, mask=causal())[0, 0, 0]
    tensor([1., 0.])
    """
    grouped = q.shape[-3] != k.shape[-3]
    if isinstance(mask, Mask):
        if mask.only_causal and bias is None and q.shape[-2] == k.shape[-2]:
            return F.scaled_dot_product_attention(
                q, k, v, dropout_p=dropout, is_causal=True, scale=scale, enable_gqa=grouped
            )
        mask = mask.additive(q.shape[-2], k.shape[-2], dtype=q.dtype, device=q.device)
    added = join(mask, bias, q.dtype)
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=added, dropout_p=dropout, scale=scale, enable_gqa=grouped
    )


def join(mask: Tensor | None, bias: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Return bias + mask; where the mask forbids, the sum stays finite."""
    if mask is None or bias is None:
        added = mask if bias is None else bias
        return None if added is None else added.to(dtype)
    return (bias + mask).clamp(min=torch.finfo(dtype).min).to(dtype)


class PerChunk(nn.Module):
    """A linear map of its own for each chunk of a vector."""

    def __init__(self, chunks: int, size: int, outputs: int, bias: bool) -> None:
        super().__init__()
        bound = 1 / math.sqrt(size)
        self.weight = nn.Parameter(torch.empty(chunks, size, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(chunks, outputs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:  # (B, T, chunks * size)
        parts = x.unflatten(-1, self.weight.shape[:2])
        out = torch.einsum("bthi,hio->btho", parts, self.weight)
        return out if self.bias is None else out + self.bias  # (B, T, chunks, outputs)


class MultiHeadAttention(nn.Module):
    """Attention with several heads, of a sequence to itself or to another one.

    Parameters
    ----------
    dim
        Width of the vectors.
    heads
        Attention heads.
    head_dim
        Width of a head; None: ``dim / heads``. Standard layout only.
    layout
        ``"standard"``, ``"chunked"`` or ``"whole"``; see the top of the file.
    bias
        Whether the projections have one.
    dropout
        Probability that a weight is set to zero in training.
    scale
        Factor of the products; None: 1 / sqrt(head_dim).
    rotary
        Turns queries and keys by their positions.
    kv_heads
        Heads of keys and values, G, which divide ``heads``; None: ``heads``. Standard layout only.
    out_bias
        Whether the last projection has a bias; None: as ``bias`` says.

    Examples
    --------
    >>> from castalia.nn.attention import causal
    >>> attention = MultiHeadAttention(8, heads=2)
    >>> attention(torch.ones(1, 5, 8), mask=causal()).shape
    torch.Size([1, 5, 8])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        head_dim: int | None = None,
        layout: str = "standard",
        bias: bool = True,
        dropout: float = 0.0,
        scale: float | None = None,
        rotary: Rotary | None = None,
        kv_heads: int | None = None,
        out_bias: bool | None = None,
    ) -> None:
        super().__init__()
        _check(dim, heads, head_dim, layout)
        _check_groups(heads, kv_heads, layout)
        self.heads, self.kv_heads, self.layout = heads, kv_heads or heads, layout
        self.head_dim = dim if layout == "whole" else head_dim or dim // heads
        self.dropout, self.scale, self.rotary = dropout, scale, rotary
        inner = heads * self.head_dim
        self.qkv: nn.Module
        if layout == "chunked":
            self.qkv = PerChunk(heads, dim // heads, 3 * self.head_dim, bias)
        else:
            self.qkv = nn.Linear(dim, inner + 2 * self.kv_heads * self.head_dim, bias=bias)
        self.out = nn.Linear(inner, dim, bias=bias if out_bias is None else out_bias)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Mask | None = None,
        bias: Tensor | None = None,
        cache: Cache | None = None,
        layer: int = 0,
    ) -> Tensor:  # (B, Q, dim), (B, K, dim)
        """Return what the queries of x gather, (B, Q, dim).

        Parameters
        ----------
        x
            Where the queries come from.
        memory
            Where keys and values come from; None: x itself.
        mask
            Which keys a query sees; positions count from zero.
        bias
            Added to the scores, (1 or B, H, Q, K).
        cache
            What was seen before x, and keeps x; its own causal rule replaces ``mask``. Of a memory
            the keys and values are computed in the first call.
        layer
            Number of this attention in the cache.
        """
        seen: Mask | Tensor | None = mask
        if memory is not None:
            q, (k, v) = self._queries(x), self._memory(memory, cache, layer)
        else:
            q, k, v = self._project(x)
            q, k = self._turn(q, k, cache)
            if cache is not None:
                (k, v), seen = cache.remember(layer, k, v), cache.mask
        dropout = self.dropout if self.training else 0.0
        k, v = k.to(q.dtype), v.to(q.dtype)
        out = attend(q, k, v, mask=seen, bias=bias, scale=self.scale, dropout=dropout)
        return self.out(out.transpose(1, 2).flatten(2))

    def weights(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Mask | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Return the attention map softmax(q k' scale + bias + mask), (B, H, Q, K)."""
        if memory is None:
            q, k, _ = self._project(x)
            q, k = self._turn(q, k, None)
        else:
            q, k = self._queries(x), self._keys_values(memory)[0]
        k = k.repeat_interleave(self.heads // self.kv_heads, dim=1)  # (B, H, K, D)
        scale = 1 / math.sqrt(self.head_dim) if self.scale is None else self.scale
        scores = (q @ k.transpose(-2, -1)) * scale
        shape = q.shape[-2], k.shape[-2]
        seen = None if mask is None else mask.additive(*shape, dtype=q.dtype, device=q.device)
        added = join(seen, bias, q.dtype)
        return (scores if added is None else scores + added).softmax(dim=-1)

    def _split(self, x: Tensor, *heads: int) -> tuple[Tensor, ...]:
        """Cut (B, T, sum of heads * D) into (B, H, T, D) for each number of heads."""
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2).split(heads, dim=1)

    def _project(self, x: Tensor) -> tuple[Tensor, ...]:
        found = self.qkv(x)
        if self.layout == "chunked":  # (B, T, H, 3 D)
            return found.transpose(1, 2).chunk(3, dim=-1)
        return self._split(found, self.heads, self.kv_heads, self.kv_heads)

    def _memory(self, memory: Tensor, cache: Cache | None, layer: int) -> tuple[Tensor, ...]:
        """Return keys and values of the memory, computed once where there is a cache."""
        if cache is None:
            return self._keys_values(memory)
        kept = cache.layers[layer]
        if kept.memory is None:
            k, v = self._keys_values(memory)
            kept.memory = (k.contiguous(), v.contiguous())
        return kept.memory

    def _queries(self, x: Tensor) -> Tensor:
        if not isinstance(self.qkv, nn.Linear):
            return self._project(x)[0]
        inner, bias = self.heads * self.head_dim, self.qkv.bias
        found = F.linear(x, self.qkv.weight[:inner], None if bias is None else bias[:inner])
        return self._split(found, self.heads)[0]

    def _keys_values(self, memory: Tensor) -> tuple[Tensor, ...]:
        if not isinstance(self.qkv, nn.Linear):
            return self._project(memory)[1:]
        inner, bias = self.heads * self.head_dim, self.qkv.bias
        found = F.linear(memory, self.qkv.weight[inner:], None if bias is None else bias[inner:])
        return self._split(found, self.kv_heads, self.kv_heads)

    def _turn(self, q: Tensor, k: Tensor, cache: Cache | None) -> tuple[Tensor, Tensor]:
        if self.rotary is None:
            return q, k
        count = q.shape[-2]
        places = torch.arange(count, device=q.device) if cache is None else cache.positions()
        return self.rotary(q, places), self.rotary(k, places)


def _check_groups(heads: int, kv_heads: int | None, layout: str) -> None:
    if kv_heads is None:
        return
    if layout != "standard":
        raise InvalidParameter(
            f"MultiHeadAttention: `kv_heads` must be None with layout={layout!r}; got {kv_heads}."
        )
    if kv_heads < 1 or heads % kv_heads:
        raise InvalidParameter(
            f"MultiHeadAttention: `kv_heads` must divide heads={heads}; got {kv_heads}."
        )


def _check(dim: int, heads: int, head_dim: int | None, layout: str) -> None:
    if layout not in LAYOUTS:
        raise InvalidParameter(
            f"MultiHeadAttention: `layout` must be {listing(LAYOUTS)}; got {layout!r}."
            f"{did_you_mean(str(layout), LAYOUTS)}"
        )
    if head_dim is not None and layout != "standard":
        raise InvalidParameter(
            f"MultiHeadAttention: `head_dim` must be None with layout={layout!r}, which fixes the "
            f"width of a head; got {head_dim}."
        )
    if heads < 1 or (layout != "whole" and head_dim is None and dim % heads):
        raise InvalidParameter(
            f"MultiHeadAttention: `heads` must divide dim={dim}; got {heads}. Choose another "
            "number of heads, or give `head_dim`."
        )
