"""Citation networks, molecules and links beside published figures.

Cora, Citeseer and PubMed with the public split (20 labelled nodes a class, 500 to validate, 1,000
to test), settings chosen by the validation nodes; published: Kipf & Welling (2017), Veličković et
al. (2018). MUTAG and PROTEINS with the ten folds of the data; published: Xu et al. (2019), who
choose settings and epoch by the test folds' mean; beside it a tenth of the other folds chooses.
Links of Cora, 85 % to learn, 5 % to validate, 10 % to test; published: Kipf & Welling (2016).
Every fit is a job; they run side by side, those of many small graphs on CPU cores. Finished ones
are kept in ``graphs.jsonl`` in the folder ``OUT`` and not repeated; ``CASTALIA_PARTS`` names some
of ``cora,citeseer,pubmed,links,MUTAG,PROTEINS`` to do these only.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from sklearn.metrics import average_precision_score

from castalia.data import Graph, Graphs, read_graphs
from castalia.models.graphs import GraphClassifier, LinkPredictor, NodeClassifier
from castalia.nets.graphs import GAT
from castalia.train import Callback, Training
from evidence.rows import folder, print_table, spread

SEEDS, FOLDS = 10, 10
CITATIONS = {"cora": (81.5, 83.0), "citeseer": (70.3, 72.5), "pubmed": (79.0, 79.0)}
# Settings tried for every data set; the accuracy on its validation nodes chooses, over some seeds.
GAT_PAPER = {"hidden": 64, "heads": 8, "last_heads": 1, "message_dropout": 0.6, "dropout": 0.6}
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "gcn": [
        {"hidden": 64, "dropout": 0.8, "l2": 1e-3},
        {"hidden": 64, "dropout": 0.6, "l2": 1e-3},
        {"hidden": 16, "dropout": 0.5, "l2": 5e-4},
    ],
    "gat": [
        {**GAT_PAPER, "l2": 5e-4, "lr": 5e-3},
        {**GAT_PAPER, "l2": 1e-3, "lr": 1e-2, "last_heads": 8},
        {**GAT_PAPER, "l2": 1e-3, "lr": 5e-3, "message_dropout": 0.0},
        {**GAT_PAPER, "l2": 1e-3, "lr": 5e-3, "dropout": 0.7, "message_dropout": 0.3},
        {**GAT_PAPER, "l2": 1e-3, "lr": 5e-3, "dropout": 0.8, "message_dropout": 0.0},
        {**GAT_PAPER, "l2": 1e-3, "lr": 1e-2, "last_heads": 8, "message_dropout": 0.3},
        {**GAT_PAPER, "l2": 5e-4, "lr": 1e-2, "last_heads": 8, "message_dropout": 0.0},
        # PubMed alone, where the first seven miss
        {**GAT_PAPER, "l2": 5e-4, "lr": 1e-2, "last_heads": 8, "message_dropout": 0, "hidden": 128},
        {**GAT_PAPER, "l2": 1e-3, "lr": 5e-3, "last_heads": 8, "message_dropout": 0},
        {**GAT_PAPER, "l2": 5e-4, "lr": 5e-3, "last_heads": 8, "message_dropout": 0},
        {**GAT_PAPER, "l2": 2e-4, "lr": 1e-2, "last_heads": 8, "message_dropout": 0},
    ],
}
LINKS: list[dict[str, Any]] = [
    {"hidden": 64, "dropout": 0.2},
    {"hidden": 64, "dropout": 0.5},
    {"hidden": 64, "dropout": 0.5, "negatives": 5},
    {"hidden": 128, "dropout": 0.5, "negatives": 5},
    {"hidden": 128, "dropout": 0.7, "negatives": 5},
]
TRIED = {"cora": (7, 3), "citeseer": (7, 3), "pubmed": (11, 10)}  # settings and seeds
EPOCHS, PATIENCE = 1000, 100
MOLECULES = {"MUTAG": 89.4, "PROTEINS": 76.2}
# Of Xu et al.: hidden 16 or 32, batches of 32 or 128, dropout 0 or 0.5; steps at which Adam's rate
# is halved, and all. A point of the curve of a fold every STEPS_A_POINT.
WIDE = {"hidden": 32, "depth": 4}
GRAPHS: dict[str, list[dict[str, Any]]] = {
    "MUTAG": [
        {**WIDE, "batch_size": 32, "dropout": 0.5},
        {**WIDE, "batch_size": 128, "dropout": 0.0},
        {**WIDE, "hidden": 16, "batch_size": 32, "dropout": 0.0},
    ],
    "PROTEINS": [
        {**WIDE, "batch_size": 128, "dropout": 0.5},
        {**WIDE, "hidden": 16, "batch_size": 32, "dropout": 0.5},
        {**WIDE, "batch_size": 128, "dropout": 0.5, "lr": 1e-3},
    ],
}
STEPS = {"MUTAG": 4000, "PROTEINS": 2000}
STEPS_A_POINT = 12
Job = tuple[str, str, int]  # what, of which data, seed or fold


def run(quick: bool = False) -> None:
    """Test accuracy of nodes and graphs, AUC and precision of links, mean ± std."""
    kept = Path(os.environ.get("OUT", ".")) / f"graphs{'-quick' if quick else ''}.jsonl"
    lines = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    spawn = multiprocessing.get_context("spawn")
    workers = int(os.environ.get("CASTALIA_JOBS", max(1, (os.cpu_count() or 2) - 2)))
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=alone) as pool:
        work(pool, first_jobs(quick), lines, kept, quick)
        work(pool, chosen_jobs(lines, quick), lines, kept, quick)
    node_table(lines)
    link_table(lines)
    graph_table(lines)


def work(
    pool: ProcessPoolExecutor,
    asked: list[Job],
    lines: list[dict[str, Any]],
    kept: Path,
    quick: bool,
) -> None:
    """Do the jobs that are not done yet, and keep each as soon as it is."""
    done = {(line["what"], line["data"], line["seed"]) for line in lines}
    left, start = [job for job in asked if job not in done], time.perf_counter()
    waiting = [pool.submit(done_job, job, quick) for job in left]
    for number, future in enumerate(as_completed(waiting), 1):
        if future.exception():  # such as a device that failed: the next run does it again
            print(f"{number} of {len(left)}: {str(future.exception())[:300]}", flush=True)
            continue
        lines.append(future.result())
        shown = {**lines[-1], "curve": "..."} if "curve" in lines[-1] else lines[-1]
        passed = time.perf_counter() - start
        print(f"{number} of {len(left)}, {passed:.0f} s: {json.dumps(shown)}", flush=True)
        with kept.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")


def first_jobs(quick: bool) -> list[Job]:
    """Graphs, links, and all settings of nodes; the longest first."""
    folds, seeds = range(2 if quick else FOLDS), range(2 if quick else SEEDS)
    found = [
        (f"{what}/{number}", name, k)
        for name in reversed(MOLECULES)
        for number in range(len(GRAPHS[name]))
        for what in ("curve", "inner")
        for k in folds
    ]
    found += [
        (f"{kind}/{number}", name, seed)
        for name in reversed(CITATIONS)
        for kind in reversed(SETTINGS)
        for number in range(len(SETTINGS[kind][: TRIED[name][0]]))
        for seed in range(1 if quick else TRIED[name][1])
    ]
    found += [(f"links/{n}", "links", seed) for n in range(len(LINKS)) for seed in seeds]
    asked = parts()
    return [job for job in found if job[1] in asked]


def parts() -> list[str]:
    """What is asked for."""
    return os.environ.get("CASTALIA_PARTS", ",".join([*CITATIONS, "links", *MOLECULES])).split(",")


def chosen(lines: list[dict[str, Any]], kind: str, name: str) -> str:
    """The setting with the highest mean accuracy on validation nodes."""
    tried = [f"{kind}/{number}" for number in range(len(SETTINGS[kind]))]

    def validation(what: str) -> float:
        seeds = range(TRIED[name][1])
        found = [line["validation"] for line in of(lines, what, name) if line["seed"] in seeds]
        return float(np.mean(found)) if found else 0.0

    return max(tried, key=validation)


def chosen_jobs(lines: list[dict[str, Any]], quick: bool) -> list[Job]:
    """All seeds of the chosen settings."""
    seeds, asked = range(2 if quick else SEEDS), parts()
    names = [name for name in reversed(CITATIONS) if name in asked]
    pairs = [(kind, name) for name in names for kind in reversed(SETTINGS)]
    return [(chosen(lines, kind, name), name, seed) for kind, name in pairs for seed in seeds]


def alone() -> None:
    """One thread a job."""
    torch.set_num_threads(1)


def done_job(job: Job, quick: bool) -> dict[str, Any]:
    """What one fit scores, and how long it took."""
    what, name, seed = job
    start = time.perf_counter()
    found = SCORES.get(what.split("/")[0], node_score)(what, name, seed, quick)
    seconds = round(time.perf_counter() - start, 1)
    return {"what": what, "data": name, "seed": seed, **found, "s": seconds}


def of(lines: list[dict[str, Any]], what: str, name: str) -> list[dict[str, Any]]:
    """The jobs of one row of a table."""
    return [line for line in lines if (line["what"], line["data"]) == (what, name)]


def node_table(lines: list[dict[str, Any]]) -> None:
    rows = []
    for name, published in CITATIONS.items():
        for kind, bar in zip(SETTINGS, published, strict=True):
            if not of(lines, f"{kind}/0", name):
                continue
            mine = of(lines, chosen(lines, kind, name), name)
            found = [spread([100 * line[k] for line in mine], 1) for k in ("accuracy", "by_loss")]
            seconds = f"{np.mean([line['s'] for line in mine]):.1f}"
            settings = SETTINGS[kind][int(chosen(lines, kind, name).split("/")[1])]
            own = ", ".join(f"{key} {value:g}" for key, value in settings.items())
            rows.append([name, kind, f"{bar:.1f}", *found, str(len(mine)), seconds, own])
    columns = "data|network|published|test accuracy, %|epoch by loss alone|seeds|s a fit|chosen"
    print_table("Nodes of citation networks", columns.split("|"), rows)


def link_table(lines: list[dict[str, Any]]) -> None:
    tried = [of(lines, f"links/{n}", "links") for n in range(len(LINKS))]
    if not all(tried):
        return
    best = int(np.argmax([np.mean([line["validation"] for line in found]) for found in tried]))
    mine, own = tried[best], ", ".join(f"{key} {value:g}" for key, value in LINKS[best].items())
    auc, ap = (spread([100 * line[key] for line in mine], 1) for key in ("auc", "ap"))
    seconds = f"{np.mean([line['s'] for line in mine]):.1f}"
    columns = ["data", "published AUC / AP", "AUC, %", "AP, %", "seeds", "s a fit", "chosen"]
    rows = [["cora", "91.4 / 92.6", auc, ap, str(len(mine)), seconds, own]]
    print_table("Links of Cora", columns, rows)


def graph_table(lines: list[dict[str, Any]]) -> None:
    rows = []
    for name, published in MOLECULES.items():
        if not of(lines, "curve/0", name):
            continue
        numbers = range(len(GRAPHS[name]))
        curves = [[x["curve"] for x in of(lines, f"curve/{n}", name)] for n in numbers]
        curves = [found for found in curves if found]
        means = [np.mean(found, axis=0) for found in curves]  # of as many epochs as each has
        setting = int(np.argmax([mean.max() for mean in means]))
        best = [100 * curve[means[setting].argmax()] for curve in curves[setting]]
        tried = [
            [x for n in numbers for x in of(lines, f"inner/{n}", name) if x["seed"] == k]
            for k in range(FOLDS)
        ]
        inner = [
            100 * max(fold, key=lambda x: x["validation"])["accuracy"] for fold in tried if fold
        ]
        seconds = f"{np.mean([x['s'] for x in of(lines, 'curve/0', name)]):.1f}"
        rows.append([name, f"{published:.1f}", spread(best, 1), spread(inner, 1), seconds])
    columns = ["data", "published", "paper's protocol, %", "inner validation, %", "s a fold"]
    print_table("Graphs, ten folds", columns, rows)


def citations(name: str) -> tuple[Graph, dict[str, np.ndarray]]:
    """The graph with its labels, and the public split."""
    with np.load(folder() / "planetoid" / f"{name}.npz") as file:
        parts = file["feat_data"], file["feat_indices"].astype(np.int64), file["feat_indptr"]
        x = csr_array(parts, shape=tuple(file["feat_shape"]))
        labels = file["labels"].astype(np.int64)
        masks = {part: file[f"{part}_mask"] for part in ("train", "val", "test")}
        graph = Graph(file["edges"], x, labels, nodes=np.arange(len(labels)))
    return graph, masks


class ChosenEpochs(Callback):
    """Accuracy where validation loss and accuracy were both at their best, and where the loss was.

    As Veličković et al.: the training ends when neither was for ``PATIENCE`` epochs.
    """

    def __init__(self, model: Any, graph: Graph, masks: dict[str, np.ndarray]) -> None:
        self.model, self.graph, self.masks = model, graph, masks
        self.loss, self.accuracy, self.last, self.found = np.inf, 0.0, 0, {}

    def on_fit_start(self, state: Any) -> None:
        device = next(state.net.parameters()).device
        self.packed = next(self.model.adapter_.blocks(self.graph[:], np.float32)).to(device)
        self.y = torch.from_numpy(self.graph.y).to(device)
        self.rows = {k: torch.from_numpy(v.nonzero()[0]).to(device) for k, v in self.masks.items()}

    @torch.no_grad()
    def on_epoch_end(self, state: Any) -> None:
        was = state.net.training
        scores = state.net.eval()(self.packed)
        state.net.train(was)
        right = (scores.argmax(1) == self.y).double()
        val = self.rows["val"]
        loss = torch.nn.functional.cross_entropy(scores[val], self.y[val])
        now = torch.stack([loss.double(), right[val].mean(), right[self.rows["test"]].mean()])
        self.judge(state, *now.tolist())

    def judge(self, state: Any, loss: float, accuracy: float, test: float) -> None:
        if loss <= self.loss or accuracy >= self.accuracy:
            self.last = state.epoch
            if loss <= self.loss:
                self.found["by_loss"] = test
            if loss <= self.loss and accuracy >= self.accuracy:
                self.found |= {"accuracy": test, "validation": accuracy, "epoch": state.epoch}
            self.loss, self.accuracy = min(loss, self.loss), max(accuracy, self.accuracy)
        elif state.epoch - self.last >= PATIENCE:
            state.stop("neither got better")


def node_score(what: str, name: str, seed: int, quick: bool) -> dict[str, Any]:
    """Accuracy on the test nodes; the validation nodes choose the epoch."""
    kind, number = what.split("/")
    graph, masks = citations(name)
    settings = dict(SETTINGS[kind][int(number)])
    network: Any = kind
    if kind == "gat":  # some sizes are the network's alone
        torch.manual_seed(seed)
        own = ("hidden", "heads", "last_heads", "dropout", "message_dropout")
        sizes = {key: settings.pop(key) for key in own}
        network = GAT(graph.width, int(graph.y.max()) + 1, **sizes)
    model = NodeClassifier(
        network=network, epochs=40 if quick else EPOCHS, **settings, random_state=seed
    )
    rule = ChosenEpochs(model, graph, masks)
    model.training = Training(validation=0, callbacks=[rule], watch=False, verbose=False)
    model.fit(graph[masks["train"]])
    return rule.found


def link_scores(what: str, name: str, seed: int, quick: bool) -> dict[str, Any]:
    """AUC and average precision on hidden links against as many pairs without; seed: the split."""
    graph, _ = citations("cora")
    random = np.random.default_rng(seed)
    order = random.permutation(len(graph.edges))
    n_test, n_val = len(order) // 10, len(order) // 20
    test, val, train = np.split(order, [n_test, n_test + n_val])
    seen = graph.replaced(np.sort(train))
    apart = pairs_without(graph, n_test + n_val, random)
    held = np.concatenate([graph.edges[val], apart[n_test:]])
    y_held = np.repeat([1, 0], [n_val, n_val])
    model = LinkPredictor(
        **LINKS[int(what.split("/")[1])],
        epochs=20 if quick else 200,
        random_state=seed,
        training=Training(
            validation=(seen.pairs(held), y_held), patience=50, watch=False, verbose=False
        ),
    ).fit(seen)
    validation = average_precision_score(y_held, model.predict_proba(seen, held)[:, 1])
    pairs = np.concatenate([graph.edges[test], apart[:n_test]])
    y = np.repeat([1, 0], [n_test, n_test])
    p = model.predict_proba(seen, pairs)[:, 1]
    ap = float(average_precision_score(y, p))
    auc = model.score(seen.pairs(pairs), y)
    return {"auc": auc, "ap": ap, "validation": float(validation)}


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


def molecules(name: str) -> tuple[Graphs, np.ndarray]:
    """The graphs with one-hot labels of their nodes, and each one's fold."""
    path = folder() / "tu-graphs" / f"{name}.npz"
    with np.load(path) as file:
        fold = file["fold"]
    return read_graphs(path), fold


