"""What causal networks share: logits from vectors, and the cache of a generation.

logits_t = W h_t, where W is the table of the tokens or a layer of its own.
Shapes: B batch, T tokens, V vocabulary, dim width.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from castalia.nn.attention import Cache, Mask

__all__ = ["CausalDecoder"]


class CausalDecoder(nn.Module):
    """Base of networks that predict the next token; a subclass gives ``features``.

    Attributes
    ----------
    vocabulary, context, dim, heads, kv_heads, head_dim
        Sizes.
    tokens
        Table of the tokens.
    blocks
        What the vectors go through.
    output
        The last layer; None: the table.
    """

    vocabulary: int
    context: int
    dim: int
    heads: int
    kv_heads: int
    head_dim: int
    tokens: nn.Embedding
    blocks: nn.ModuleList
    output: nn.Linear | None

    def forward(
        self,
        ids: Tensor,
        *,
        keep: Tensor | None = None,
        mask: Mask | None = None,
        cache: Cache | None = None,
    ) -> Tensor:  # (B, T)
        """Return the logits of the token after each one, (B, T, V); arguments: ``features``."""
        return self.head(self.features(ids, keep=keep, mask=mask, cache=cache))

    def features(
        self,
        ids: Tensor,
        *,
        keep: Tensor | None = None,
        mask: Mask | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Return the vectors below the output layer, (B, T, dim).

        Parameters
        ----------
        ids
            Tokens, (B, T).
        keep
            Which tokens are real, (B, T); None: all. Padding is not seen and has no position.
        mask
            Another rule than the causal one, such as a prefix; joined with ``keep``.
        cache
            Made by ``cache``: what was seen before, so that only new tokens are given.
        """
        raise NotImplementedError

    @property
    def table(self) -> Tensor | None:
        """Weights of the output layer, (V, dim), where it is nothing but a product with them."""
        if self.output is None:
            return self.tokens.weight if type(self.tokens) is nn.Embedding else None
        return self.output.weight if type(self.output) is nn.Linear else None

    def head(self, h: Tensor) -> Tensor:  # (B, T, dim)
        """Return the logits of vectors, (B, T, V)."""
        return F.linear(h, self.tokens.weight) if self.output is None else self.output(h)

    def cache(self, batch: int, length: int, *, keep: Tensor | None = None) -> Cache:
        """Return an empty cache for rows of at most ``length`` tokens.

        Parameters
        ----------
        batch
            Number of rows.
        length
            Tokens of the longest row, prompt included.
        keep
            Which tokens of the prompt are real, (B, P), padded on the left; None: all.
        """
        weight = self.tokens.weight
        return Cache(
            len(self.blocks),
            batch=batch,
            heads=self.kv_heads,
            head_dim=self.head_dim,
            length=length,
            keep=keep,
            device=weight.device,
            dtype=weight.dtype,
        )
