"""What a network reads at a step: numbers, categories looked up, words spelt.

A step arrives as numbers, then codes of categories, then codes of the letters of a word. Letters
are read by a small LSTM both ways, once for each different word of a batch.
Shapes: B batch, T time, W letters, D width.
Reference: 2015, Ling et al., Finding function in form: compositional character models, arXiv
1508.02096.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from castalia.nn.layers.category_embeddings import embedding_width

__all__ = ["StepEmbedding", "WordSpelling"]

SPELT = 32  # width of a letter


class WordSpelling(nn.Module):
    """Letters of words, (N, W) of codes with 0 after the end, to vectors (N, D)."""

    def __init__(self, alphabet: int, outputs: int) -> None:
        super().__init__()
        self.table = nn.Embedding(alphabet, SPELT, padding_idx=0)
        self.rnn = nn.LSTM(SPELT, outputs // 2, batch_first=True, bidirectional=True)
        self.outputs = 2 * (outputs // 2)

    def forward(self, codes: Tensor) -> Tensor:  # (N, W)
        """Return a vector for each word."""
        words, place = codes.unique(dim=0, return_inverse=True)
        lengths = (words > 0).sum(dim=1).clamp_min(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(
            self.table(words), lengths, batch_first=True, enforce_sorted=False
        )
        _, (h, _) = self.rnn(packed)  # (2, words, D / 2)
        return torch.cat([h[0], h[1]], dim=1)[place]


class StepEmbedding(nn.Module):
    """Numbers passed on, categories and letters embedded, all side by side.

    Parameters
    ----------
    inputs
        Width of a step as it arrives: numbers, categories and letters.
    categories
        Number of codes of each category.
    dim
        Width of the embedding of each category, and of a spelt word; None: by the number of codes.
    letters, alphabet
        Letters of a word, and how many codes they have.

    Attributes
    ----------
    width
        Width of the output.

    Examples
    --------
    >>> embed = StepEmbedding(2, [4])
    >>> embed(torch.tensor([[[0.5, 3.0]]])).shape
    torch.Size([1, 1, 4])
    """

    def __init__(
        self,
        inputs: int,
        categories: Sequence[int] = (),
        *,
        dim: int | None = None,
        letters: int = 0,
        alphabet: int = 2,
    ) -> None:
        super().__init__()
        self.numeric, self.letters = inputs - len(categories) - letters, letters
        widths = [dim or embedding_width(size) for size in categories]
        pairs = zip(categories, widths, strict=True)
        self.tables = nn.ModuleList(nn.Embedding(size, width) for size, width in pairs)
        self.spelling = WordSpelling(alphabet, dim or 64) if letters else None
        spelt = self.spelling.outputs if self.spelling is not None else 0
        self.width = self.numeric + sum(widths) + spelt

    def forward(self, x: Tensor) -> Tensor:  # (B, T, inputs)
        """Return steps as vectors, (B, T, width)."""
        if not len(self.tables):
            return x
        codes = x[..., self.numeric :].long()
        parts = [x[..., : self.numeric]]
        parts += [table(codes[..., i]) for i, table in enumerate(self.tables)]
        if self.spelling is not None:
            words = codes[..., len(self.tables) :].flatten(0, 1)  # (B T, W)
            parts.append(self.spelling(words).unflatten(0, x.shape[:2]))
        return torch.cat(parts, dim=-1)
