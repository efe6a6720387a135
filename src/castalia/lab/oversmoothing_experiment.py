"""Oversmoothing: what mixing does to the states of nodes, layer after layer.

A^ = D^-1/2 (A + I) D^-1/2 leaves one direction as it is, D^1/2 1, and shrinks all others at least
by its second eigenvalue: after k mixes nodes differ by their degree alone. A deep GCN forgets what
its nodes were; one whose readout sees all layers does not.
Reference: 2018, Li, Han, Wu, Deeper insights into graph convolutional networks, arXiv 1801.07606.
"""

from __future__ import annotations

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.graphs import NodeClassifier
from castalia.testing import toy
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, INK, caption, log_scale

__all__ = ["distances", "run", "second_eigenvalue"]

NETWORKS = {"gcn": "GCN", "nn4g": "NN4G, all layers read out"}
TRAINED = 80  # nodes


def distances(matrix: np.ndarray, x: np.ndarray, mixes: int) -> np.ndarray:
    """Return how far mixed features are from the direction that mixing leaves, over their size."""
    values, vectors = np.linalg.eigh(matrix)
    lasting = vectors[:, [-1]]  # of eigenvalue 1
    found = []
    for _ in range(mixes + 1):
        rest = x - lasting @ (lasting.T @ x)
        found.append(np.linalg.norm(rest) / np.linalg.norm(x))
        x = matrix @ x
    return np.array(found)


def second_eigenvalue(matrix: np.ndarray) -> float:
    """Return the second largest size of an eigenvalue."""
    return float(np.sort(np.abs(np.linalg.eigvalsh(matrix)))[-2])


def accuracy(network: str, depth: int, epochs: int, seeds: int) -> float:
    """Return the accuracy of trained networks on the nodes they have not seen, the mean."""
    X, y = toy("communities")
    found = []
    for seed in range(seeds):
        model = NodeClassifier(
            network=network,
            depth=depth,
            hidden=8,
            dropout=0.0,
            epochs=epochs,
            random_state=seed,
            training=Training(watch=False, validation=0),
        )
        found.append(model.fit(X[:TRAINED], y[:TRAINED]).score(X[TRAINED:], y[TRAINED:]))
    return float(np.mean(found))


def run(*, quick: bool = False) -> Outcome:
    """Mix features many times, and train networks of many depths."""
    X, y = toy("communities")
    graph, red = X.graph, y == "red"
    matrix = graph.adjacency.normalised().dense().numpy()
    mixes = 40
    far, second = distances(matrix, graph.x, mixes), second_eigenvalue(matrix)
    depths = (2, 16) if quick else (1, 2, 4, 8, 16, 32)
    epochs, seeds = (20, 1) if quick else (100, 2)
    figure, axes = panels(3, (10.5, 3.5))
    axes[0].plot(far, "o", ms=3, color=COLOURS[0], label="measured")
    tail = far[20] * second ** (np.arange(mixes + 1) - 20.0)
    axes[0].plot(np.minimum(tail, 1), color=INK, lw=1, label=f"{second:.2f} to the k")
    axes[0].set(xlabel="mixes k", ylabel="part that separates nodes")
    log_scale(axes[0])
    caption(axes[0], 2)
    for power in (1, 4, 32):
        mixed = np.linalg.matrix_power(matrix, power) @ graph.x
        unit = mixed / np.sqrt(graph.degrees + 1)[:, None]  # in the direction that is left: equal
        place = unit[:, 0] / np.abs(unit[:, 0]).max()
        height = np.log2(power) + np.where(red, 0.22, -0.22)
        axes[1].scatter(place[red], height[red], s=7, color=COLOURS[1], alpha=0.6)
        axes[1].scatter(place[~red], height[~red], s=7, color=COLOURS[0], alpha=0.6)
    axes[1].set_yticks([0, 2, 5], ["1 mix", "4 mixes", "32 mixes"])
    axes[1].set(xlabel="first feature over its largest, by class")
    numbers = {"second eigenvalue": second, "decay a mix, measured": float(far[30] / far[29])}
    numbers["part that separates nodes, 32 mixes"] = float(far[32])
    for (network, name), colour in zip(NETWORKS.items(), COLOURS, strict=False):
        scores = [accuracy(network, depth, epochs, seeds) for depth in depths]
        axes[2].plot(depths, scores, "o-", ms=4, color=colour, label=name)
        numbers |= {f"{network}, {d} layers": s for d, s in zip(depths, scores, strict=True)}
    axes[2].set(xlabel="layers", ylabel="accuracy", xscale="log", ylim=(0.4, 1.02))
    axes[2].set_xticks(depths, [str(depth) for depth in depths])
    axes[2].minorticks_off()
    caption(axes[2], 1)
    said = (
        f"Every mix shrinks what separates nodes to {second:.2f} of it; a GCN of 16 layers is "
        f"right for {100 * numbers['gcn, 16 layers']:.0f} % of the nodes, one of 2 for "
        f"{100 * numbers['gcn, 2 layers']:.0f} %."
    )
    return Outcome(figure, numbers, said)
