"""Gradients of word losses for blocks of hidden vectors: three matrix products each.

A head scores hidden vectors h, (b, C, D), against rows of its table, (b, R, D), by one product
s = h rows^T. With y the share of each pair that is a hit and p that is any trial, the loss
-sum[y log s(s) + (p - y) log s(-s)] has the gradient -(y - p sigmoid(s)) in s, and two more
products carry it to h and to the rows. What is returned points downhill.
Shapes: b blocks, C hidden vectors and E words in a block, D dim, K noise words, L way, V words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from castalia.models.language.embeddings.vector_rows import add_rows
from castalia.nn import FullSoftmax, HierarchicalSoftmax, NegativeSampling

__all__ = ["Full", "Head", "Negative", "Step", "Tree"]


class Step(NamedTuple):
    """Where the loss falls: for hidden vectors, and for rows of the head's table."""

    hidden: Tensor  # (b, C, D)
    places: Tensor  # (n,)
    rows: Tensor  # (n, D)
    loss: Tensor | None  # summed over the pairs


class Head:
    """What training asks of a loss.

    Attributes
    ----------
    width
        C, centres in a block: as many as make good matrix products.
    table : Tensor, (rows, D)
        What is trained.
    """

    width: int = 32
    table: Tensor

    @property
    def trials(self) -> float:
        """How many rows a pair moves."""
        raise NotImplementedError

    def expected(self, p: Tensor) -> Tensor:
        """Return how often each row is moved for one pair, words being seen with p, (V,)."""
        raise NotImplementedError

    def draw(self, blocks: int, generator: torch.Generator) -> Tensor | None:
        """Draw what is random in a step."""
        return None

    def step(
        self, h: Tensor, words: Tensor, pairs: Tensor, drawn: Tensor | None, with_loss: bool
    ) -> Step:
        """Return where the loss of pairs, (b, C, E), of h and words, (b, E), falls."""
        raise NotImplementedError


def _step(h: Tensor, table: Tensor, index: Tensor, y: Tensor, p: Tensor, with_loss: bool) -> Step:
    b, _, dim = h.shape
    rows = table.index_select(0, index.reshape(-1)).view(b, -1, dim)
    s = h @ rows.transpose(1, 2)  # (b, C, R)
    loss = -(y * logsigmoid(s) + (p - y) * logsigmoid(-s)).sum() if with_loss else None
    g = torch.addcmul(y, p, s.sigmoid_(), value=-1)
    down = (g.transpose(1, 2) @ h).view(-1, dim)
    return Step(g @ rows, index.reshape(-1), down, loss)


@dataclass(frozen=True)
class Negative(Head):
    """Negative sampling; the centres of a block share their noise words.

    K noise words a block stand for those that each pair would draw: a centre with m pairs meets all
    of them, each with the weight m negative / K. The expected gradient is that of separate draws.
    """

    loss: NegativeSampling
    width: int = 32
    shared: int = 24

    @property
    def table(self) -> Tensor:  # type: ignore[override]
        """The output vectors."""
        return self.loss.weight.detach()

    @property
    def trials(self) -> float:
        """The word of the pair, and noise."""
        return 1 + self.loss.negative

    def expected(self, p: Tensor) -> Tensor:
        """As a word of a pair, or as noise."""
        return p + self.loss.negative * self.loss.noise

    def draw(self, blocks: int, generator: torch.Generator) -> Tensor:
        """Draw the noise words, (blocks, K)."""
        return self.loss.draw(blocks, self.shared, generator=generator)

    def step(
        self, h: Tensor, words: Tensor, pairs: Tensor, drawn: Tensor | None, with_loss: bool
    ) -> Step:
        """Pull pairs together and push noise away."""
        noise = words if drawn is None else drawn
        weight = pairs.sum(dim=2, keepdim=True) * (self.loss.negative / noise.shape[1])
        weight = weight.expand(-1, -1, noise.shape[1])  # (b, C, K)
        y = torch.cat([pairs, torch.zeros_like(weight)], dim=2)
        p = torch.cat([pairs, weight], dim=2)
        return _step(h, self.table, torch.cat([words, noise], dim=1), y, p, with_loss)


@dataclass(frozen=True)
class Tree(Head):
    """Hierarchical softmax: every word of a pair stands for the nodes on its way."""

    loss: HierarchicalSoftmax
    width: int = 8

    @property
    def table(self) -> Tensor:  # type: ignore[override]
        """The vectors of the inner nodes."""
        return self.loss.weight.detach()

    @property
    def trials(self) -> float:
        """The nodes on the way, at most."""
        return self.loss.nodes.shape[1]

    def expected(self, p: Tensor) -> Tensor:
        """A node is moved for every word below it."""
        passed = p[:, None] * self.loss.turns.abs()
        found = p.new_zeros(len(self.table))
        return add_rows(found, self.loss.nodes.flatten(), passed.flatten().to(found))

    def step(
        self, h: Tensor, words: Tensor, pairs: Tensor, drawn: Tensor | None, with_loss: bool
    ) -> Step:
        """Make the turns on the ways to the words more likely."""
        turns = self.loss.turns[words]  # (b, E, L)
        p = (pairs[..., None] * turns.abs()[:, None]).flatten(2)  # (b, C, E L)
        y = (pairs[..., None] * (turns > 0)[:, None]).flatten(2)
        return _step(h, self.table, self.loss.nodes[words].flatten(1), y, p, with_loss)


@dataclass(frozen=True)
class Full(Head):
    """Softmax over all words: for small vocabularies, and to compare the others with."""

    loss: FullSoftmax
    width: int = 32

    @property
    def table(self) -> Tensor:  # type: ignore[override]
        """The output vectors."""
        return self.loss.weight.detach()

    @property
    def trials(self) -> float:
        """The word of the pair, and as much again by the denominator."""
        return 2

    def expected(self, p: Tensor) -> Tensor:
        """As a word of a pair, and as much again by the denominator."""
        return 2 * p

    def step(
        self, h: Tensor, words: Tensor, pairs: Tensor, drawn: Tensor | None, with_loss: bool
    ) -> Step:
        """Make the words of pairs more likely than all others."""
        n_words, dim = self.table.shape
        flat = h.reshape(-1, dim)
        logs = (flat @ self.table.T).log_softmax(dim=1)  # (b C, V)
        at = words[:, None].expand_as(pairs).reshape(len(flat), -1)
        hits = torch.zeros_like(logs).scatter_add_(1, at, pairs.reshape(len(flat), -1))
        loss = -(hits * logs).sum() if with_loss else None
        g = hits - hits.sum(dim=1, keepdim=True) * logs.exp_()
        index = torch.arange(n_words, device=h.device)
        return Step((g @ self.table).view_as(h), index, g.T @ flat, loss)
