"""Prompt tuning: a few learnt vectors are read before the tokens, and nothing else is trained.

Reference: 2021, Lester, Al-Rfou, Constant, The power of scale for parameter-efficient prompt
tuning, arXiv 2104.08691.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter

__all__ = ["Prompted", "Prompts"]


class PromptedTable(nn.Module):
    """A table of tokens that goes on with learnt ones; ``weight`` is the table alone."""

    def __init__(self, table: nn.Embedding, count: int) -> None:
        super().__init__()
        self.table = table
        start = table.weight.detach()
        rows = torch.linspace(0, len(start) - 1, count, device=start.device).long()
        self.prompts = nn.Parameter(start[rows].clone())  # begin as vectors of tokens

    @property
    def weight(self) -> Tensor:
        """The vectors of the tokens, (V, dim)."""
        return self.table.weight

    def forward(self, ids: Tensor) -> Tensor:
        size = self.table.num_embeddings
        found = self.table(ids.clamp_max(size - 1))
        learnt = self.prompts[(ids - size).clamp_min(0)]
        return torch.where((ids >= size)[..., None], learnt, found)


class Prompted(nn.Module):
    """A network of ``tokens`` and ``features`` that reads learnt vectors with every row.

    What it returns has a place for each token that was given; everything else (``head``, ``pool``,
    ``segments`` …) is the network's own.

    Parameters
    ----------
    net
        The network, such as ``GPT`` or ``BERT``; its weights are frozen.
    count
        Learnt vectors.
    at
        How many tokens stand before them: 0 for a language model, 1 behind BERT's first token.
    """

    def __init__(self, net: nn.Module, count: int, *, at: int = 0) -> None:
        super().__init__()
        if count < 1:
            raise InvalidParameter(
                f"Prompts: `count` must be a whole number from 1; got {count!r}."
            )
        net.requires_grad_(False)
        self.net, self.count, self.at = net, count, at
        self.vocabulary: int = net.tokens.num_embeddings  # type: ignore[union-attr, assignment]
        net.tokens = PromptedTable(net.tokens, count)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("net"), name)

    @property
    def context(self) -> int:
        """Room that is left for tokens."""
        return int(self.net.context) - self.count  # type: ignore[arg-type]

    def forward(
        self, ids: Tensor, segments: Tensor | None = None, *, keep: Tensor | None = None
    ) -> Tensor:
        """Return the logits at each token, (B, T, V)."""
        return self.head(self.features(ids, segments, keep=keep))

    def features(
        self, ids: Tensor, segments: Tensor | None = None, *, keep: Tensor | None = None
    ) -> Tensor:  # (B, T)
        """Return a vector for each token, (B, T, dim)."""
        names = torch.arange(self.vocabulary, self.vocabulary + self.count, device=ids.device)
        full = self._insert(ids, names.expand(len(ids), -1))
        given: tuple[Tensor, ...] = (full,)
        if segments is not None:
            given += (self._insert(segments, torch.zeros_like(full[:, : self.count])),)
        if keep is not None:
            keep = self._insert(keep, torch.ones_like(full[:, : self.count], dtype=torch.bool))
        h = self.net.features(*given, keep=keep)  # type: ignore[operator]
        return torch.cat([h[:, : self.at], h[:, self.at + self.count :]], dim=1)

    def _insert(self, row: Tensor, middle: Tensor) -> Tensor:
        return torch.cat([row[:, : self.at], middle, row[:, self.at :]], dim=1)


@dataclass(frozen=True)
class Prompts:
    """Learnt vectors read with every row, all else frozen.

    Parameters
    ----------
    count
        How many.
    at
        How many tokens stand before them.

    Examples
    --------
    >>> from castalia.nets.language import GPT
    >>> net = Prompts(3).apply(GPT(50, context=16, dim=8, depth=1, heads=2))
    >>> net(torch.tensor([[3, 1, 4]])).shape, [p.shape for p in net.parameters() if p.requires_grad]
    (torch.Size([1, 3, 50]), [torch.Size([3, 8])])
    """

    count: int = 16
    at: int = 0

    def apply(self, net: nn.Module) -> Prompted:
        """Return the network with learnt vectors; its own weights are frozen."""
        return Prompted(net, self.count, at=self.at)
