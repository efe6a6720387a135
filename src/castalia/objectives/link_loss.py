"""Links against pairs drawn at random: the network learns to tell them apart.

-log s(f(u, v)) of a link, -log(1 - s(f(a, b))) of pairs (a, b) without one, which are drawn for
every link, uniformly among all pairs that are no edges; s is the logistic function.
Shapes: B pairs of the batch, N nodes, F states.
Reference: 2016, Kipf, Welling, Variational graph auto-encoders, arXiv 1611.07308. Departs from it:
pairs without a link are drawn, not all of them counted.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.objectives.objective import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["LinkLoss", "ScoresPairs"]


class ScoresPairs(Protocol):
    """A network that has states of nodes and scores pairs of them."""

    def encode(self, graph: Any) -> Tensor:
        """Return the states of all nodes, (N, F)."""

    def pairs(self, h: Tensor, pairs: Tensor) -> Tensor:
        """Return the score of each pair, (B,)."""


class LinkLoss(Objective):
    """Logistic loss of links and of pairs drawn at random.

    Parameters
    ----------
    negatives
        Pairs without a link that are drawn for every link.
    """

    def __init__(self, *, negatives: int = 1) -> None:
        self.negatives = negatives

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over the pairs of the batch."""
        graph, scorer = batch.x, net
        h = scorer.encode(graph)  # type: ignore[operator]
        scores = scorer.pairs(h, graph.rows)  # type: ignore[operator]
        found = F.binary_cross_entropy_with_logits(scores, batch.y, reduction="none")
        drawn = self._drawn(graph, len(scores))  # (B k, 2)
        against = F.softplus(scorer.pairs(h, drawn))  # type: ignore[operator]
        against = against * _apart(graph.adjacency, drawn)
        found = found + batch.y * against.view(len(scores), -1).mean(dim=1)
        return {"loss": weighted_mean(found, batch.weight)}

    def _drawn(self, graph: Any, rows: int) -> Tensor:
        shape = (rows * self.negatives, 2)
        return torch.randint(graph.adjacency.nodes, shape, device=graph.x.device)


def _apart(adjacency: Any, pairs: Tensor) -> Tensor:
    """Return 1 for pairs of two nodes without an edge, 0 for others, (B,)."""
    n = adjacency.nodes
    keys = adjacency.target * n + adjacency.source  # ascending
    wanted = pairs[:, 1] * n + pairs[:, 0]
    place = torch.searchsorted(keys, wanted).clamp_max(max(len(keys) - 1, 0))
    known = keys[place] == wanted if len(keys) else torch.zeros_like(wanted, dtype=torch.bool)
    return (~known & (pairs[:, 0] != pairs[:, 1])).float()
