"""T5: a text-to-text transformer with relative positions.

Encoder and decoder are pre-norm without biases; the norm is x / sqrt(mean x^2) * g; scores are not
scaled, and each half adds one table of relative positions, shared by its blocks, to its
self-attention. Tied: logits = (h / sqrt(dim)) W_e'.

Shapes: B batch, S tokens of the source, T tokens of the answer, V vocabulary.
References: 2020, Raffel et al., Exploring the limits of transfer learning with a unified
text-to-text transformer, arXiv 1910.10683; 2020, Shazeer, GLU variants, arXiv 2002.05202 (v1.1).

| published size (V = 32,128) | dim | depth | heads | head_dim | hidden | parameters |
|---|---|---|---|---|---|---|
| T5 small | 512 | 6 | 8 | 64 | 2048 | 60,506,624 |
| T5 base | 768 | 12 | 12 | 64 | 3072 | 222,903,552 |
| T5 large | 1024 | 24 | 16 | 64 | 4096 | 737,668,096 |
| T5 3B | 1024 | 24 | 32 | 128 | 16384 | 2,851,598,336 |
| T5 11B | 1024 | 24 | 128 | 128 | 65536 | 11,307,321,344 |
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.nets.language.encoder_decoder import EncoderDecoder
from castalia.nn.attention import (
    Cache,
    RelativeBias,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
    padding,
)

__all__ = ["T5"]


class T5(EncoderDecoder):
    """Encoder and decoder with relative positions.

    Parameters
    ----------
    vocabulary
        Number of tokens known.
    dim
        Width of the vectors.
    depth
        Number of blocks of the encoder, and of the decoder unless given separately.
    heads, head_dim
        Attention heads and the width of one; their product need not be ``dim``.
    hidden
        Units of the position-wise networks.
    decoder_depth
        Blocks of the decoder; None: ``depth``.
    activation, gated
        Of the position-wise networks: ``"relu"``, or ``"gelu_tanh"`` and gated in version 1.1.
    buckets, furthest
        Of the relative positions.
    dropout
        Probability for embeddings, attention weights and the output of each part.
    tied
        Whether the output layer is the table of the tokens.
    scaled
        Whether the vectors below the output layer are divided by sqrt(dim); None: when tied.
    eps
        Smallest mean square of the norms.

    Examples
    --------
    >>> net = T5(50, dim=8, depth=2, heads=2, head_dim=4, hidden=16)
    >>> net(torch.tensor([[3, 1, 4]]), torch.tensor([[0, 7]])).shape
    torch.Size([1, 2, 50])
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        dim: int = 512,
        depth: int = 6,
        heads: int = 8,
        head_dim: int = 64,
        hidden: int = 2048,
        decoder_depth: int | None = None,
        activation: str = "relu",
        gated: bool = False,
        buckets: int = 32,
        furthest: int = 128,
        dropout: float = 0.0,
        tied: bool = True,
        scaled: bool | None = None,
        eps: float = 1e-6,
    ) -> None:
        super().__init__()
        self.vocabulary, self.dim, self.heads, self.head_dim = vocabulary, dim, heads, head_dim
        self.activation, self.gated, self.hidden, self.eps = activation, gated, hidden, eps
        self.scaled = tied if scaled is None else scaled
        block: dict[str, Any] = {
            "hidden": hidden,
            "head_dim": head_dim,
            "activation": activation,
            "dropout": dropout,
            "gated": gated,
            "eps": eps,
            "pre_norm": True,
            "norm": "rms",
            "bias": False,
            "scale": 1.0,
        }
        self.tokens = nn.Embedding(vocabulary, dim)
        self.dropout = nn.Dropout(dropout)
        self.encoder_bias, self.decoder_bias = (
            RelativeBias(heads, buckets=buckets, furthest=furthest, both_ways=both_ways)
            for both_ways in (True, False)
        )
        self.encoder = nn.ModuleList(
            TransformerEncoderBlock(dim, heads, **block) for _ in range(depth)
        )
        self.encoder_norm = nn.RMSNorm(dim, eps=eps)
        self.decoder = nn.ModuleList(
            TransformerDecoderBlock(dim, heads, **block)
            for _ in range(depth if decoder_depth is None else decoder_depth)
        )
        self.decoder_norm = nn.RMSNorm(dim, eps=eps)
        self.output = None if tied else nn.Linear(dim, vocabulary, bias=False)
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Draw weights as T5: unscaled scores need queries that are small from the start."""
        inner = self.heads * self.head_dim
        for name, parameter in self.named_parameters():
            if name == "tokens.weight":
                parameter.normal_(0, 1.0)
            elif name.endswith("qkv.weight"):
                parameter.normal_(0, self.dim**-0.5)
                parameter[:inner].mul_(self.head_dim**-0.5)
            elif name.endswith(("attention.out.weight", "cross.out.weight")):
                parameter.normal_(0, inner**-0.5)
            elif parameter.ndim == 2:
                parameter.normal_(0, parameter.shape[1] ** -0.5)

    def encode(self, ids: Tensor, *, keep: Tensor | None = None) -> Tensor:  # (B, S)
        """Return a vector for each token of the source, (B, S, dim)."""
        places = torch.arange(ids.shape[1], device=ids.device)
        bias = self.encoder_bias(places, places)  # (1, H, S, S)
        mask = None if keep is None else padding(keep)
        h = self.dropout(self.tokens(ids))
        for block in self.encoder:
            h = block(h, mask=mask, bias=bias)
        return self.dropout(self.encoder_norm(h))

    def _before(
        self, ids: Tensor, keep: Tensor | None, cache: Cache | None
    ) -> tuple[Tensor, Tensor | None]:  # (B, T)
        i = j = torch.arange(ids.shape[1], device=ids.device)
        if cache is not None:
            i, j = cache.slots, cache.keys_at
        return self.dropout(self.tokens(ids)), self.decoder_bias(i, j)  # bias (1, H, T, K)

    def _after(self, h: Tensor) -> Tensor:
        return self.dropout(self.decoder_norm(h))

    def head(self, h: Tensor) -> Tensor:  # (B, T, dim)
        """Return the logits of vectors, (B, T, V)."""
        h = h * (1 / math.sqrt(self.dim)) if self.scaled else h
        return F.linear(h, self.tokens.weight) if self.output is None else self.output(h)
