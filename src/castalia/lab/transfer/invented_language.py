"""An invented language of four topics, its objectives and its tasks, as pairs of token ids.

A sentence has eight words, three quarters of one topic. What a word belongs to can be learnt from
sentences alone; the tasks then ask for the topic, whether two halves share it, and which half has
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from castalia.objectives import PrefixLM, SpanCorruption
from castalia.objectives.denoising_loss import mask_some
from castalia.objectives.tokens import compact

__all__ = ["OBJECTIVES", "TASKS", "VOCABULARY", "Pairs", "task", "unlabelled"]

PAD, END, MASK = 0, 1, 2
SENTINELS = (3, 4, 5)
TOPICS, WORDS, LENGTH = 4, 16, 8
LABELS = range(6, 6 + TOPICS)  # a word for each topic
YES, NO, FIRST, SECOND = range(10, 14)
PREFIXES = {"topic": 14, "same": 15, "which": 16}
FIRST_WORD = 17
VOCABULARY = FIRST_WORD + TOPICS * WORDS
WIDTH = LENGTH + 3  # of every source and answer, so that no arm has an easier shape


class Pairs(NamedTuple):
    """Texts and their answers as ids, (n, WIDTH) each, and the answers to choose among."""

    sources: Tensor
    answers: Tensor
    candidates: tuple[int, ...] = ()


def _sentences(topics: Tensor, length: int, source: torch.Generator) -> Tensor:
    """Draw words, (n, length), three quarters of each sentence from its topic."""
    shape = (len(topics), length)
    own = torch.rand(shape, generator=source) < 0.75
    other = torch.randint(TOPICS, shape, generator=source)
    drawn = torch.where(own, topics[:, None], other)
    return FIRST_WORD + WORDS * drawn + torch.randint(WORDS, shape, generator=source)


def _wide(ids: Tensor) -> Tensor:
    """Return rows ended and padded to one width."""
    ended = torch.cat([ids, ids.new_full((len(ids), 1), END)], dim=1)
    return compact(ended, ended != PAD, PAD, WIDTH)


def _words(*columns: Tensor) -> Tensor:
    return torch.cat([c if c.ndim == 2 else c[:, None] for c in columns], dim=1)


def _language_model(ids: Tensor, source: torch.Generator) -> tuple[Tensor, Tensor]:
    return ids[:, :0], ids


def _prefix_lm(ids: Tensor, source: torch.Generator) -> tuple[Tensor, Tensor]:
    cuts = PrefixLM(pad=PAD).cuts(ids, source)[:, None]
    before = torch.arange(ids.shape[1]) < cuts
    return torch.where(before, ids, PAD), torch.where(before, PAD, ids)


def _masked(ids: Tensor, source: torch.Generator) -> tuple[Tensor, Tensor]:
    return mask_some(ids, ids != PAD, 0.3, MASK, source), ids


def _spans(ids: Tensor, source: torch.Generator) -> tuple[Tensor, Tensor]:
    objective = SpanCorruption(
        sentinels=SENTINELS, pad=PAD, start=PAD, end=END, rate=0.35, mean_span=1.5
    )
    cut, answer = objective.corrupt(ids, source)
    return cut, torch.where(answer == END, PAD, answer)


OBJECTIVES: dict[str, Callable[[Tensor, torch.Generator], tuple[Tensor, Tensor]]] = {
    "language model": _language_model,
    "prefix LM": _prefix_lm,
    "masked words": _masked,
    "cut spans": _spans,
}


def unlabelled(n: int, objective: str = "masked words", seed: int = 0) -> Pairs:
    """Return n sentences as pairs of an objective."""
    source = torch.Generator().manual_seed(seed)
    ids = _sentences(torch.randint(TOPICS, (n,), generator=source), LENGTH, source)
    first, second = OBJECTIVES[objective](ids, source)
    return Pairs(_wide(first), _wide(second))


def _topic(n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
    topics = torch.randint(TOPICS, (n,), generator=source)
    return _sentences(topics, LENGTH, source), LABELS[0] + topics


def _halves(n: int, source: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return two half sentences and their topics, in half of the cases the same."""
    one = torch.randint(TOPICS, (n,), generator=source)
    step = torch.randint(1, TOPICS, (n,), generator=source)
    other = torch.where(torch.rand(n, generator=source) < 0.5, one, (one + step) % TOPICS)
    half = LENGTH // 2
    return _sentences(one, half, source), _sentences(other, half, source), one, other


def _same(n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
    a, b, one, other = _halves(n, source)
    return _words(a, torch.full((n,), MASK), b), torch.where(one == other, YES, NO)


def _which(n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
    a, b, one, other = _halves(n, source)
    other = torch.where(one == other, (one + 1) % TOPICS, other)
    b = _sentences(other, LENGTH // 2, source)
    first = torch.rand(n, generator=source) < 0.5
    asked = LABELS[0] + torch.where(first, one, other)
    return _words(asked, a, b), torch.where(first, FIRST, SECOND)


TASKS: dict[str, tuple[Callable[[int, torch.Generator], tuple[Tensor, Tensor]], tuple[int, ...]]]
TASKS = {
    "topic": (_topic, tuple(LABELS)),
    "same": (_same, (YES, NO)),
    "which": (_which, (FIRST, SECOND)),
}


def task(name: str, n: int, seed: int = 0) -> Pairs:
    """Return n examples of a task, its prefix before each source and a word as answer."""
    draw, candidates = TASKS[name]
    sources, answers = draw(n, torch.Generator().manual_seed(seed))
    prefix = torch.full((n,), PREFIXES[name])
    return Pairs(_wide(_words(prefix, sources)), _wide(answers[:, None]), candidates)
