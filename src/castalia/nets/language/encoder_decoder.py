"""What networks that read a source and write an answer have in common.

p(y_t | y_<t, x) = softmax(head(decode(y_<t, encode(x)))).  Shapes: B batch, S source, T answer, V
vocabulary, dim width.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

__all__ = ["EncoderDecoder"]


class EncoderDecoder(nn.Module):
    """An encoder of the source and a decoder that looks at it; a subclass gives the three parts."""

    def encode(self, ids: Tensor, *, keep: Tensor | None = None) -> Tensor:  # (B, S)
        """Return a vector for each token of the source, (B, S, dim)."""
        raise NotImplementedError

    def decode(
        self,
        ids: Tensor,
        memory: Tensor,
        *,
        keep: Tensor | None = None,
        memory_keep: Tensor | None = None,
        cache: Any = None,
    ) -> Tensor:  # (B, T), (B, S, dim)
        """Return a vector for each token of the answer, (B, T, dim)."""
        raise NotImplementedError

    def head(self, h: Tensor) -> Tensor:  # (B, T, dim)
        """Return the logits of the next token, (B, T, V)."""
        raise NotImplementedError

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
