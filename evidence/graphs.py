"""Citation networks, molecules and links beside published figures.

Cora, Citeseer and PubMed with the public split (20 labelled nodes a class, 500 to validate, 1,000
to test); published: Kipf & Welling (2017), Veličković et al. (2018). MUTAG and PROTEINS with the
ten folds of the data; published: Xu et al. (2019), who choose the epoch by the test folds' mean.
Links of Cora, 85 % to learn, 5 % to validate, 10 % to test; published: Kipf & Welling (2016).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import average_precision_score

from castalia.data import Graph, Graphs
from castalia.models.graphs import GraphClassifier, LinkPredictor, NodeClassifier
from castalia.train import Callback, Training
from evidence.rows import folder, print_table, spread

SEEDS = 10
CITATIONS = {"cora": (81.5, 83.0), "citeseer": (70.3, 72.5), "pubmed": (79.0, 79.0)}
SETTINGS: dict[str, dict[str, Any]] = {
    "gcn": {"network": "gcn", "hidden": 64, "dropout": 0.8, "l2": 1e-3},
    "gat": {"network": "gat", "hidden": 64, "heads": 8, "dropout": 0.6, "l2": 1e-3, "lr": 5e-3},
}
FOLDS = {"MUTAG": 89.4, "PROTEINS": 76.2}


def run(quick: bool = False) -> None:
    """Test accuracy of nodes and graphs, AUC and precision of links, mean ± std."""
    nodes(quick)
    links(quick)
    graphs(quick)


def nodes(quick: bool) -> None:
    rows = []
    for name, published in CITATIONS.items():
        graph, masks = citations(name)
        for (kind, settings), bar in zip(SETTINGS.items(), published, strict=True):
            seeds, start = range(2 if quick else SEEDS), time.perf_counter()
            found = [100 * node_score(graph, masks, settings, seed, quick) for seed in seeds]
            seconds = (time.perf_counter() - start) / len(seeds)
            rows.append(
                [name, kind, f"{bar:.1f}", spread(found, 1), str(len(seeds)), f"{seconds:.1f}"]
            )
            print(rows[-1], flush=True)
    columns = ["data", "network", "published", "test accuracy, %", "seeds", "s a fit"]
    print_table("Nodes of citation networks", columns, rows)


def citations(name: str) -> tuple[Graph, dict[str, np.ndarray]]:
    """The graph with its labels, and the public split."""
    with np.load(folder() / "planetoid" / f"{name}.npz") as file:
        parts = file["feat_data"], file["feat_indices"].astype(np.int64), file["feat_indptr"]
        x = csr_array(parts, shape=tuple(file["feat_shape"]))
        labels = file["labels"].astype(np.int64)
        masks = {part: file[f"{part}_mask"] for part in ("train", "val", "test")}
        graph = Graph(file["edges"], x, labels, nodes=np.arange(len(labels)))
    return graph, masks


def node_score(
    graph: Graph, masks: dict[str, np.ndarray], settings: dict[str, Any], seed: int, quick: bool
) -> float:
    """Accuracy on the test nodes; the validation nodes choose the epoch."""
    held = graph[masks["val"]]
    model = NodeClassifier(
        **{"epochs": 40 if quick else 400, **settings},
        random_state=seed,
        training=Training(validation=(held, held.y), patience=100, watch=False, verbose=False),
    )
    model.fit(graph[masks["train"]])
    return model.score(graph[masks["test"]])


def links(quick: bool) -> None:
    graph, _ = citations("cora")
    seeds, start = range(2 if quick else SEEDS), time.perf_counter()
    found = np.array([link_scores(graph, seed, quick) for seed in seeds])
    seconds = f"{(time.perf_counter() - start) / len(seeds):.1f}"
    auc, ap = (spread(100 * column, 1) for column in found.T)
    columns = ["data", "published AUC / AP", "AUC, %", "AP, %", "seeds", "s a fit"]
    rows = [["cora", "91.4 / 92.6", auc, ap, str(len(seeds)), seconds]]
    print_table("Links of Cora", columns, rows)


def link_scores(graph: Graph, seed: int, quick: bool) -> tuple[float, float]:
    """AUC and average precision on hidden links against as many pairs without; seed: the split."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(graph.edges))
    n_test, n_val = len(order) // 10, len(order) // 20
    test, val, train = np.split(order, [n_test, n_test + n_val])
    seen = graph.replaced(np.sort(train))
    apart = pairs_without(graph, n_test + n_val, random)
    held = np.concatenate([graph.edges[val], apart[n_test:]])
    y_held = np.repeat([1, 0], [n_val, n_val])
    model = LinkPredictor(
        hidden=64,
        dropout=0.2,
        epochs=20 if quick else 200,
        random_state=seed,
        training=Training(
            validation=(seen.pairs(held), y_held), patience=50, watch=False, verbose=False
        ),
    ).fit(seen)
    pairs = np.concatenate([graph.edges[test], apart[:n_test]])
    y = np.repeat([1, 0], [n_test, n_test])
    p = model.predict_proba(seen, pairs)[:, 1]
    return model.score(seen.pairs(pairs), y), float(average_precision_score(y, p))


