"""The transformer: an encoder and a decoder of post-norm blocks, trained to translate.

h = sqrt(d) W_e[ids] + PE(positions); N blocks of self-attention and a position-wise network read
the source; N blocks with causal self-attention and attention to the source write the answer;
logits = h W_e'.

Shapes: B batch, S tokens of the source, T tokens of the answer, V vocabulary.
Reference: 2017, Vaswani et al., Attention is all you need, arXiv 1706.03762. Base: dim 512, N = 6,
8 heads, 2048 hidden units. Big: dim 1024, 16 heads, 4096 hidden units.
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
    SinusoidalPositions,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
    padding,
    token_positions,
)

__all__ = ["Transformer"]


class Transformer(EncoderDecoder):
    """Encoder and decoder with sinusoidal positions.

    Parameters
    ----------
    vocabulary
        Tokens of the source.
    outputs
        Tokens of the answer; None: those of the source, with one table for both.
    dim
        Width of the vectors, even.
    depth
        Blocks of the encoder, and of the decoder.
    heads
        Attention heads of a block.
    hidden
        Units of the position-wise networks; None: 4 ``dim``.
    dropout
        Probability for embeddings, attention weights and the output of each part.
    activation
        Of the position-wise networks.
    pre_norm
        Whether norms stand before each part, with one more after all blocks; the original has
        them after it, and wants a warm-up of the learning rate.

    Examples
    --------
    >>> net = Transformer(50, 60, dim=8, depth=2, heads=2)
    >>> net(torch.tensor([[3, 1, 4]]), torch.tensor([[0, 7]])).shape
    torch.Size([1, 2, 60])
    """

    def __init__(
        self,
        vocabulary: int,
        outputs: int | None = None,
        *,
        dim: int = 512,
        depth: int = 6,
        heads: int = 8,
        hidden: int | None = None,
        dropout: float = 0.1,
        activation: str = "relu",
        pre_norm: bool = False,
    ) -> None:
        super().__init__()
        self.dim, self.heads, self.head_dim = dim, heads, dim // heads
        self.tokens = nn.Embedding(vocabulary, dim)
        self.answers = self.tokens if outputs is None else nn.Embedding(outputs, dim)
        self.positions = SinusoidalPositions(dim)
        self.dropout = nn.Dropout(dropout)
        block: dict[str, Any] = {
            "hidden": hidden,
            "activation": activation,
            "dropout": dropout,
            "pre_norm": pre_norm,
        }
        self.encoder = nn.ModuleList(
            TransformerEncoderBlock(dim, heads, **block) for _ in range(depth)
        )
        self.decoder = nn.ModuleList(
            TransformerDecoderBlock(dim, heads, **block) for _ in range(depth)
        )
        self.encoder_norm = nn.LayerNorm(dim) if pre_norm else nn.Identity()
        self.decoder_norm = nn.LayerNorm(dim) if pre_norm else nn.Identity()
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Draw tables from N(0, 1/dim), layers by Glorot; biases are zero."""
        for name, parameter in self.named_parameters():
            if name in ("tokens.weight", "answers.weight"):
                parameter.normal_(0, self.dim**-0.5)
            elif parameter.ndim == 2:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                parameter.zero_()

    def encode(self, ids: Tensor, *, keep: Tensor | None = None) -> Tensor:  # (B, S)
        """Return a vector for each token of the source, (B, S, dim)."""
        h = self._embed(self.tokens, ids, token_positions(ids, keep))
        mask = None if keep is None else padding(keep)
        for block in self.encoder:
            h = block(h, mask=mask)
        return self.encoder_norm(h)

    def _before(
        self, ids: Tensor, keep: Tensor | None, cache: Cache | None
    ) -> tuple[Tensor, Tensor | None]:  # (B, T)
        places = token_positions(ids, keep) if cache is None else cache.positions()
        return self._embed(self.answers, ids, places), None

    def _after(self, h: Tensor) -> Tensor:
        return self.decoder_norm(h)

    def head(self, h: Tensor) -> Tensor:  # (B, T, dim)
        """Return the logits of vectors, (B, T, V)."""
        return F.linear(h, self.answers.weight)

    def _embed(self, table: nn.Module, ids: Tensor, places: Tensor) -> Tensor:
        return self.dropout(table(ids) * math.sqrt(self.dim) + self.positions(places))
