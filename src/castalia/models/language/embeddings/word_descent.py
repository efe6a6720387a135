"""Stochastic gradient descent on tables of word vectors, many blocks of windows at a time.

Only the rows that a batch names are read and written. All of a batch is computed from the same
tables and the moves of a row are summed, as if the pairs had come one by one; where a row is named
so often that the sum would overshoot, its step is shortened. The pieces of a batch go to torch's
threads; the result does not depend on how many there are.
Reference: 2016, Ji, Satish, Li, Dubey, Parallelizing word2vec in shared and distributed memory,
arXiv 1604.04661 (noise words shared, so that the work becomes matrix products).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from castalia.errors import Diverged, InvalidData
from castalia.models.language.embeddings.context_windows import (
    Windows,
    keep_probability,
    make_windows,
)
from castalia.models.language.embeddings.vector_rows import move_rows
from castalia.models.language.embeddings.word_heads import Head, Step
from castalia.utils.devices import piecewise

__all__ = ["InputRows", "Schedule", "WordRows", "train_vectors"]

_Found = tuple[Tensor, Step, Tensor | None]

LIMIT = 2.0  # the sum of the steps that a row takes in one batch; from 5 on they overshoot
STEPS = 64  # of a pass, at least, where there are as many blocks
TOLD = 16  # the loss is computed in every so manieth batch


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
    epochs: int
    batch_size: int
    lr: float

    def lr_at(self, progress: float) -> float:
        """Return the learning rate, falling linearly to a ten-thousandth."""
        return self.lr * max(1 - progress, 1e-4)


def train_vectors(
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
) -> np.ndarray:
    """Train the tables in place; return the mean loss of a pair in each epoch.

    Parameters
    ----------
    inputs, head
        What is trained.
    ids, text
        The number of each word of the corpus, and of its text, (N,).
    counts
        How often each word occurs, (V,).
    schedule
        How long and how fast.
    skip_gram
        Whether a word predicts those around it, instead of their mean predicting the word.
    generator
        Draws.
    owner
        Whom errors name.
    """
    keep = keep_probability(counts, schedule.subsample)
    seen = counts * keep / (counts * keep).sum()
    reach = (schedule.window + 1) / 2 if schedule.dynamic else schedule.window
    kept = float((counts * keep).sum())
    batch_size = int(max(min(schedule.batch_size, kept / STEPS), head.width))
    schedule = replace(schedule, batch_size=batch_size)
    named = batch_size * 2 * reach  # pairs in a batch
    predicted = named if skip_gram else batch_size
    most = (
        (LIMIT / (named * head.trials * inputs.expected(seen))).float(),
        (LIMIT / (predicted * head.expected(seen))).float(),
    )
    losses = []
    for epoch in range(schedule.epochs):
        windows = make_windows(
            ids,
            text,
            keep,
            window=schedule.window,
            dynamic=schedule.dynamic,
            width=head.width,
            generator=generator,
        )
        if not len(windows):
            raise InvalidData(
                f"{owner}: subsampling must leave some words to learn from; with `subsample`="
                f"{schedule.subsample:g} all {len(ids)} were dropped in epoch {epoch + 1}. Give "
                "more text, or set `subsample=0`."
            )
        work = _Pass(inputs, head, windows, skip_gram)
        losses.append(work.run(schedule, epoch, most, generator))
        if not np.isfinite(losses[-1]):
            raise Diverged(
                f"{owner}: the loss must stay finite; got {losses[-1]:g} in epoch "
                f"{epoch + 1} with lr={schedule.lr:g}. Lower `lr`.",
                step=0,
                epoch=epoch + 1,
                term="loss",
                lr=schedule.lr,
            )
    return np.array(losses)


@dataclass(frozen=True)
class _Pass:
    """One pass over the corpus."""

    inputs: InputRows
    head: Head
    windows: Windows
    skip_gram: bool

    def run(
        self,
        schedule: Schedule,
        epoch: int,
        most: tuple[Tensor, Tensor],
        generator: torch.Generator,
    ) -> float:
        """Go through the blocks in random order; return the mean loss of a pair."""
        device = self.windows.words.device
        order = torch.randperm(len(self.windows), generator=generator, device=device)
        batches = order.split(max(schedule.batch_size // self.head.width, 1))
        threads = torch.get_num_threads() if device.type == "cpu" else 1
        total, pairs = torch.zeros((), device=device), torch.zeros((), device=device)
        with piecewise(device) as spread:
            for number, blocks in enumerate(batches):
                progress = (epoch + number / len(batches)) / schedule.epochs
                drawn = self.head.draw(len(blocks), generator)
                told = number % TOLD == 0
                pieces = blocks.chunk(threads)
                noise = [None] * len(pieces) if drawn is None else drawn.chunk(threads)
                found = list(spread(self._step, pieces, noise, [told] * len(pieces)))
                lr = schedule.lr_at(progress)
                list(spread(lambda act: act(), self._moves(found, lr, most)))
                for _, step, count in found if told else ():
                    total += step.loss
                    pairs += count
        return float(total / pairs.clamp(min=1))

    def _step(self, blocks: Tensor, drawn: Tensor | None, told: bool) -> _Found:
        """Return the words whose vectors move, the moves, and how many pairs there were."""
        width, reach = self.head.width, self.windows.window
        around, pairs = self.windows.around(blocks), self.windows.pairs(blocks)
        centres = around[:, reach : reach + width]
        named = centres if self.skip_gram else around
        vectors = self.inputs.gather(named.reshape(-1)).view(*named.shape, self.inputs.dim)
        if self.skip_gram:
            step = self.head.step(vectors, around, pairs, drawn, told)
            return named.reshape(-1), step, pairs.sum() if told else None
        sizes = pairs.sum(dim=2, keepdim=True)
        hit = torch.diag_embed((sizes[..., 0] > 0).float())  # (b, C, C)
        step = self.head.step(pairs @ vectors / sizes.clamp(min=1), centres, hit, drawn, told)
        # As in word2vec, each word of the window moves by the whole gradient of their mean.
        moves = pairs.transpose(1, 2) @ step.hidden
        return named.reshape(-1), step._replace(hidden=moves), hit.sum() if told else None

    def _moves(
        self, found: list[_Found], lr: float, most: tuple[Tensor, Tensor]
    ) -> list[Callable[[], None]]:
        """Return what is left to do: moving the rows of one table and of the other."""

        def move_inputs() -> None:
            for words, step, _ in found:
                self.inputs.add(words, step.hidden.reshape(-1, self.inputs.dim), lr, most[0])

        def move_outputs() -> None:
            for _, step, _ in found:
                move_rows(self.head.table, step.places, step.rows, lr, most[1])

        return [move_inputs, move_outputs]
