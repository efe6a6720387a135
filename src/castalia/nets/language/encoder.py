"""A transformer encoder that reads a sequence and gives one answer for it, or one a token.

h_0 = W_e[ids] + PE(positions),  h_l = block_l(h_{l-1}),  y = pool(h_L) W + b, where pool is the
mean over the tokens, their sum / sqrt(T), a learnt attention over them, or the first token.
Without blocks and positions it is a bag of words: y = sum_t W_e[ids_t] W / sqrt(T) + b.

Shapes: B batch, T tokens, K outputs.
Reference: 2017, Vaswani et al., Attention is all you need, arXiv 1706.03762 (the encoder).
"""

from __future__ import annotations

from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn.attention import (
    AttentionPooling,
    LearnedPositions,
    SinusoidalPositions,
    TransformerEncoderBlock,
    padding,
    token_positions,
)
from castalia.utils.text import listing

__all__ = ["TransformerEncoder"]

POOLS = ("mean", "sum", "attention", "first", "none")
BAG = 0.1  # spread of the vectors of words that are only summed; large ones drown what is learnt
POSITIONS = ("sinusoidal", "learned", "none")


class TransformerEncoder(nn.Module):
    """Encoder with an output layer on the pooled tokens.

    Parameters
    ----------
    vocabulary
        Number of tokens known.
    outputs
        Number of outputs.
    dim
        Width of the vectors.
    depth
        Number of blocks; 0: the vectors of the tokens are pooled as they are.
    heads
        Attention heads of a block.
    hidden
        Units of the position-wise networks; None: 4 ``dim``.
    context
        The longest sequence; needed by learned positions only.
    positions
        ``"sinusoidal"``, ``"learned"``, or ``"none"``: a bag of tokens.
    pool
        ``"mean"``, ``"sum"`` (over the root of the number of tokens), ``"attention"``, ``"first"``,
        or ``"none"`` for one answer a token.
    dropout
        Probability for embeddings, attention weights and the output of each part.
    activation
        Of the position-wise networks.
    pre_norm
        Whether norms stand before each part, with one more after all blocks.
    pad
        Id of padding, which is never seen where ``keep`` is not given; None: all tokens are real.

    Examples
    --------
    >>> import torch
    >>> net = TransformerEncoder(50, 3, dim=8, depth=1, heads=2)
    >>> net(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3])
    """

    def __init__(
        self,
        vocabulary: int,
        outputs: int,
        *,
        dim: int = 128,
        depth: int = 2,
        heads: int = 4,
        hidden: int | None = None,
        context: int = 512,
        positions: str = "sinusoidal",
        pool: str = "mean",
        dropout: float = 0.0,
        activation: str = "relu",
        pre_norm: bool = False,
        pad: int | None = None,
    ) -> None:
        super().__init__()
        self.pad = pad
        _check("pool", pool, POOLS)
        _check("positions", positions, POSITIONS)
        self.tokens = nn.Embedding(vocabulary, dim)
        if not depth:
            nn.init.normal_(self.tokens.weight, std=BAG)
        self.positions: nn.Module | None = None
        if positions == "learned":
            self.positions = LearnedPositions(context, dim)
        elif positions == "sinusoidal":
            self.positions = SinusoidalPositions(dim)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TransformerEncoderBlock(
                dim,
                heads,
                hidden=hidden,
                activation=activation,
                dropout=dropout,
                pre_norm=pre_norm,
            )
            for _ in range(depth)
        )
        # without blocks the length of a word's vector is its weight, and must stay
        self.norm = nn.LayerNorm(dim) if pre_norm and depth else nn.Identity()
        self.pool = pool
        self.pooling = AttentionPooling(dim) if pool == "attention" else None
        self.output = nn.Linear(dim, outputs)

    def forward(self, ids: Tensor, *, keep: Tensor | None = None) -> Tensor:  # (B, T)
        """Return the outputs, (B, K), or (B, T, K) without pooling.

        Parameters
        ----------
        ids
            Tokens, (B, T).
        keep
            Which tokens are real, (B, T); None: all but ``pad``.
        """
        if keep is None and self.pad is not None:
            keep = ids != self.pad
        return self.output(self.summary(self.features(ids, keep=keep), keep))

    def features(self, ids: Tensor, *, keep: Tensor | None = None) -> Tensor:
        """Return a vector for each token, (B, T, dim)."""
        h = self.tokens(ids)
        if self.positions is not None:
            h = h + self.positions(token_positions(ids, keep))
        h = self.dropout(h)
        mask = None if keep is None else padding(keep)
        for block in self.blocks:
            h = block(h, mask=mask)
        return self.norm(h)

    def summary(self, h: Tensor, keep: Tensor | None = None) -> Tensor:  # (B, T, dim)
        """Return the pooled vectors, (B, dim); padding has no share in them."""
        if self.pool == "none":
            return h
        if self.pool == "first":
            return h[:, 0]
        if self.pooling is not None:
            return self.pooling(h, keep)
        real = h.new_ones(*h.shape[:2], 1) if keep is None else keep.to(h.dtype)[..., None]
        many = real.sum(dim=1).clamp(min=1)  # (B, 1)
        return (h * real).sum(dim=1) / (many.sqrt() if self.pool == "sum" else many)


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidParameter(
            f"TransformerEncoder: `{name}` must be {listing(known)}; got {value!r}."
        )
