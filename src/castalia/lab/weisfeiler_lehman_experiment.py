"""What graph networks cannot tell apart: graphs with the same colours of neighbourhoods.

Networks that sum over neighbours separate what the test of Weisfeiler and Lehman separates, means
and maxima less, and none of them more: a ring of six and two of three look alike to every node. A
random number for each node breaks the tie.
Reference: 2019, Xu, Hu, Leskovec, Jegelka, How powerful are graph neural networks?, arXiv
1810.00826.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from castalia.data import Graph
from castalia.data.graphs import refined_colours
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.nets.graphs import GIN, GraphHead, NodeInputs
from castalia.nn.graph import PackedGraph
from castalia.utils.figure_style import COLOURS, INK, caption
from castalia.utils.seeds import seed_scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["apart", "pairs", "run"]

READOUTS = ("sum", "mean", "max")
ROUNDS = 3


def ring(n: int, first: int = 0) -> list[tuple[int, int]]:
    """Return the edges of a ring."""
    return [(first + i, first + (i + 1) % n) for i in range(n)]


def pairs() -> dict[str, tuple[Graph, Graph]]:
    """Return three pairs of graphs, from easy to impossible."""
    tree = [(0, 1), (1, 2), (2, 3), (2, 4), (2, 5)]
    return {
        "path and tree": (Graph([(i, i + 1) for i in range(5)]), Graph(tree)),
        "rings of 3 and 6": (Graph(ring(3)), Graph(ring(6))),
        "ring of 6, two of 3": (Graph(ring(6)), Graph(ring(3) + ring(3, 3))),
    }


def separated(one: Graph, other: Graph) -> bool:
    """Whether the counts of colours differ after some rounds."""
    colours = (refined_colours(g, ["node"] * len(g), ROUNDS)[-1] for g in (one, other))
    first, second = (sorted(found) for found in colours)
    return first != second


def apart(one: Graph, other: Graph, readout: str, nets: int, *, marked: bool = False) -> float:
    """Return how far two graphs are in what random GINs read out, over the size of it, the mean."""
    found = []
    for seed in range(nets):
        with seed_scope(seed):
            body = GIN(2, None, hidden=8, depth=ROUNDS)
            net = GraphHead(NodeInputs(2), body, 1, readout=readout).double().eval()
            source = torch.Generator().manual_seed(seed)
            with torch.no_grad():
                a, b = (net.encode(_packed(g, source, marked)) for g in (one, other))
        found.append(float((a - b).norm() / (a.norm() + b.norm())))
    return float(np.mean(found))


def _packed(graph: Graph, source: torch.Generator, marked: bool) -> PackedGraph:
    x = torch.ones(len(graph), 2, dtype=torch.float64)
    if marked:
        x[:, 1] = torch.rand(len(graph), generator=source)
    return PackedGraph(x, graph.adjacency)


def run(*, quick: bool = False) -> Outcome:
    """Colour the pairs, and measure how far networks with random weights put them apart."""
    nets, known = 5 if quick else 50, pairs()
    figure, axes = panels(4, (12.8, 3.4))
    numbers: dict[str, float] = {}
    for ax, (name, (one, other)) in zip(axes, known.items(), strict=False):
        differ = separated(one, other)
        numbers[f"{name}: test separates"] = float(differ)
        _draw(ax, one, other, f"{name}\n{'separated' if differ else 'alike'}")
        for readout in READOUTS:
            numbers[f"{name}: {readout}"] = apart(one, other, readout, nets)
    last = "ring of 6, two of 3"
    numbers[f"{last}: sum, nodes marked"] = apart(*known[last], "sum", nets, marked=True)
    places = np.arange(len(known))
    for number, readout in enumerate(READOUTS):
        heights = [numbers[f"{name}: {readout}"] for name in known]
        axes[3].bar(places + 0.2 * number, heights, 0.18, color=COLOURS[number], label=readout)
    marked = numbers[f"{last}: sum, nodes marked"]
    axes[3].bar([places[-1] + 0.6], [marked], 0.18, color=COLOURS[3], label="sum, random marks")
    axes[3].set_xticks(places + 0.2, ["path,\ntree", "rings of\n3, 6", "ring of 6,\ntwo of 3"])
    axes[3].set_ylabel("distance of what is read out")
    caption(axes[3], 2)
    said = (
        "A ring of six and two of three are the same to every readout "
        f"({numbers[f'{last}: sum']:.1g}); random marks put them {marked:.2f} apart."
    )
    return Outcome(figure, numbers, said)


def _draw(ax: Axes, one: Graph, other: Graph, title: str) -> None:
    """Draw two graphs side by side, nodes of the same colour alike."""
    colours = [refined_colours(g, ["node"] * len(g), ROUNDS)[-1] for g in (one, other)]
    shade = {c: COLOURS[i] for i, c in enumerate(dict.fromkeys([*colours[0], *colours[1]]))}
    for side, (graph, own) in enumerate(zip((one, other), colours, strict=True)):
        places = _places(graph) + [2.7 * side, 0]
        ax.plot(*places[graph.edges].transpose(2, 1, 0), color=INK, lw=1)
        ax.scatter(places[:, 0], places[:, 1], s=70, color=[shade[c] for c in own], zorder=3)
    ax.set(xticks=[], yticks=[], title=title)
    ax.set_aspect("equal")
    ax.grid(False)
    ax.spines[:].set_visible(False)


def _places(graph: Graph) -> np.ndarray:
    """Return nodes on a circle, (N, 2)."""
    angle = 2 * np.pi * np.arange(len(graph)) / len(graph)
    return np.stack([np.sin(angle), np.cos(angle)], axis=1)
