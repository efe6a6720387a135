"""BART: an encoder and a decoder that restore damaged text.

Post-norm blocks; h_0 = norm(W_e[ids] + W_p[positions + 2]) in each half; logits = h W_e' + c.
Marian's translators have h_0 = sqrt(d) W_e[ids] + (sin, cos)(positions), without a norm.

Shapes: B batch, S tokens of the source, T tokens of the answer, V vocabulary.
References: 2020, Lewis et al., BART: denoising sequence-to-sequence pre-training, arXiv 1910.13461;
2018, Junczys-Dowmunt et al., Marian: fast neural machine translation in C++, arXiv 1804.00344.

| published size (V = 50,265) | dim | depth | heads | hidden | parameters |
|---|---|---|---|---|---|
| BART base | 768 | 6 | 12 | 3072 | 139,420,416 |
| BART large | 1024 | 12 | 16 | 4096 | 406,291,456 |
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidData
from castalia.nets.language.encoder_decoder import EncoderDecoder
from castalia.nn.attention import (
    Cache,
    LearnedPositions,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
    padding,
    token_positions,
)

__all__ = ["BART"]

OFFSET = 2  # rows of a position table before position zero, as in the published weights


class WavePositions(nn.Module):
    """Fixed vectors, sines in the first half and cosines in the second."""

    table: Tensor

    def __init__(self, length: int, dim: int) -> None:
        super().__init__()
        with torch.device("cpu"):  # a network without memory of its own has them all the same
            i = torch.arange(0, dim, 2, dtype=torch.float64)
            angles = torch.arange(length)[:, None] * 10000 ** (-i / dim)
            waves = torch.cat([angles.sin(), angles[:, : dim // 2].cos()], dim=1)
            found = waves.to(torch.get_default_dtype())
        self.register_buffer("table", found, persistent=False)

    def forward(self, places: Tensor) -> Tensor:  # (..., T)
        return self.table[places]  # (..., T, dim)


class BART(EncoderDecoder):
    """Encoder and decoder with learned positions.

    Parameters
    ----------
    vocabulary
        Number of tokens known.
    context
        The longest source, and the longest answer.
    dim
        Width of the vectors.
    depth
        Blocks of the encoder, and of the decoder unless given separately.
    heads
        Attention heads of a block.
    hidden
        Units of the position-wise networks; None: 4 ``dim``.
    decoder_depth
        Blocks of the decoder; None: ``depth``.
    activation
        Of the position-wise networks.
    dropout
        Probability for embeddings, attention weights and the output of each part.
    scaled
        Whether the vectors of the tokens are multiplied by sqrt(dim).
    sinusoidal
        Whether positions are fixed waves, as Marian's, instead of learnt.
    embedding_norm
        Whether there is a norm before the first block; Marian has none.

    Examples
    --------
    >>> net = BART(50, context=16, dim=8, depth=2, heads=2)
    >>> net(torch.tensor([[3, 1, 4]]), torch.tensor([[2, 7]])).shape
    torch.Size([1, 2, 50])
    """

    output_bias: Tensor

    def __init__(
        self,
        vocabulary: int,
        *,
        context: int = 1024,
        dim: int = 768,
        depth: int = 6,
        heads: int = 12,
        hidden: int | None = None,
        decoder_depth: int | None = None,
        activation: str = "gelu",
        dropout: float = 0.0,
        scaled: bool = False,
        sinusoidal: bool = False,
        embedding_norm: bool = True,
    ) -> None:
        super().__init__()
        self.vocabulary, self.context, self.dim = vocabulary, context, dim
        self.heads, self.head_dim = heads, dim // heads
        self.activation, self.hidden, self.scaled = activation, hidden or 4 * dim, scaled
        self.tokens = nn.Embedding(vocabulary, dim)
        self.sinusoidal, self.offset = sinusoidal, 0 if sinusoidal else OFFSET
        kind: type[Any] = WavePositions if sinusoidal else LearnedPositions
        self.encoder_positions, self.decoder_positions = (
            kind(context + self.offset, dim) for _ in range(2)
        )
        self.encoder_norm, self.decoder_norm = (
            nn.LayerNorm(dim) if embedding_norm else nn.Identity() for _ in range(2)
        )
        self.dropout = nn.Dropout(dropout)
        block: dict[str, Any] = {"hidden": hidden, "activation": activation, "dropout": dropout}
        self.encoder = nn.ModuleList(
            TransformerEncoderBlock(dim, heads, **block) for _ in range(depth)
        )
        self.decoder = nn.ModuleList(
            TransformerDecoderBlock(dim, heads, **block)
            for _ in range(depth if decoder_depth is None else decoder_depth)
        )
        self.register_buffer("output_bias", torch.zeros(1, vocabulary))
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Draw weights from N(0, 0.02^2); biases are zero."""
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                parameter.normal_(0, 0.02)
            elif name.endswith("bias"):
                parameter.zero_()

    def encode(self, ids: Tensor, *, keep: Tensor | None = None) -> Tensor:  # (B, S)
        """Return a vector for each token of the source, (B, S, dim)."""
        self._check_room(ids.shape[1])
        h = self._embed(ids) + self.encoder_positions(token_positions(ids, keep) + self.offset)
        h = self.dropout(self.encoder_norm(h))
        mask = None if keep is None else padding(keep)
        for block in self.encoder:
            h = block(h, mask=mask)
        return h

    def _before(
        self, ids: Tensor, keep: Tensor | None, cache: Cache | None
    ) -> tuple[Tensor, Tensor | None]:  # (B, T)
        self._check_room(ids.shape[1] + (cache.seen if cache is not None else 0))
        places = token_positions(ids, keep) if cache is None else cache.positions()
        h = self._embed(ids) + self.decoder_positions(places + self.offset)
        return self.dropout(self.decoder_norm(h)), None

    def head(self, h: Tensor) -> Tensor:  # (B, T, dim)
        """Return the logits of vectors, (B, T, V)."""
        return F.linear(h, self.tokens.weight) + self.output_bias

    def _embed(self, ids: Tensor) -> Tensor:
        found: Tensor = self.tokens(ids)
        return found * math.sqrt(self.dim) if self.scaled else found

    def _check_room(self, tokens: int) -> None:
        if tokens > self.context:
            raise InvalidData(
                f"BART: a sequence must have at most context={self.context} tokens; got {tokens}. "
                "Cut it, or build the network with a longer context."
            )
