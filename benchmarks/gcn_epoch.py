"""Epochs of a graph convolutional network: our whole fit against loops around one graph.

PyTorch Geometric's ``GCNConv(cached=True)`` where it is installed, and the same network with sums
by ``index_add`` as a plain loop writes it. On a GPU the graph has ten times as many nodes, and
sampled neighbourhoods of 2 million nodes are timed too.
"""

from __future__ import annotations

import os
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.harness import Bar, Report, Spread, installed, main
from castalia.data import Graph
from castalia.data.graphs import GraphNodes
from castalia.models.graphs import NodeClassifier
from castalia.train import Training

FEATURES, HIDDEN, CLASSES, LR = 128, 64, 10, 1e-2
BATCH = 1024  # of sampled neighbourhoods
SETTINGS = {"hidden": HIDDEN, "dropout": 0.0, "l2": 0.0, "lr": LR, "scaling": None}


@dataclass(frozen=True)
class Size:
    nodes: int  # ten times as many edges
    epochs: int
    rounds: int
    sampled: int  # nodes of the graph whose neighbourhoods are sampled
    seeds: int  # of them trained on, once


SIZES = {
    "full": Size(20_000, 20, 2, 2_000_000, 200_000),
    "quick": Size(20_000, 5, 2, 100_000, 20_000),
    "tiny": Size(300, 2, 1, 500, 200),
}


