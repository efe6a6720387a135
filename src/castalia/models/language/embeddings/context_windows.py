"""Which words stand in whose window, for a whole corpus at once.

A corpus is one long row of words, cut into blocks of C neighbouring centres. With the words around
them a block sees E = C + 2W words, and which of them are in the window of which centre is a mask
of shape (C, E). So all pairs of a block are one matrix product. Shapes: N words, b blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Windows", "keep_probability", "make_windows"]


def keep_probability(counts: Tensor, subsample: float) -> Tensor:
    """Return how likely each word is kept, (V,): min(1, sqrt(t / f) + t / f) at frequency f.

    This is what the authors' program does; the paper has sqrt(t / f) alone. Nothing is dropped
    with t = 0.
    """
    if not subsample:
        return torch.ones_like(counts, dtype=torch.float64)
    ratio = subsample * counts.sum() / counts.double()
    return (ratio.sqrt() + ratio).clamp_(max=1)


@dataclass(frozen=True)
class Windows:
    """A corpus in blocks, as one pass sees it.

    Attributes
    ----------
    words : Tensor of int64, (W + blocks C + W,)
        The words that were kept, with padding at both ends.
    left, right : Tensor of int64, (blocks, C)
        How many words each centre reaches to either side; 0 for padding.
    offset : Tensor of int64, (C, E)
        From each centre to each word of its block.
    """

    words: Tensor
    left: Tensor
    right: Tensor
    offset: Tensor

    def __len__(self) -> int:
        return len(self.left)

    @property
    def window(self) -> int:
        """W, the longest reach."""
        return (self.offset.shape[1] - self.offset.shape[0]) // 2

    def around(self, blocks: Tensor) -> Tensor:
        """Return the words of blocks, (b, E); the centres are ``[:, W : W + C]``."""
        width, seen = self.offset.shape
        at = torch.arange(seen, device=self.words.device)
        return self.words[blocks[:, None] * width + at]

    def pairs(self, blocks: Tensor) -> Tensor:
        """Return which words are in whose window, (b, C, E), as ones and zeros."""
        left, right = self.left[blocks][..., None], self.right[blocks][..., None]
        inside = (self.offset >= -left) & (self.offset <= right) & (self.offset != 0)
        return inside.float()


def make_windows(
    ids: Tensor,
    text: Tensor,
    keep: Tensor,
    *,
    window: int,
    dynamic: bool,
    width: int,
    generator: torch.Generator,
) -> Windows:
    """Drop frequent words by chance, draw the reach of each window, cut into blocks.

    Parameters
    ----------
    ids, text
        The number of each word, and of the text it stands in, (N,); windows end at texts.
    keep
        How likely each word is kept, (V,).
    window
        W, the farthest distance.
    dynamic
        Whether a window reaches R words, R drawn from 1 … W, instead of always W.
    width
        C, centres in a block.
    generator
        Draws.
    """
    device = ids.device
    chance = torch.rand(len(ids), generator=generator, device=device, dtype=torch.float64)
    kept = chance < keep[ids]
    ids, text = ids[kept], text[kept]
    low = 1 if dynamic else window
    reach = torch.randint(low, window + 1, (len(ids),), generator=generator, device=device)
    sizes = text.unique_consecutive(return_counts=True)[1]
    ends = sizes.cumsum(0)
    at = torch.arange(len(ids), device=device)
    left = torch.minimum(reach, at - torch.repeat_interleave(ends - sizes, sizes))
    right = torch.minimum(reach, torch.repeat_interleave(ends, sizes) - 1 - at)
    missing = -len(ids) % width
    offset = torch.arange(width + 2 * window) - window - torch.arange(width)[:, None]
    return Windows(
        torch.nn.functional.pad(ids, (window, window + missing)),
        torch.nn.functional.pad(left, (0, missing)).view(-1, width),
        torch.nn.functional.pad(right, (0, missing)).view(-1, width),
        offset.to(device),
    )
