"""BERT: a transformer encoder that fills in masked tokens and judges pairs of sentences.

h_0 = norm(W_e[ids] + W_s[segments] + W_p[positions]),  h_l = block_l(h_{l-1})
masked tokens   logits = norm(g(h W + b)) W_e' + c
next sentence   logits = tanh(h_[first] W + b) U + d

Shapes: B batch, T tokens, V vocabulary.
References: 2019, Devlin et al., BERT, arXiv 1810.04805; 2019, Liu et al., RoBERTa, arXiv
1907.11692.

| published size | V | dim | depth | heads | parameters up to the pooler |
|---|---|---|---|---|---|
| BERT base | 30,522 | 768 | 12 | 12 | 109,482,240 |
| BERT large | 30,522 | 1024 | 24 | 16 | 335,141,888 |
| RoBERTa base | 50,265 | 768 | 12 | 12 | 124,645,632 |
| RoBERTa large | 50,265 | 1024 | 24 | 16 | 355,359,744 |
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidData, InvalidParameter
from castalia.nn.attention import (
    LearnedPositions,
    TransformerEncoderBlock,
    padding,
    token_positions,
)
from castalia.nn.attention.transformer_blocks import block_activation

__all__ = ["BERT"]

POOLS = {"tanh": torch.tanh, "relu": torch.relu}


class MaskedHead(nn.Module):
    """Scores of the tokens at each place, by the table of the tokens."""

    def __init__(self, vocabulary: int, dim: int, eps: float, activation: str) -> None:
        super().__init__()
        self.dense = nn.Linear(dim, dim)
        self.activation = block_activation(activation)
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, h: Tensor, table: Tensor) -> Tensor:
        return F.linear(self.norm(self.activation(self.dense(h))), table, self.bias)  # (B, T, V)


class NoSegments(nn.Module):
    """What stands in the place of a table of segments where there are none."""

    num_embeddings = 0

    def forward(self, segments: Tensor) -> Tensor:
        return torch.zeros((), device=segments.device)


class BERT(nn.Module):
    """Bidirectional encoder with segments, a pooler and two heads.

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
    segments
        Kinds of sentences: 2 for pairs; DistilBERT knows none, 0.
    dropout
        Probability for embeddings, attention weights and the output of each part.
    activation
        Of the position-wise networks.
    masked_activation
        Of the head for masked tokens; None: ``activation``.
    offset
        Rows of the position table before position zero; RoBERTa has 2, one more than the id of
        its padding.
    pooler
        Whether there is a layer on the first token.
    pooler_activation
        Of that layer: ``"tanh"``, or DistilBERT's ``"relu"``.
    masked
        Whether there is a head for masked tokens.
    next_sentence
        Whether there is a head for pairs of sentences; it needs the pooler.
    eps
        Smallest variance of the norms.

    Examples
    --------
    >>> net = BERT(50, context=16, dim=8, depth=2, heads=2)
    >>> net(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 50])
    >>> net.pool(net.features(torch.tensor([[3, 1, 4]]))).shape
    torch.Size([1, 8])
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        context: int = 512,
        dim: int = 768,
        depth: int = 12,
        heads: int = 12,
        hidden: int | None = None,
        segments: int = 2,
        dropout: float = 0.0,
        activation: str = "gelu",
        masked_activation: str | None = None,
        offset: int = 0,
        pooler: bool = True,
        pooler_activation: str = "tanh",
        masked: bool = True,
        next_sentence: bool = True,
        eps: float = 1e-12,
    ) -> None:
        super().__init__()
        if next_sentence and not pooler:
            raise InvalidParameter(
                "BERT: `pooler` must be True with next_sentence=True; got False."
            )
        self.vocabulary, self.context, self.dim, self.heads = vocabulary, context, dim, heads
        self.activation, self.hidden, self.eps = activation, hidden or 4 * dim, eps
        self.masked_activation, self.offset = masked_activation or activation, offset
        self.tokens = nn.Embedding(vocabulary, dim)
        self.segments: nn.Embedding | NoSegments = NoSegments()
        if segments:
            self.segments = nn.Embedding(segments, dim)
        self.positions = LearnedPositions(context + offset, dim)
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            TransformerEncoderBlock(
                dim, heads, hidden=hidden, activation=activation, dropout=dropout, eps=eps
            )
            for _ in range(depth)
        )
        self.pooler = nn.Linear(dim, dim) if pooler else None
        self.pooler_activation = pooler_activation
        head = (vocabulary, dim, eps, self.masked_activation)
        self.masked = MaskedHead(*head) if masked else None
        self.next_sentence = nn.Linear(dim, 2) if next_sentence else None
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Draw weights from N(0, 0.02^2); biases are zero."""
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                parameter.normal_(0, 0.02)
            elif name.endswith("bias"):
                parameter.zero_()

    def forward(
        self, ids: Tensor, segments: Tensor | None = None, *, keep: Tensor | None = None
    ) -> Tensor:  # (B, T)
        """Return the logits of the masked tokens, (B, T, V); arguments as for ``features``."""
        return self.head(self.features(ids, segments, keep=keep))

    def features(
        self, ids: Tensor, segments: Tensor | None = None, *, keep: Tensor | None = None
    ) -> Tensor:
        """Return a vector for each token, (B, T, dim): the last of ``layers``.

        Parameters
        ----------
        ids
            Tokens, (B, T).
        segments
            Which sentence each belongs to, (B, T); None: the first.
        keep
            Which tokens are real, (B, T); None: all. Padding is not seen and has no position.
        """
        return self.layers(ids, segments, keep=keep)[-1]

    def layers(
        self, ids: Tensor, segments: Tensor | None = None, *, keep: Tensor | None = None
    ) -> list[Tensor]:
        """Return the embeddings and the outputs of each block, depth + 1 times (B, T, dim)."""
        h = self.dropout(self.norm(self.embed(ids, segments, keep=keep)))
        mask = None if keep is None else padding(keep)
        found = [h]
        for block in self.blocks:
            found.append(block(found[-1], mask=mask))
        return found

    def embed(
        self, ids: Tensor, segments: Tensor | None = None, *, keep: Tensor | None = None
    ) -> Tensor:
        """Return the sum of the vectors of token, segment and position, (B, T, dim)."""
        if ids.shape[1] > self.context:
            raise InvalidData(
                f"BERT: a sequence must have at most context={self.context} tokens; got "
                f"{ids.shape[1]}. Cut it, or build the network with a longer context."
            )
        places = token_positions(ids, keep)
        kinds = torch.zeros_like(ids) if segments is None else segments
        return self.tokens(ids) + self.segments(kinds) + self.positions(places + self.offset)

    def head(self, h: Tensor) -> Tensor:  # (B, T, dim)
        """Return the logits of the masked tokens, (B, T, V)."""
        if self.masked is None:
            raise InvalidParameter("BERT: `masked` must be True to score tokens; got False.")
        return self.masked(h, self.tokens.weight)

    def pool(self, h: Tensor) -> Tensor:  # (B, T, dim)
        """Return the layer on the first token, (B, dim); without a pooler, that token."""
        first = h[:, 0]
        if self.pooler is None:
            return first
        return POOLS[self.pooler_activation](self.pooler(first))

    def judge(self, h: Tensor) -> Tensor:  # (B, T, dim)
        """Return logits of whether the second sentence follows (0) or not (1), (B, 2)."""
        if self.next_sentence is None:
            raise InvalidParameter("BERT: `next_sentence` must be True to judge pairs; got False.")
        return self.next_sentence(self.pool(h))
