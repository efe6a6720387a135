"""What networks that read a source and write an answer have in common.

p(y_t | y_<t, x) = softmax(head(decode(y_<t, encode(x)))).  Shapes: B batch, S source, T answer, V
vocabulary, dim width.
"""

from __future__ import annotations

from torch import Tensor, nn

from castalia.nn.attention import Cache, causal, padding

__all__ = ["EncoderDecoder"]


class EncoderDecoder(nn.Module):
    """An encoder of the source and a decoder that attends to it.

    A subclass gives ``encode``, ``head``, and the decoder's blocks with what is around them.

    Attributes
    ----------
    tokens
        The table of the tokens.
    decoder
        Blocks of self-attention, attention to the source and a position-wise network.
    heads, head_dim
        Of an attention.
    """

    tokens: nn.Embedding
    decoder: nn.ModuleList
    heads: int
    head_dim: int

    def encode(self, ids: Tensor, *, keep: Tensor | None = None) -> Tensor:  # (B, S)
        """Return a vector for each token of the source, (B, S, dim)."""
        raise NotImplementedError

    def head(self, h: Tensor) -> Tensor:  # (B, T, dim)
        """Return the logits of the next token, (B, T, V)."""
        raise NotImplementedError

    def _before(
        self, ids: Tensor, keep: Tensor | None, cache: Cache | None
    ) -> tuple[Tensor, Tensor | None]:  # (B, T)
        """Return the embedded answer, (B, T, dim), and what is added to its attention scores."""
        raise NotImplementedError

    def _after(self, h: Tensor) -> Tensor:  # (B, T, dim)
        """Return what becomes of the last block's vectors, (B, T, dim)."""
        return h

    def forward(
        self,
        ids: Tensor,
        decoder_ids: Tensor,
        *,
        keep: Tensor | None = None,
        decoder_keep: Tensor | None = None,
    ) -> Tensor:  # (B, S), (B, T)
        """Return the logits of the token after each of ``decoder_ids``, (B, T, V).

        Parameters
        ----------
        ids, keep
            Tokens of the source, (B, S), and which are real.
        decoder_ids, decoder_keep
            Tokens of the answer so far, the first being the start, and which are real.
        """
        memory = self.encode(ids, keep=keep)
        h = self.decode(decoder_ids, memory, keep=decoder_keep, memory_keep=keep)
        return self.head(h)

    def decode(
        self,
        ids: Tensor,
        memory: Tensor,
        *,
        keep: Tensor | None = None,
        memory_keep: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:  # (B, T), (B, S, dim)
        """Return the vectors below the output layer, (B, T, dim).

        Parameters
        ----------
        ids, keep
            Tokens of the answer, or the new ones with a cache; which are real.
        memory, memory_keep
            What ``encode`` returned, and which tokens of the source are real.
        cache
            Made by ``cache``: what was seen before.
        """
        if cache is not None:
            cache.begin(ids.shape[1])
        h, bias = self._before(ids, keep, cache)
        mask = causal() if keep is None else causal() & padding(keep)
        seen = None if memory_keep is None else padding(memory_keep)
        for layer, block in enumerate(self.decoder):
            h = block(h, memory, mask=mask, memory_mask=seen, bias=bias, cache=cache, layer=layer)
        if cache is not None:
            cache.advance()
        return self._after(h)

    def cache(self, batch: int, length: int, *, keep: Tensor | None = None) -> Cache:
        """Return an empty cache for answers of at most ``length`` tokens; see ``GPT.cache``."""
        weight = self.tokens.weight
        return Cache(
            len(self.decoder),
            batch=batch,
            heads=self.heads,
            head_dim=self.head_dim,
            length=length,
            keep=keep,
            device=weight.device,
            dtype=weight.dtype,
        )
