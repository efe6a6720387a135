"""Where true links rank among all that could be."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.graphs import GraphPairs

__all__ = ["ranks"]


@torch.inference_mode()
def ranks(net: Any, h: Tensor, view: GraphPairs) -> np.ndarray:  # (N, F) states
    """Return the rank of each pair's second node among all nodes for the first, from 1.

    Nodes that the first has an edge with, and itself, do not count; ties count half.
    """
    graph, found = view.graph, np.empty(len(view))
    everyone = torch.arange(len(graph), device=h.device)
    matrix = graph.adjacency
    for row, (u, v) in enumerate(view.index.tolist()):
        pairs = torch.stack([torch.full_like(everyone, u), everyone], dim=1)
        scores = net.pairs(h, pairs)
        mine = float(scores[v])
        known = matrix.source[matrix.pointer[u] : matrix.pointer[u + 1]].to(h.device)
        scores[known] = -torch.inf
        scores[[u, v]] = -torch.inf
        above, level = (scores > mine).sum(), (scores == mine).sum()
        found[row] = 1 + float(above) + 0.5 * float(level)
    return found