def pairs_without(graph: Graph, count: int, random: np.random.Generator) -> np.ndarray:
    """Pairs of two nodes without an edge, each once."""
    n = len(graph)
    known = {*(graph.edges @ [n, 1]).tolist(), *(graph.edges[:, ::-1] @ [n, 1]).tolist()}
    found: dict[int, None] = {}
    while len(found) < count:
        u, v = sorted(random.integers(n, size=2).tolist())
        if u != v and u * n + v not in known:
            found[u * n + v] = None
    keys = np.array(list(found))
    return np.stack([keys // n, keys % n], axis=1)


def graphs(quick: bool) -> None:
    rows = []
    for name, published in FOLDS.items():
        data, fold = molecules(name)
        folds, start = range(2 if quick else 10), time.perf_counter()
        curves, inner = zip(*(fold_scores(data, fold, k, quick) for k in folds), strict=True)
        seconds = f"{(time.perf_counter() - start) / len(folds):.1f}"
        mean = np.mean(curves, axis=0)
        best = 100 * np.array(curves)[:, mean.argmax()]
        rows.append(
            [name, f"{published:.1f}", spread(best, 1), spread(100 * np.array(inner), 1), seconds]
        )
        print(rows[-1], flush=True)
    columns = ["data", "published", "paper's protocol, %", "inner validation, %", "s a fold"]
    print_table("Graphs, ten folds", columns, rows)


def molecules(name: str) -> tuple[Graphs, np.ndarray]:
    """The graphs with one-hot labels of their nodes, and each one's fold."""
    with np.load(folder() / "tu-graphs" / f"{name}.npz") as file:
        starts, kinds, edges = file["graph_ptr"], file["node_label"], file["edges"]
        labels, fold = file["graph_label"], file["fold"]
    x = (kinds[:, None] == np.unique(kinds)).astype(np.float64)
    owner = np.searchsorted(starts, edges[:, 0], side="right") - 1
    found = [
        Graph(edges[owner == g] - a, x[a:b], nodes=np.arange(b - a))
        for g, (a, b) in enumerate(zip(starts, starts[1:], strict=False))
    ]
    return Graphs(found, labels), fold


class TestCurve(Callback):
    """Accuracy on the test graphs after every epoch, for the paper's protocol."""

    def __init__(self, model: Any, X: Graphs, codes: np.ndarray) -> None:
        self.model, self.X, self.codes = model, X, codes
        self.scores: list[float] = []

    def on_epoch_end(self, state: Any) -> None:
        self.model.module_ = state.net
        was = state.net.training
        self.scores.append(
            float((self.model._outputs(self.X).argmax(1).numpy() == self.codes).mean())
        )
        state.net.train(was)


def fold_scores(data: Graphs, fold: np.ndarray, k: int, quick: bool) -> tuple[list[float], float]:
    """Test accuracy after every epoch of a training on nine folds, and that of an inner choice."""
    test, train = data[fold == k], data[fold != k]
    settings: dict[str, Any] = {
        "network": "gin",
        "hidden": 32,
        "depth": 4,
        "epochs": 5 if quick else 150,
        "random_state": k,
    }
    quiet = {
        "watch": False,
        "verbose": False,
        "schedule": ("StepLR", {"step_size": 50 * -(-len(train) // 32), "gamma": 0.5}),
    }
    model = GraphClassifier(**settings)
    curve = TestCurve(model, test, np.searchsorted(np.unique(data.y), test.y))
    model.training = Training(validation=0, callbacks=[curve], **quiet)
    model.fit(train)
    chosen = GraphClassifier(**settings, training=Training(validation=0.1, patience=150, **quiet))
    return curve.scores, chosen.fit(train).score(test, test.y)
