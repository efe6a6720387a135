"""The adapter of recurrent language models: blocks in the order of parallel streams.

Each batch holds the next block of every stream, so that a state can be carried from batch to batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.batches import Samples
from castalia.data.text.language_adapter import LanguageAdapter
from castalia.data.text.token_corpus import CorpusRows
from castalia.data.text.token_rows import TokenRows, cut_blocks

__all__ = ["StreamAdapter", "as_streams"]

VALIDATED = 16  # contexts of a validation row, which begins at the state zero


class StreamAdapter(LanguageAdapter):
    """Texts as parallel streams of blocks; what does not fill a block of every stream is left out.

    Parameters
    ----------
    tokenizer, context
        As for ``LanguageAdapter``.
    parallel
        How many streams.
    """

    def __init__(self, tokenizer: Any = None, *, context: int = 256, parallel: int = 1) -> None:
        super().__init__(tokenizer, context=context, rest=False)
        self.parallel = parallel

    def split(
        self,
        samples: Samples,
        validation: float | Samples,
        seed: int,
        labels: np.ndarray | None = None,
    ) -> tuple[Samples, Samples]:
        """Hold out the end of the texts in long rows; order the rest as parallel streams."""
        kept, held = super().split(samples, validation, seed, labels)
        return as_streams(kept, self.parallel), _joined(held, VALIDATED * self.context)


def as_streams(samples: Samples, streams: int) -> Samples:
    """Return blocks in the order of parallel streams: the first of each, then the second of each.

    To the next tokens, y adds the number of a block's stream and whether it begins it, (N, T + 2);
    blocks of a corpus, which hold their next tokens themselves, have these two only, (N, 2).

    Parameters
    ----------
    samples
        The first blocks of a text, which follow each other.
    streams
        How many; fewer where there are fewer blocks.
    """
    streams = min(streams, len(samples))
    steps = len(samples) // streams
    places = torch.arange(streams * steps).view(streams, steps)
    y: Any = samples.y
    marks = torch.zeros(len(y), 2, dtype=y.dtype)
    marks[places, 0] = torch.arange(streams, dtype=y.dtype)[:, None]
    marks[places[:, 0], 1] = 1
    y = torch.cat([y, marks], dim=1) if y.ndim == 2 else marks
    return replace(samples, y=y, rows=places.T.flatten(), ordered=True)


def _joined(samples: Samples, length: int) -> Samples:
    """Return blocks that follow each other as fewer, longer ones, each its own stream."""
    if not len(samples):
        return samples
    if isinstance(samples.x, CorpusRows):
        rows = samples.x.behind(0 if samples.rows is None else int(samples.rows[0]), length)
        return Samples(rows, torch.zeros(len(rows), 2, dtype=torch.long))
    x, y = _taken(samples)
    stream = torch.cat([x.flatten(), y[-1, -1:]])
    blocks = torch.from_numpy(cut_blocks(stream.numpy(), length))
    marks = blocks.new_zeros(len(blocks), 2)
    return Samples(TokenRows(blocks[:, :-1]), torch.cat([blocks[:, 1:], marks], dim=1))


def _taken(samples: Samples) -> tuple[Tensor, Tensor]:
    """Return the inputs and targets of samples."""
    found: Any = samples
    x, y = found.x.x, found.y
    return (x, y) if samples.rows is None else (x[samples.rows], y[samples.rows])
