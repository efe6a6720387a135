"""Llama: a causal transformer with rotary positions, gated units and grouped heads.

h <- h + attention(norm(h)),  h <- h + (g(n W1) * n W3) W2 with n = norm(h),  norm(x) = x / rms(x) a
logits = norm(h) W'

Queries and keys are turned by their positions, several heads of queries share one of keys and
values, and g is x sigmoid(x). Mistral lets a token see the last ``window`` tokens only; Qwen2 has
biases in the projections of queries, keys and values.

Shapes: B batch, T tokens, V vocabulary.
References: 2023, Touvron et al., LLaMA: open and efficient foundation language models, arXiv
2302.13971; 2023, Jiang et al., Mistral 7B, arXiv 2310.06825; 2024, Yang et al., Qwen2 technical
report, arXiv 2407.10671.

| published size | V | context | dim | depth | heads | kv_heads | hidden | parameters |
|---|---|---|---|---|---|---|---|---|
| Llama 2 7B | 32,000 | 4096 | 4096 | 32 | 32 | 32 | 11008 | 6,738,415,616 |
| Llama 3.2 1B (tied) | 128,256 | 131,072 | 2048 | 16 | 32 | 8 | 8192 | 1,235,814,400 |
| Llama 3.1 8B | 128,256 | 131,072 | 4096 | 32 | 32 | 8 | 14336 | 8,030,261,248 |
| Mistral 7B | 32,000 | 32,768 | 4096 | 32 | 32 | 8 | 14336 | 7,241,732,096 |
| Qwen2 0.5B (tied) | 151,936 | 32,768 | 896 | 24 | 14 | 2 | 4864 | 494,032,768 |
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.language.causal_decoder import CausalDecoder
from castalia.nn.attention import (
    Cache,
    FeedForward,
    Mask,
    MultiHeadAttention,
    Rotary,
    causal,
    local,
    padding,
)
from castalia.utils.text import listing

__all__ = ["Llama"]

BIASES = ("qkv", "out", "feed_forward")
MULTIPLE = 16  # hidden units are rounded up to one


class LlamaBlock(nn.Module):
    """Self-attention and gated units, each behind a norm and beside a residual path."""

    def __init__(
        self,
        dim: int,
        *,
        attention: Mapping[str, Any],
        feed_forward: Mapping[str, Any],
        eps: float,
    ) -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(dim, eps=eps)
        self.attention = MultiHeadAttention(dim, **attention)
        self.norm2 = nn.RMSNorm(dim, eps=eps)
        self.feed_forward = FeedForward(dim, gated=True, **feed_forward)

    def forward(
        self, h: Tensor, *, mask: Mask | None, cache: Cache | None, layer: int
    ) -> Tensor:  # (B, T, dim)
        h = h + self.attention(self.norm1(h), mask=mask, cache=cache, layer=layer)
        return h + self.feed_forward(self.norm2(h))


class Llama(CausalDecoder):
    """Decoder-only transformer of Llama, Mistral and Qwen2.

    Parameters
    ----------
    vocabulary
        Number of tokens known.
    context
        The longest text it was made for; longer ones are read all the same.
    dim
        Width of the vectors.
    depth
        Number of blocks.
    heads
        Attention heads of a block.
    kv_heads
        Heads of keys and values, which divide ``heads``; None: ``heads``.
    head_dim
        Width of a head, even; None: ``dim / heads``.
    hidden
        Gated units; None: 8/3 ``dim``, as many weights as 4 ``dim`` without gates.
    dropout
        Probability for attention weights.
    activation
        Of the gates; ``"swish"`` is x sigmoid(x).
    biases
        Which layers have one, of ``"qkv"``, ``"out"`` and ``"feed_forward"``; Qwen2: ``("qkv",)``.
    tied
        Whether the output layer is the table of the tokens.
    base
        The longest wave of the positions is 2 pi times this; larger for longer texts.
    scaling
        How positions are stretched, see ``castalia.nn.attention.Rotary``.
    window
        How many tokens, itself included, a token sees; None: all before it.
    unwindowed
        The first blocks that see everything whatever ``window`` is.
    eps
        Smallest mean square of the norms.

    Examples
    --------
    >>> net = Llama(50, context=16, dim=8, depth=2, heads=4, kv_heads=2)
    >>> net(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 50])
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        context: int = 4096,
        dim: int = 512,
        depth: int = 8,
        heads: int = 8,
        kv_heads: int | None = None,
        head_dim: int | None = None,
        hidden: int | None = None,
        dropout: float = 0.0,
        activation: str = "swish",
        biases: Collection[str] = (),
        tied: bool = False,
        base: float = 10000.0,
        scaling: Mapping[str, Any] | None = None,
        window: int | None = None,
        unwindowed: int = 0,
        eps: float = 1e-6,
    ) -> None:
        super().__init__()
        _check(heads, dim, head_dim, biases)
        self.vocabulary, self.context, self.dim, self.heads = vocabulary, context, dim, heads
        self.kv_heads, self.head_dim = kv_heads or heads, head_dim or dim // heads
        self.hidden = hidden or -(-8 * dim // (3 * MULTIPLE)) * MULTIPLE
        self.activation, self.biases, self.eps = activation, tuple(biases), eps
        self.window, self.unwindowed, self.attention_dropout = window, unwindowed, dropout
        self.rotary = Rotary(self.head_dim, base=base, scaling=scaling)
        attention = {
            "heads": heads,
            "kv_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "bias": "qkv" in biases,
            "out_bias": "out" in biases,
            "dropout": dropout,
            "rotary": self.rotary,
        }
        feed_forward = {
            "hidden": self.hidden,
            "activation": activation,
            "bias": "feed_forward" in biases,
        }
        self.tokens = nn.Embedding(vocabulary, dim)
        self.blocks = nn.ModuleList(
            LlamaBlock(dim, attention=attention, feed_forward=feed_forward, eps=eps)
            for _ in range(depth)
        )
        self.norm = nn.RMSNorm(dim, eps=eps)
        self.output = None if tied else nn.Linear(dim, vocabulary, bias=False)
        self._initialise(depth)

    @torch.no_grad()
    def _initialise(self, depth: int) -> None:
        """Draw weights from N(0, 0.02^2), less for what is added to the residual path."""
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                ends = name.endswith(("attention.out.weight", "down.weight"))
                parameter.normal_(0, 0.02 / math.sqrt(2 * depth) if ends else 0.02)
            elif name.endswith("bias"):
                parameter.zero_()

    @property
    def sizes(self) -> dict[str, Any]:
        """The arguments that build such a network but for its vocabulary, as plain values."""
        same = ("context", "dim", "heads", "kv_heads", "head_dim", "hidden", "activation", "eps")
        return {
            **{name: getattr(self, name) for name in (*same, "window", "unwindowed")},
            "depth": len(self.blocks),
            "dropout": self.attention_dropout,
            "biases": list(self.biases),
            "tied": self.output is None,
            "base": self.rotary.base,
            "scaling": None if self.rotary.scaling is None else dict(self.rotary.scaling),
        }

    def features(
        self,
        ids: Tensor,
        *,
        keep: Tensor | None = None,
        mask: Mask | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Return the vectors below the output layer, (B, T, dim); see ``CausalDecoder``."""
        h, rule = self.tokens(ids), self._window(ids.shape[1] if cache is None else cache.length)
        for layer, block in enumerate(self.blocks):
            if layer in (0, self.unwindowed):
                near = rule if layer >= self.unwindowed else None
                seen = self._seen(ids, keep, _both(mask, near), cache)
            h = block(h, mask=seen, cache=cache, layer=layer)
        if cache is not None:
            cache.advance()
        return self.norm(h)

    def _window(self, tokens: int) -> Mask | None:
        """Return the rule of the window, where texts of so many tokens outgrow it."""
        if self.window is None or tokens <= self.window:
            return None
        return causal() & local(self.window)

    def _seen(
        self, ids: Tensor, keep: Tensor | None, rule: Mask | None, cache: Cache | None
    ) -> Mask | None:
        """Return what tokens see, or let the cache say it."""
        if cache is not None:
            cache.begin(ids.shape[1], rule)
            return None
        seen = causal() if rule is None else rule
        return seen if keep is None else seen & padding(keep)


def _both(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _check(heads: int, dim: int, head_dim: int | None, biases: Collection[str]) -> None:
    unknown = set(biases) - set(BIASES)
    if isinstance(biases, str) or unknown:
        raise InvalidParameter(
            f"Llama: `biases` must be a collection of {listing(BIASES, 'and')}; got {biases!r}."
        )
    if head_dim is None and (heads < 1 or dim % heads):
        raise InvalidParameter(f"Llama: `heads` must divide dim={dim}; got {heads}.")
