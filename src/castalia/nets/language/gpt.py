"""GPT: a causal transformer that predicts the next token.

h_0 = W_e[ids] + W_p[positions],  h_l = block_l(h_{l-1}),  logits = norm(h_L) W_e'.

Shapes: B batch, T tokens, V vocabulary.
References: 2018, Radford et al., Improving language understanding by generative pre-training; 2019,
Radford et al., Language models are unsupervised multitask learners.
Departs from them: the dropouts of embeddings, attention and residuals have one probability.

| published size | context | dim | depth | heads | parameters |
|---|---|---|---|---|---|
| GPT (V = 40,478, post-norm) | 512 | 768 | 12 | 12 | 116,534,784 |
| GPT-2 small (V = 50,257) | 1024 | 768 | 12 | 12 | 124,439,808 |
| GPT-2 medium | 1024 | 1024 | 24 | 16 | 354,823,168 |
| GPT-2 large | 1024 | 1280 | 36 | 20 | 774,030,080 |
| GPT-2 XL | 1024 | 1600 | 48 | 25 | 1,557,611,200 |
| GPT-3 | 2048 | 12288 | 96 | 96 | 174,604,259,328 |
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from castalia.errors import InvalidData
from castalia.nets.language.causal_decoder import CausalDecoder
from castalia.nn.attention import (
    Cache,
    LearnedPositions,
    Mask,
    Rotary,
    TransformerEncoderBlock,
    causal,
    padding,
    token_positions,
)

__all__ = ["GPT"]


class GPT(CausalDecoder):
    """Decoder-only transformer with learned positions.

    Parameters
    ----------
    vocabulary
        Number of tokens known.
    context
        The longest sequence.
    dim
        Width of the vectors.
    depth
        Number of blocks.
    heads
        Attention heads of a block.
    hidden
        Units of the position-wise networks; None: 4 ``dim``.
    dropout
        Probability for embeddings, attention weights and the output of each part.
    activation
        Of the position-wise networks.
    pre_norm
        Whether norms stand before each part, as in GPT-2, or after it, as in GPT.
    bias
        Whether linear layers and norms have a bias.
    tied
        Whether the output layer is the table of the tokens.
    rotary
        Whether positions turn queries and keys instead of being learnt.
    eps
        Smallest variance of the norms.

    Examples
    --------
    >>> net = GPT(50, context=16, dim=8, depth=2, heads=2)
    >>> net(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 50])
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        context: int = 1024,
        dim: int = 768,
        depth: int = 12,
        heads: int = 12,
        hidden: int | None = None,
        dropout: float = 0.0,
        activation: str = "gelu_tanh",
        pre_norm: bool = True,
        bias: bool = True,
        tied: bool = True,
        rotary: bool = False,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.vocabulary, self.context, self.heads, self.dim = vocabulary, context, heads, dim
        self.kv_heads, self.head_dim = heads, dim // heads
        self.activation, self.hidden, self.eps = activation, hidden or 4 * dim, eps
        self.tokens = nn.Embedding(vocabulary, dim)
        self.positions = None if rotary else LearnedPositions(context, dim)
        turn = Rotary(dim // heads) if rotary else None
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TransformerEncoderBlock(
                dim,
                heads,
                hidden=hidden,
                activation=activation,
                dropout=dropout,
                pre_norm=pre_norm,
                bias=bias,
                eps=eps,
                rotary=turn,
            )
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(dim, eps=eps, bias=bias) if pre_norm else nn.Identity()
        self.output = None if tied else nn.Linear(dim, vocabulary, bias=False)
        self._initialise(depth)

    @torch.no_grad()
    def _initialise(self, depth: int) -> None:
        """Draw weights as GPT-2: N(0, 0.02^2), and less for what is added to the residual path."""
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                ends = name.endswith(("attention.out.weight", "down.weight"))
                parameter.normal_(0, 0.02 / math.sqrt(2 * depth) if ends else 0.02)
            elif name.endswith("bias"):
                parameter.zero_()

    def features(
        self,
        ids: Tensor,
        *,
        keep: Tensor | None = None,
        mask: Mask | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Return the vectors below the output layer, (B, T, dim); see ``CausalDecoder``."""
        if cache is not None:
            self._check_room(cache.seen + ids.shape[1])
            cache.begin(ids.shape[1], mask)
            seen, places = None, cache.positions()
        else:
            seen, places = causal() if mask is None else mask, token_positions(ids, keep)
            seen = seen if keep is None else seen & padding(keep)
        h = self.tokens(ids)
        if self.positions is not None:
            h = h + self.positions(places)
        h = self.dropout(h)
        for layer, block in enumerate(self.blocks):
            h = block(h, mask=seen, cache=cache, layer=layer)
        if cache is not None:
            cache.advance()
        return self.norm(h)

    def _check_room(self, tokens: int) -> None:
        if self.positions is not None and tokens > self.context:
            raise InvalidData(
                f"GPT: a sequence must have at most context={self.context} tokens; got {tokens}. "
                "Cut it, or build the network with a longer context."
            )
