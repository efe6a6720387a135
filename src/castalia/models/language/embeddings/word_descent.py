"""Stochastic gradient descent on tables of word vectors, many blocks of windows at a time.

Only the rows that a batch names are read and written. All of a batch is computed from the same
tables and the moves of a row are summed, as if the pairs had come one by one; where a row is named
so often that the sum would overshoot, its step is shortened. The pieces of a batch go to torch's
threads; the result does not depend on how many there are.
Reference: 2016, Ji, Satish, Li, Dubey, Parallelizing word2vec in shared and distributed memory,
arXiv 1604.04661 (noise words shared, so that the work becomes matrix products).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from castalia.errors import InvalidData
from castalia.models.language.embeddings.context_windows import (
    keep_probability,
    make_windows,
)
from castalia.models.language.embeddings.epoch_runner import Tables
from castalia.models.language.embeddings.vector_rows import move_rows
from castalia.models.language.embeddings.word_heads import Head, Step
from castalia.utils.devices import piecewise

__all__ = ["InputRows", "NeighbourPasses", "Schedule", "WordRows"]

_Found = tuple[Tensor, Step, Tensor | None]

LIMIT = 2.0  # the sum of the steps that a row takes in one batch; from 5 on they overshoot
STEPS = 64  # of a pass, at least, where there are as many blocks
LOSS_EVERY = 16  # batches: the loss is computed in one of so many


class InputRows(Protocol):
    """The input vectors of words."""

    @property
    def table(self) -> Tensor:
        """What is trained, (rows, D)."""

    @property
    def dim(self) -> int:
        """D."""

    def expected(self, p: Tensor) -> Tensor:
        """Return how often each row is named for one word, words being seen with p, (V,)."""

    def gather(self, words: Tensor) -> Tensor:
        """Return the vectors of words, (n, D)."""

    def add(self, words: Tensor, moves: Tensor, lr: float, most: Tensor) -> None:
        """Move the vectors of words by moves, (n, D), times the smaller of lr and most."""


@dataclass(frozen=True)
class WordRows:
    """One vector a word."""

    table: Tensor

    @property
    def dim(self) -> int:
        """D."""
        return self.table.shape[1]

    def expected(self, p: Tensor) -> Tensor:
        """Once for each word."""
        return p

    def gather(self, words: Tensor) -> Tensor:
        """Look up."""
        return self.table.index_select(0, words)

    def add(self, words: Tensor, moves: Tensor, lr: float, most: Tensor) -> None:
        """Add."""
        move_rows(self.table, words, moves, lr, most)


@dataclass(frozen=True)
class Schedule:
    """How long and how fast; see ``Word2Vec``."""

    window: int
    dynamic: bool
    subsample: float
    batch_size: int
    lr: float


class NeighbourPasses:
    """Passes over a corpus in which words predict their neighbours; see ``EpochRunner``.

    Parameters
    ----------
    inputs, head
        What is trained, in place.
    ids, text
        The number of each word of the corpus, and of its text, (N,).
    counts
        How often each word occurs, (V,).
    schedule
        How the corpus is read, and how fast.
    skip_gram
        Whether a word predicts those around it, instead of their mean predicting the word.
    generator
        Draws.
    owner
        Whom errors name.
    """

    def __init__(
        self,
        inputs: InputRows,
        head: Head,
        ids: Tensor,
        text: Tensor,
        counts: Tensor,
        schedule: Schedule,
        *,
        skip_gram: bool,
        generator: torch.Generator,
        owner: str,
    ) -> None:
        self.inputs, self.head, self.ids, self.text = inputs, head, ids, text
        self.schedule, self.skip_gram, self.random = schedule, skip_gram, generator
        self.owner = owner
        self.tables = Tables({"inputs": inputs.table, "outputs": head.table})
        self.keep = keep_probability(counts, schedule.subsample)
        kept = counts * self.keep
        self.batch_size = int(max(min(schedule.batch_size, float(kept.sum()) / STEPS), head.width))
        reach = (schedule.window + 1) / 2 if schedule.dynamic else schedule.window
        named = self.batch_size * 2 * reach  # pairs in a batch
        predicted = named if skip_gram else self.batch_size
        seen = kept / kept.sum()
        self.most = (
            (LIMIT / (named * head.trials * inputs.expected(seen))).float(),
            (LIMIT / (predicted * head.expected(seen))).float(),
        )

    def rate(self, progress: float) -> float:
        """Return the learning rate, falling linearly to a ten-thousandth."""
        return self.schedule.lr * max(1 - progress, 1e-4)

    def loss(self, seen: Tensor) -> float:
        """Return the mean loss of a pair."""
        return float(seen[0] / seen[1].clamp(min=1))

    @contextmanager
    def batches(self) -> Iterator[Sequence[Tensor]]:
        """Drop words, draw windows, and yield blocks of them in random order."""
        asked, device = self.schedule, self.ids.device
        self.windows = make_windows(
            self.ids,
            self.text,
            self.keep,
            window=asked.window,
            dynamic=asked.dynamic,
            width=self.head.width,
            generator=self.random,
        )
        if not len(self.windows):
            raise InvalidData(
                f"{self.owner}: subsampling must leave some words to learn from; with `subsample`="
                f"{asked.subsample:g} all {len(self.ids)} were dropped. Give more text, or set "
                "`subsample=0`."
            )
        order = torch.randperm(len(self.windows), generator=self.random, device=device)
        self.threads = torch.get_num_threads() if device.type == "cpu" else 1
        with piecewise(device) as self.spread:
            yield order.split(max(self.batch_size // self.head.width, 1))

    def step(self, blocks: Tensor, number: int, lr: float, seen: Tensor) -> Tensor | None:
        """Compute the moves of a batch piece by piece, then move both tables."""
        drawn = self.head.draw(len(blocks), self.random)
        with_loss = number % LOSS_EVERY == 0
        pieces = blocks.chunk(self.threads)
        noise: Any = [None] * len(pieces) if drawn is None else drawn.chunk(self.threads)
        found = list(self.spread(self._moves, pieces, noise, [with_loss] * len(pieces)))
        list(self.spread(lambda act: act(), self._writes(found, lr)))
        if not with_loss:
            return None
        for _, step, pairs in found:
            seen[0] += step.loss
            seen[1] += pairs
        return sum(step.loss for _, step, _ in found) / sum(n for _, _, n in found).clamp(min=1)

    def _moves(self, blocks: Tensor, drawn: Tensor | None, with_loss: bool) -> _Found:
        """Return the words whose vectors move, the moves, and how many pairs there were."""
        width, reach = self.head.width, self.windows.window
        around, pairs = self.windows.around(blocks), self.windows.pairs(blocks)
        centres = around[:, reach : reach + width]
        named = centres if self.skip_gram else around
        vectors = self.inputs.gather(named.reshape(-1)).view(*named.shape, self.inputs.dim)
        if self.skip_gram:
            step = self.head.step(vectors, around, pairs, drawn, with_loss)
            return named.reshape(-1), step, pairs.sum() if with_loss else None
        sizes = pairs.sum(dim=2, keepdim=True)
        hit = torch.diag_embed((sizes[..., 0] > 0).float())  # (b, C, C)
        step = self.head.step(pairs @ vectors / sizes.clamp(min=1), centres, hit, drawn, with_loss)
        # As in word2vec, each word of the window moves by the whole gradient of their mean.
        moves = pairs.transpose(1, 2) @ step.hidden
        return named.reshape(-1), step._replace(hidden=moves), hit.sum() if with_loss else None

    def _writes(self, found: list[_Found], lr: float) -> list[Callable[[], None]]:
        """Return what is left to do: moving the rows of one table and of the other."""
        most_in, most_out = self.most

        def move_inputs() -> None:
            for words, step, _ in found:
                self.inputs.add(words, step.hidden.reshape(-1, self.inputs.dim), lr, most_in)

        def move_outputs() -> None:
            for _, step, _ in found:
                move_rows(self.head.table, step.places, step.rows, lr, most_out)

        return [move_inputs, move_outputs]
