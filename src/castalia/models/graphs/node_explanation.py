"""Why a node got its answer: shares of edges and of features.

Integrated gradients of a mask m on the messages, from 0 to 1: share of edge e is
int_0^1 d f(m 1) / d m_e dm; all shares sum to f(1) - f(0).
Or a mask that is learnt for this node: the smallest that keeps the answer,
argmin_m -ln p(answer | m) + a sum_e m_e + b sum_e H(m_e).
Shapes: N nodes, E edges, D features.
References: 2017, Sundararajan, Taly, Yan, Axiomatic attribution for deep networks, arXiv
1703.01365; 2019, Ying et al., GNNExplainer, arXiv 1903.03894.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from castalia.nn.graph import PackedGraph, dense_features

__all__ = ["METHODS", "NodeExplanation", "explained"]

SIZE, DOUBT = 0.1, 0.1  # what an edge in a learnt mask costs, and one that is half in it


@dataclass(frozen=True)
class NodeExplanation:
    """What made the answer for a node.

    Attributes
    ----------
    node
        Its name.
    output
        Number of the output that is explained: the largest.
    edges
        Pairs of names, source first, from the most important down.
    edge_shares
        Share of each of these edges in the output, negative ones speak against it; or how much of
        its message the answer needs, 0 to 1, where a mask was learnt.
    nodes
        Names of the nodes that matter, from the most important down.
    node_shares
        Share of each node's features.
    gap
        What messages as a whole added to the output.
    """

    node: Any
    output: int
    edges: np.ndarray
    edge_shares: np.ndarray
    nodes: np.ndarray
    node_shares: np.ndarray
    gap: float


def explained(
    net: nn.Module,
    packed: PackedGraph,
    graph: Any,
    place: int,
    steps: int | None,
    method: str = "gradients",
) -> NodeExplanation:
    """Explain the largest output of the node that ``packed`` asks for."""
    with torch.no_grad():
        output = int(net(packed)[0].argmax())
    ones = torch.ones(packed.adjacency.edges, dtype=packed.x.dtype, device=packed.x.device)
    way, usual = METHODS[method]
    shares = way(net, packed, output, usual if steps is None else steps)
    with torch.no_grad():
        whole, none = (_score(net, packed, m, output) for m in (ones, torch.zeros_like(ones)))
    features = _feature_shares(net, packed, output)
    edges = torch.stack([packed.adjacency.source, packed.adjacency.target], dim=1).cpu().numpy()
    order, nodes = _ranked(shares), _ranked(features)
    return NodeExplanation(
        graph.ids[place],
        output,
        graph.ids[edges[order]],
        shares.cpu().numpy()[order],
        graph.ids[nodes],
        features.cpu().numpy()[nodes],
        float(whole - none),
    )


def _integrated(net: nn.Module, packed: PackedGraph, output: int, steps: int) -> Tensor:
    """Return integrated gradients of the mask, (E,)."""
    shares = torch.zeros(packed.adjacency.edges, dtype=packed.x.dtype, device=packed.x.device)
    for step in range(steps):
        mask = torch.full_like(shares, (step + 0.5) / steps).requires_grad_()
        shares += torch.autograd.grad(_score(net, packed, mask, output), mask)[0] / steps
    return shares


def _learnt_mask(net: nn.Module, packed: PackedGraph, output: int, steps: int) -> Tensor:
    """Return the smallest mask that keeps the answer, (E,); 0 for edges that do not reach it."""
    reached = _integrated(net, packed, output, 2) != 0
    with torch.no_grad():
        answer = _outputs(net, packed, torch.ones_like(reached, dtype=packed.x.dtype))
    logit = torch.zeros_like(reached, dtype=packed.x.dtype).requires_grad_()
    optimizer = torch.optim.Adam([logit], lr=0.1)
    for _ in range(steps):
        mask = torch.sigmoid(logit)
        scores = _outputs(net, packed, mask)
        kept = scores.log_softmax(0)[output] if len(scores) > 1 else -(scores - answer).square()[0]
        entropy = torch.special.entr(mask) + torch.special.entr(1 - mask)
        cost = (SIZE * mask + DOUBT * entropy) * reached
        (logit.grad,) = torch.autograd.grad(cost.sum() - kept, logit)
        optimizer.step()
    return torch.sigmoid(logit.detach()) * reached


METHODS = {"gradients": (_integrated, 20), "mask": (_learnt_mask, 100)}  # and their usual steps


def _outputs(net: nn.Module, packed: PackedGraph, mask: Tensor) -> Tensor:
    """Return the outputs of the node with messages weakened by a mask, (K,)."""
    masked = PackedGraph(packed.x, packed.adjacency.masked(mask), packed.rows)
    found: Tensor = net(masked)[0]
    return found


def _score(net: nn.Module, packed: PackedGraph, mask: Tensor, output: int) -> Tensor:
    """Return an output of the node with messages weakened by a mask, (E,)."""
    return _outputs(net, packed, mask)[output]


def _feature_shares(net: nn.Module, packed: PackedGraph, output: int) -> Tensor:
    """Return gradient times input, summed over each node's features, (N,)."""
    x = dense_features(packed.x).detach().clone().requires_grad_()
    score = net(PackedGraph(x, packed.adjacency, packed.rows))[0, output]
    (slope,) = torch.autograd.grad(score, x, allow_unused=True)
    return torch.zeros(len(x)) if slope is None else (slope * x).sum(dim=1).detach()


def _ranked(shares: Tensor) -> np.ndarray:
    """Return positions of what has a share, the largest first."""
    values = shares.detach().abs().cpu().numpy()
    order = np.argsort(-values, kind="stable")
    return order[values[order] > 0]