def data(nodes: int) -> tuple[Graph, np.ndarray]:
    """A random graph, and classes that features and neighbours say together."""
    random = np.random.default_rng(0)
    y = random.integers(CLASSES, size=nodes)
    centres = random.standard_normal((CLASSES, FEATURES)).astype(np.float32)
    x = random.standard_normal((nodes, FEATURES), dtype=np.float32) + 0.3 * centres[y]
    pairs = random.integers(nodes, size=(10 * nodes, 2))
    keys = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1) @ [nodes, 1])
    return Graph(np.stack([keys // nodes, keys % nodes], axis=1), x, y), y


def run(scale: str = "full") -> Report:
    """Count epochs a second; ours is the whole fit, normalisation and transfer included."""
    size, gpu = SIZES[scale], torch.cuda.is_available()
    nodes, epochs = (10 * size.nodes, 15 * size.epochs) if gpu else (size.nodes, size.epochs)
    graph, _ = data(nodes)
    device = "cuda" if gpu else "cpu"
    contenders: dict[str, Callable[[int], object]] = {
        "castalia, whole fit": lambda n: castalia(graph, n, device),
    }
    if not gpu:
        contenders["plain loop, index_add"] = lambda n: looped(graph, n, device, PlainConv)
    if installed("torch_geometric"):
        contenders["PyG, cached"] = lambda n: looped(graph, n, device, pyg_conv())
    speeds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(-1, size.rounds):  # the first round warms up
        for name, fit in contenders.items():
            count = epochs if number >= 0 else 2
            seconds = timed(partial(fit, count))
            print(f"{name}: {count} epochs in {seconds:.2f} s", flush=True)
            if number >= 0:
                speeds[name].append(epochs / seconds)
    lines = ["| contender | epochs/s, median (min–max) | castalia is faster |", "|---|---|---|"]
    ours = speeds["castalia, whole fit"]
    times = {}
    for name, found in speeds.items():
        times[name] = Spread.of([a / b for a, b in zip(ours, found, strict=True)])
        lines.append(f"| {name} | {Spread.of(found):.2f} | {times[name]:.2f} times |")
    bars = [
        Bar(f"times {n}", times[n].median, ">=", 3) for n in times if n != "castalia, whole fit"
    ]
    history = castalia(graph, epochs, device).history_[1:]
    inside = len(history) / sum(line["seconds"] for line in history)
    lines.append(f"\nInside the fit, after its first epoch: {inside:.1f} epochs/s.")
    figures: dict[str, object] = {"speeds": speeds, "inside": inside}
    if gpu or scale == "tiny":
        found = figures["sampled"] = sampled(size.sampled, size.seeds, device)
        lines.append(f"\nSampled neighbourhoods, {size.sampled:,} nodes, seeds/s: {found}")
        theirs = found.get("PyG NeighborLoader")
        if isinstance(theirs, int):
            bars.append(Bar("times NeighborLoader", found["castalia, whole fit"] / theirs, ">=", 2))
    setting = (
        f"{device}, torch {torch.__version__}; {nodes:,} nodes, {2 * len(graph.edges):,} directed "
        f"edges, {FEATURES} features, GCN {FEATURES}-{HIDDEN}-{CLASSES}, {epochs} epochs, "
        f"{size.rounds} rounds."
    )
    return Report("gcn_epoch", setting, "\n".join(lines), bars, figures)


def timed(fit: Callable[[], object]) -> float:
    """Seconds until the device has finished."""
    start = time.perf_counter()
    fit()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def castalia(
    graph: Graph | GraphNodes, epochs: int, device: str, **settings: object
) -> NodeClassifier:
    """Our fit, from arrays on the host to a fitted estimator."""
    getattr(graph, "graph", graph).__dict__.pop("adjacency", None)  # its making counts
    training = Training(
        validation=0, verbose=False, watch=False, device=device, precision="float32"
    )
    return NodeClassifier(
        **{**SETTINGS, "epochs": epochs, **settings},
        training=training,
        random_state=0,
    ).fit(graph)


class PlainConv(nn.Module):
    """D^-1/2 (A + I) D^-1/2 X W with one message an edge."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.map = nn.Linear(inputs, outputs)
        self.weight: Tensor | None = None

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        if self.weight is None:
            here = torch.arange(len(x), device=x.device)
            self.edges = torch.cat([edges, torch.stack([here, here])], dim=1)
            root = torch.bincount(self.edges[1], minlength=len(x)).float().rsqrt()
            self.weight = (root[self.edges[0]] * root[self.edges[1]])[:, None]
        h = self.map(x)
        return torch.zeros_like(h).index_add(0, self.edges[1], self.weight * h[self.edges[0]])


def pyg_conv() -> Callable[[int, int], nn.Module]:
    """PyTorch Geometric's convolution with its normalisation kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it scripts functions when it is imported
        from torch_geometric.nn import GCNConv

    return lambda inputs, outputs: GCNConv(inputs, outputs, cached=True)


def looped(
    graph: Graph, epochs: int, device: str, conv: Callable[[int, int], nn.Module]
) -> nn.Module:
    """The usual loop."""
    x = torch.from_numpy(graph.x).to(device)
    y = torch.from_numpy(graph.y).to(device)
    forth = torch.from_numpy(graph.edges.T.copy())
    edges = torch.cat([forth, forth.flip(0)], dim=1).to(device)
    layers = nn.ModuleList([conv(FEATURES, HIDDEN), conv(HIDDEN, CLASSES)]).to(device)
    optimizer = torch.optim.Adam(layers.parameters(), lr=LR)
    for _ in range(epochs):
        optimizer.zero_grad()
        h = F.relu(layers[0](x, edges))
        F.cross_entropy(layers[1](h, edges), y).backward()
        optimizer.step()
    return layers


def sampled(nodes: int, seeds: int, device: str) -> dict[str, object]:
    """Seeds a second of an epoch with 10 and 10 neighbours, batches of 1,024, whole fit and peer.

    Both times begin with arrays on the host and end with trained weights.
    """
    graph, _ = data(nodes)
    rows = np.random.default_rng(1).permutation(nodes)[:seeds]
    drawn = {"network": "sage", "neighbours": (10, 10), "batch_size": BATCH}
    found: dict[str, object] = {}
    print(f"sampled: the graph is made, {graph}", flush=True)
    found["castalia, whole fit"] = round(
        seeds / timed(lambda: castalia(graph[rows], 1, device, **drawn))
    )
    found["host memory, GiB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    if device == "cuda":
        found["GPU memory, GiB"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    print(found, flush=True)
    if installed("torch_geometric"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about the sampler that it lacks
                taken = timed(lambda: loaded(graph, rows, device))
            found["PyG NeighborLoader"] = round(seeds / taken)
        except ImportError as error:  # it samples with a package of its own
            found["PyG NeighborLoader"] = f"cannot run: {error}"
    return found


def loaded(graph: Graph, rows: np.ndarray, device: str) -> nn.Module:
    """PyTorch Geometric's sampled loop, with workers that sample ahead."""
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    from torch_geometric.nn import SAGEConv

    forth = torch.from_numpy(graph.edges.T.copy())
    whole = Data(torch.from_numpy(graph.x), torch.cat([forth, forth.flip(0)], dim=1))
    whole.y = torch.from_numpy(graph.y)
    workers = min(8, max(0, (os.cpu_count() or 1) - 2))
    loader = NeighborLoader(
        whole, [10, 10], torch.from_numpy(rows), batch_size=BATCH, shuffle=True, num_workers=workers
    )
    layers = nn.ModuleList([SAGEConv(FEATURES, HIDDEN), SAGEConv(HIDDEN, CLASSES)]).to(device)
    optimizer = torch.optim.Adam(layers.parameters(), lr=LR)
    for batch in loader:
        batch = batch.to(device)
        optimizer.zero_grad()
        h = F.relu(layers[0](batch.x, batch.edge_index))
        scores = layers[1](h, batch.edge_index)[: batch.batch_size]
        F.cross_entropy(scores, batch.y[: batch.batch_size]).backward()
        optimizer.step()
    return layers


if __name__ == "__main__":
    main(run)
