"""The receptive field of a graph network: k layers, k hops, and near nodes count most.

The derivative of a node's output by the features of all nodes is 0 beyond k hops. Within, on
average over random weights it is as large as the share of walks of k steps that lead there.
Reference: 2018, Xu, Li, Tian, Sonobe, Kawarabayashi, Jegelka, Representation learning on graphs
with jumping knowledge networks, arXiv 1806.03536.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.sparse.csgraph import shortest_path

from castalia.data import Graph
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.nets.graphs import GCN
from castalia.utils.figure_style import COLOURS, INK, caption, heat, log_scale, whole_ticks
from castalia.utils.seeds import seed_scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["graphs", "influence", "run"]

SIDE = 13  # of the grid
FAR = 8  # hops


def graphs() -> dict[str, tuple[Graph, int]]:
    """Return a path, a grid, a tree and a random graph, each with a node to ask about."""
    path = Graph([(i, i + 1) for i in range(40)])
    number = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    right = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    tree = Graph([((i - 1) // 2, i) for i in range(1, 2 ** (FAR + 1) - 1)])
    random = np.random.default_rng(0).integers(500, size=(1000, 2))
    drawn = Graph(np.unique(np.sort(random[random[:, 0] != random[:, 1]], axis=1), axis=0))
    return {
        "path": (path, 20),
        "grid": (Graph(np.concatenate([right, down])), SIDE * SIDE // 2),
        "tree": (tree, 0),
        "random": (drawn, int(drawn.degrees.argmax())),
    }


def hops(graph: Graph, node: int) -> np.ndarray:
    """Return how many steps every node is away, (N,)."""
    found: np.ndarray = shortest_path(graph.scipy(), unweighted=True, indices=node)
    return found


def influence(graph: Graph, node: int, depth: int, nets: int) -> np.ndarray:
    """Return how strongly each node moves the output of one, mean of random GCNs, (N,)."""
    total = torch.zeros(len(graph))
    for seed in range(nets):
        with seed_scope(seed):
            net = GCN(8, 8, hidden=8, depth=depth)
            x = torch.randn(len(graph), 8).requires_grad_()
        weights = torch.randn(8, generator=torch.Generator().manual_seed(seed))
        (slope,) = torch.autograd.grad((net(x, graph.adjacency)[node] * weights).sum(), x)
        total += slope.norm(dim=1)
    return (total / total.sum()).numpy()


def run(*, quick: bool = False) -> Outcome:
    """Count nodes within k hops, and draw what two and six layers see of a grid."""
    nets, known = 20 if quick else 200, graphs()
    figure, axes = panels(4, (12.5, 3.4))
    numbers: dict[str, float] = {}
    for (name, (graph, node)), colour in zip(known.items(), COLOURS, strict=False):
        away = hops(graph, node)
        counts = [int((away <= k).sum()) for k in range(FAR + 1)]
        axes[0].plot(counts, "o-", ms=3.5, color=colour, label=name)
        numbers[f"{name}: nodes within 4 hops"] = float(counts[4])
    axes[0].set(xlabel="layers", ylabel="nodes seen")
    log_scale(axes[0])
    whole_ticks(axes[0].xaxis)
    caption(axes[0], 2)
    graph, node = known["grid"]
    away, mixed = hops(graph, node), graph.adjacency.normalised().dense().numpy()
    for ax, depth in zip(axes[1:3], (2, 6), strict=True):
        seen = influence(graph, node, depth, nets)
        walks = np.linalg.matrix_power(mixed, depth)[node]
        numbers[f"{depth} layers: hops seen"] = float(away[seen > 0].max())
        numbers[f"{depth} layers: correlation with walks"] = float(np.corrcoef(seen, walks)[0, 1])
        near = float(seen[away <= depth / 2].sum())
        numbers[f"{depth} layers: influence of the nearer half"] = near
        _draw(ax, seen, f"{depth} layers")
    axes[3].plot(walks / walks.sum(), seen, "o", ms=3.5, color=COLOURS[0])
    most = seen.max() * 1.05
    axes[3].plot([0, most], [0, most], color=INK, lw=1)
    axes[3].set(xlabel="share of the walks of six steps", ylabel="influence, six layers")
    near = numbers["6 layers: influence of the nearer half"]
    said = (
        f"Six layers see six hops of a grid, but {100 * near:.0f} % of the influence comes from "
        "three; it is the share of walks that lead there."
    )
    return Outcome(figure, numbers, said)


def _draw(ax: Axes, seen: np.ndarray, title: str) -> None:
    ax.imshow(np.sqrt(seen).reshape(SIDE, SIDE), cmap=heat())
    ax.set(xticks=[], yticks=[], title=title)
    ax.grid(False)
    ax.spines[:].set_visible(False)