class TestCurve(Callback):
    """Accuracy on the test graphs every few steps, for the paper's protocol."""

    def __init__(self, model: Any, X: Graphs, codes: np.ndarray, every: int) -> None:
        self.model, self.X, self.codes, self.every = model, X, codes, every
        self.scores: list[float] = []

    def on_epoch_end(self, state: Any) -> None:
        if state.epoch % self.every:
            return
        self.model.module_ = state.net
        was = state.net.training
        found = self.model._outputs(self.X).argmax(1).numpy() == self.codes
        self.scores.append(float(found.mean()))
        state.net.train(was)


def fold_scores(what: str, name: str, k: int, quick: bool) -> dict[str, Any]:
    """Test accuracy along a training on nine folds, or that of an inner choice."""
    kind, number = what.split("/")
    data, fold = molecules(name)
    test, train = data[fold == k], data[fold != k]
    own, steps = GRAPHS[name][int(number)], 40 if quick else STEPS[name]
    a_pass = -(-len(train) // own["batch_size"])
    quiet = {
        "watch": False,
        "verbose": False,
        "device": "cpu",
        "schedule": ("StepLR", {"step_size": steps // 6, "gamma": 0.5}),
    }
    model = GraphClassifier(network="gin", random_state=k, epochs=-(-steps // a_pass), **own)
    if kind == "inner":
        held = np.random.default_rng(k).permutation(len(train)) < len(train) // 10
        inner = train[held]
        model.training = Training(validation=(inner, inner.y), patience=model.epochs, **quiet)
        model.fit(train[~held])
        return {"accuracy": model.score(test, test.y), "validation": model.score(inner, inner.y)}
    codes, every = np.searchsorted(np.unique(data.y), test.y), max(1, STEPS_A_POINT // a_pass)
    curve = TestCurve(model, test, codes, every)
    model.training = Training(validation=0, callbacks=[curve], **quiet)
    model.fit(train)
    return {"curve": curve.scores}


SCORES = {"curve": fold_scores, "inner": fold_scores, "links": link_scores}
