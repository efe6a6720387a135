"""Learning paradigms: what each gains over what one would do without it.

Every comparison has settings that were fixed on other seeds: those of the tests of the course
(seeds below 100) are tried here with twenty seeds from 100 on. Nothing was chosen by these figures.
All rows are reported. MNIST is needed for two of them (CASTALIA_DATA). PARADIGMS names the parts
that are run, all by default.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from torch.func import functional_call

from castalia.data.images import load_images
from castalia.models.dense import MLPClassifier, MLPRegressor
from castalia.models.meta import MAML, AttentiveNeuralProcess
from castalia.models.meta.maml import MetaLoss
from castalia.models.meta.starting_weights import adapted, task_loss
from castalia.models.strategies import (
    ActiveLearning,
    Compress,
    Curriculum,
    Distill,
    FederatedAveraging,
    OnlineLearning,
    SemiSupervised,
    WeakSupervision,
)
from castalia.objectives import SquaredError
from castalia.protocols import Batch
from castalia.testing.toys import moons
from castalia.train import Training
from evidence.kept_figures import Kept
from evidence.rows import folder, print_table, spread

PLAIN = Training(validation=0, device="cpu")
SEEDS = range(100, 120)
SINE_EPOCHS = 150  # of 200 steps


def net(**settings: Any) -> MLPClassifier:
    """A small perceptron that is trained on every row."""
    return MLPClassifier(**{"hidden": (16,), "training": PLAIN, **settings})


# ---- twenty seeds that nobody had looked at ----


def corners(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four clouds; opposite ones are a class."""
    random = np.random.default_rng(seed)
    centre = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])[np.arange(n) % 4]
    X = np.repeat(centre, 10, axis=1) + 1.3 * random.normal(size=(n, 20))
    return X, (centre.prod(axis=1) > 0).astype(int)


def joint(seed: int) -> tuple[float, float]:
    """PAR-08: twelve labels and 296 rows without, against the labels alone."""
    (X, y), unseen = corners(308, seed), corners(500, seed + 1000)
    plain = net(epochs=40, lr=0.02, random_state=seed)
    alone = clone(plain).set_params(epochs=60).fit(X[:12], y[:12]).score(*unseen)
    model = SemiSupervised(plain, factor=0.2, random_state=seed)
    return alone, model.fit(X[:12], y[:12], unlabelled=X[12:]).score(*unseen)


def federated(seed: int) -> tuple[float, float]:
    """PAR-19: three clients of unlike size, against one model of all rows."""
    (X, y), unseen = moons(300, seed=seed), moons(500, seed=seed + 1000)
    plain = net(lr=0.03, epochs=30, batch_size=16)
    central = clone(plain).set_params(random_state=seed).fit(X, y).score(*unseen)
    model = FederatedAveraging(plain, rounds=15, local_epochs=2, random_state=seed)
    model.fit(X, y, groups=np.repeat([0, 1, 2], [40, 110, 150]))
    return central, model.score(*unseen)


def ordered(seed: int) -> tuple[float, float]:
    """PAR-22: clear rows first, against a random order."""
    random = np.random.default_rng(seed)
    X, blur = random.normal(size=(1400, 20)), 12 * random.random(1400)
    clear = (X[:, :4].sum(axis=1) > 0).astype(int)
    y = (X[:, :4].sum(axis=1) + blur * random.normal(size=1400) > 0).astype(int)
    plain = net(hidden=(), epochs=5, lr=0.02)

    def score(order: str) -> float:
        model = Curriculum(plain, order=order, begin=0.2, ramp=1.0, random_state=seed)
        model.fit(X[:400], y[:400], groups=blur[:400])
        return float(model.score(X[400:], clear[400:]))

    return score("random"), score("given")


def taught(seed: int) -> tuple[float, float]:
    """PAR-23: 80 careless labels and a forest's opinion, against the labels alone."""
    teacher = RandomForestClassifier(50, min_samples_leaf=3, random_state=seed)
    teacher.fit(*moons(600, 0.2, seed + 1000))
    unseen, (X, y) = moons(1000, 0.2, seed + 2000), moons(80, 0.2, seed)
    y = np.where(np.random.default_rng(seed + 3000).random(80) < 0.25, 1 - y, y)
    plain = net(epochs=60, lr=0.03)
    alone = clone(plain).set_params(random_state=seed).fit(X, y).score(*unseen)
    student = Distill(plain, teacher=teacher, share=0.9, random_state=seed).fit(X, y)
    return alone, student.score(*unseen)


def corrected(seed: int) -> tuple[float, float]:
    """PAR-18: 45 % of the labels of one class are wrong; the law is counted, against ignored."""
    (X, y), unseen = moons(400, 0.1, seed), moons(1000, 0.1, seed + 1000)
    wrong = (y == 0) & (np.random.default_rng(seed + 3000).random(400) < 0.45)
    labels, plain = np.where(wrong, 1, y), net(epochs=40, lr=0.02)
    alone = clone(plain).set_params(random_state=seed).fit(X, labels).score(*unseen)
    return alone, WeakSupervision(plain, random_state=seed).fit(X, labels).score(*unseen)


def asked_first(seed: int) -> tuple[float, float]:
    """PAR-16: mean regret after 100 rows and after 800; lower is better."""
    X, y = moons(800, 0.1, seed)
    model = OnlineLearning(net(epochs=40, lr=0.02), block=8, random_state=seed).fit(X, y)
    regret = model.regret(X, y) / np.arange(1, 801)
    return float(regret[99]), float(regret[-1])


PAIRS: dict[str, tuple[Callable[[int], tuple[float, float]], bool]] = {
    "PAR-08 SemiSupervised, joint": (joint, True),
    "PAR-19 FederatedAveraging (against central)": (federated, True),
    "PAR-22 Curriculum (against a random order)": (ordered, True),
    "PAR-23 Distill": (taught, True),
    "PAR-18 WeakSupervision, counted law": (corrected, True),
    "PAR-16 OnlineLearning, regret at 100 and 800 rows": (asked_first, False),
}


def fresh_seeds(kept: Kept, quick: bool) -> None:
    """Print both sides of each pair, and how often the strategy was better."""
    rows, seeds = [], SEEDS[:1] if quick else SEEDS
    for name, (pair, higher) in PAIRS.items():
        found = kept.find(name, lambda pair=pair: {"pairs": [pair(seed) for seed in seeds]})
        before, after = np.array(found["pairs"]).T
        better = int(((after > before) if higher else (after < before)).sum())
        gain = spread(after - before)
        rows.append([name, spread(before), spread(after), gain, f"{better} of {len(before)}"])
    columns = ["comparison", "without", "with", "difference", "better in"]
    print_table("Learning paradigms, twenty other seeds", columns, rows)


# ---- labels that are asked for ----


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Three tables of scikit-learn's."""
    made = make_classification(
        1500, 20, n_informative=6, n_clusters_per_class=3, class_sep=1.5, random_state=0
    )
    return {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits": load_digits(return_X_y=True),
        "6 of 20 columns": made,
    }


def labels_needed(X: Any, y: Any, query: str, seed: int, goal: float, most: int) -> int:
    """Return how many labels it takes to be right this often on held-out rows."""
    pool, held, labels, truth = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
    first = np.concatenate([np.flatnonzero(labels == k)[:2] for k in np.unique(labels)])
    free = np.ones(len(pool), dtype=bool)
    free[first] = False
    model = ActiveLearning(net(hidden=(32,), epochs=40, lr=0.01), query=query, random_state=seed)
    model.fit(pool[first], labels[first])
    while model.score(held, truth) < goal and model.labels_ < most:
        rows = np.flatnonzero(free)[model.ask(pool[free], min(10, int(free.sum())))]
        free[rows] = False
        model.tell(pool[rows], labels[rows])
    return int(model.labels_)


def active(kept: Kept, quick: bool) -> None:
    """Print how many labels margins need, and chance, for the same accuracy."""
    rows, goals = [], {"breast cancer": 0.96, "digits": 0.93, "6 of 20 columns": 0.90}
    for name, (X, y) in tables().items():
        most, seeds = (30, range(1)) if quick else (400, range(5))

        def work(X: Any = X, y: Any = y, name: str = name, most: int = most) -> dict[str, Any]:
            return {
                q: [labels_needed(X, y, q, s, goals[name], most) for s in seeds]  # noqa: B023
                for q in ("margin", "random")
            }

        found = kept.find(f"active, {name}", work)
        share = np.mean(found["margin"]) / np.mean(found["random"])
        rows.append([name, f"{100 * goals[name]:.0f}", spread(found["margin"], 0),
                     spread(found["random"], 0), f"{share:.2f}"])  # fmt: skip
    columns = ["table", "% right", "labels by margin", "at random", "ratio"]
    print_table("Active learning, five seeds, at most 400 labels", columns, rows)


# ---- families of functions ----


def sines(tasks: int, points: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sines of height 0.1 to 5 and any phase on [-5, 5], as in the paper of MAML."""
    random = np.random.default_rng(seed)
    x = random.uniform(-5, 5, (tasks, points))
    high, shift = random.uniform(0.1, 5, (tasks, 1)), random.uniform(0, np.pi, (tasks, 1))
    return x[:, :, None], high * np.sin(x + shift)


def few_points(quick: bool) -> dict[str, Any]:
    """Squared error on new sines after one step on five points, from three starts."""
    training = Training(schedule="cosine", validation=0, watch=False)
    X, y = sines(60 if quick else 20_000, 20, 0)
    new, truth = sines(20 if quick else 600, 25, 1)

    def start(epochs: int, lr: float, **settings: Any) -> MAML:
        hidden = settings.pop("hidden", (40, 40))
        plain = MLPRegressor(hidden=hidden, training=training)
        rate = {"inner_lr": 0.1, "tasks": 100, "random_state": 0, **settings}
        return MAML(plain, epochs=1 if quick else epochs, lr=lr, **rate).fit(X, y)

    def errors(model: MAML) -> list[float]:
        gaps = [
            [np.mean((model.adapt(a[:5], b[:5], steps).predict(a[5:]) - b[5:]) ** 2)
             for steps in (0, 1, 10)]
            for a, b in zip(new, truth, strict=True)
        ]  # fmt: skip
        return [float(mean) for mean in np.mean(gaps, axis=0)]

    pretrained = start(1, 1e-9)
    rows = X.reshape(-1, 1), y.ravel()
    whole = clone(pretrained.estimator).set_params(epochs=1 if quick else 5, random_state=0)
    pretrained.module_.load_state_dict(whole.fit(*rows).module_.state_dict())
    long = SINE_EPOCHS
    return {
        "MAML": errors(start(long, 2e-3)),
        "MAML, learnt rates": errors(start(long, 2e-3, rates="learnt")),
        "MAML, learnt rates, 4 x 80": errors(start(long, 2e-3, rates="learnt", hidden=(80,) * 4)),
        "pretrained on all tasks": errors(pretrained),
        "random": errors(start(1, 1e-9)),
    }


def side_by_side(quick: bool) -> dict[str, float]:
    """Return milliseconds of a meta-gradient by vmap and by a Python loop over 25 tasks."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = [torch.nn.Linear(1, 40), torch.nn.ReLU(), torch.nn.Linear(40, 40), torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers, torch.nn.Linear(40, 1)).to(device)
    x, y = torch.randn(2, 25, 15, 1, device=device)
    loss, weights = SquaredError(), dict(module.named_parameters())

    def together() -> torch.Tensor:
        return MetaLoss(loss, 5, 0.1, 1).terms(module, Batch(x, y), "train")["loss"]

    def one_by_one() -> torch.Tensor:
        found = []
        for a, b in zip(x, y, strict=True):
            fast = adapted(task_loss(module, loss, a[:5], b[:5]), weights, 0.1, 1)
            found.append(loss.rows(functional_call(module, fast, (a[5:],)), b[5:]).mean())
        return torch.stack(found).mean()

    def clock(step: Callable[[], torch.Tensor]) -> float:
        best = np.inf
        for _ in range(3 if quick else 30):
            start = time.perf_counter()
            step().backward()
            if device == "cuda":
                torch.cuda.synchronize()
            best = min(best, time.perf_counter() - start)
        return 1000 * float(best)

    return {"vmap": clock(together), "loop": clock(one_by_one)}


def gaussian(tasks: int, points: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Functions of a Gaussian process of length 0.5 on [-2, 2], with noise 0.1."""
    random = np.random.default_rng(seed)
    x = random.uniform(-2, 2, (tasks, points))
    gram = np.exp(-((x[:, :, None] - x[:, None]) ** 2) / 0.5) + 0.01 * np.eye(points)
    draws = np.linalg.cholesky(gram) @ random.normal(size=(tasks, points, 1))
    return x[:, :, None], draws[:, :, 0]


def exact(x: np.ndarray, y: np.ndarray, n: int) -> float:
    """Return the mean log-density of single points by the process itself, given the first n."""
    gram = np.exp(-((x - x.T) ** 2) / 0.5) + 0.01 * np.eye(len(x))
    if n == 0:
        mean, variance = np.zeros(len(y)), np.full(len(y), 1.01)
    else:
        factor, cross = cho_factor(gram[:n, :n]), gram[:n, n:]
        mean = cross.T @ cho_solve(factor, y[:n])
        variance = 1.01 - (cross * cho_solve(factor, cross)).sum(axis=0)
    z = (y[n:] - mean) ** 2 / variance
    return float(np.mean(-0.5 * (z + np.log(2 * np.pi * variance))))


def processes(quick: bool) -> dict[str, list[float]]:
    """Log-likelihood of an attentive process and of the exact one by the size of the context."""
    training = Training(schedule="cosine", validation=0, device="cpu")
    model = AttentiveNeuralProcess(
        hidden=64, context=12, epochs=1 if quick else 60, tasks=50, lr=1e-3, training=training,
        random_state=0,
    ).fit(*gaussian(100 if quick else 4000, 24, 0))  # fmt: skip
    X, y = gaussian(20 if quick else 200, 24, 1)
    found: dict[str, list[float]] = {"attentive": [], "exact": []}
    for n in (0, 2, 5, 12):
        pairs = list(zip(X, y, strict=True))
        learnt = [model.adapt(a[:n], b[:n]).log_likelihood(a[n:], b[n:]) for a, b in pairs]
        found["attentive"].append(float(np.mean(learnt)))
        found["exact"].append(float(np.mean([exact(a, b, n) for a, b in pairs])))
    return found


def print_sines(kept: Kept, quick: bool) -> None:
    """Print what few points are enough for."""
    found = kept.find("sines", lambda: few_points(quick))
    rows = [[name, *(f"{v:.2f}" for v in found[name])] for name in found if name != "seconds"]
    columns = ["start", "before", "after 1 step", "after 10"]
    print_table("Squared error on new sines, five points", columns, rows)


def print_processes(kept: Kept, quick: bool) -> None:
    """Print a neural process beside the one that drew its data."""
    found = kept.find("processes", lambda: processes(quick))
    rows = [[name, *(f"{v:.2f}" for v in found[name])] for name in ("attentive", "exact")]
    columns = ["nats a point, by known points", "0", "2", "5", "12"]
    print_table("Neural process against the Gaussian process that drew the data", columns, rows)


def print_vmap(kept: Kept, quick: bool) -> None:
    """Print how tasks side by side pay."""
    found = kept.find("vmap", lambda: side_by_side(quick))
    times = found["loop"] / found["vmap"]
    print(f"\nA meta-step of 25 tasks: {found['vmap']:.1f} ms by vmap, {times:.1f} times faster.")


# ---- digits: clients, and fewer numbers ----


def digits(quick: bool) -> tuple[Any, Any, Any, Any]:
    """MNIST as rows of numbers."""
    (X, y), (held, truth) = load_images("mnist"), load_images("mnist", "test")
    n = 500 if quick else 20_000
    flat = [part.reshape(len(part), -1) / np.float32(255) for part in (X[:n], held)]
    return flat[0], np.asarray(y[:n]), flat[1], np.asarray(truth)


def two_digits_each(y: np.ndarray) -> np.ndarray:
    """Return the client of each row: ten clients, each with two pieces of the sorted rows."""
    shards = np.array_split(np.argsort(y, kind="stable"), 20)
    groups = np.empty(len(y), dtype=int)
    for place, shard in enumerate(np.random.default_rng(0).permutation(20)):
        groups[shards[shard]] = place // 2
    return groups


CLIENTS: dict[str, dict[str, Any]] = {
    "all rows in one place, Adam, 20 passes": {"epochs": 20, "lr": 1e-3, "batch_size": 64},
    "all rows in one place, SGD, 400 passes": {"epochs": 400, "lr": 0.1, "batch_size": 100},
    "FedAvg, 20 steps a round": {"rounds": 400, "lr": 0.1, "batch_size": 100},
    "FedAvg, 5 steps a round": {"rounds": 400, "lr": 0.2, "batch_size": 400},
    "FedProx, 20 steps a round": {"rounds": 400, "lr": 0.1, "batch_size": 100, "proximal": 0.1},
}


def clients(name: str, quick: bool) -> dict[str, float]:
    """Ten clients with two digits each, mostly, or all rows in one place."""
    X, y, held, truth = digits(quick)
    settings = dict(CLIENTS[name])
    rounds, proximal = settings.pop("rounds", 0), settings.pop("proximal", 0.0)
    optimizer = "adam" if "Adam" in name else "sgd"
    training = Training(optimizer=optimizer, validation=0, device="cpu")
    plain = net(hidden=(128,), training=training, **settings).set_params(random_state=0)
    if not rounds:
        model = plain.set_params(epochs=2) if quick else plain
        return {"right": 100 * float(model.fit(X, y).score(held, truth))}
    rounds = 2 if quick else rounds
    both = FederatedAveraging(plain, rounds=rounds, local_epochs=1, proximal=proximal)
    both.set_params(random_state=0).fit(X, y, groups=two_digits_each(y))
    return {"right": 100 * float(both.score(held, truth))}


def smaller(quick: bool) -> dict[str, Any]:
    """Bytes, accuracy and milliseconds for 10,000 rows, of each way to compress."""
    X, y, held, truth = digits(quick)
    plain = net(hidden=(256, 128), epochs=1 if quick else 10, lr=1e-3, batch_size=128)
    found: dict[str, Any] = {}
    for name, settings in {
        "as it is": None, "int8": {"method": "int8"}, "svd, 95 % of the energy": {"keep": 0.95},
        "pruned to a fifth": {"method": "prune", "keep": 0.2},
    }.items():  # fmt: skip
        model: Any = clone(plain) if settings is None else Compress(plain, **settings)
        model.set_params(random_state=0).fit(X, y)
        size = getattr(model, "sizes_", None)
        start = time.perf_counter()
        score = model.score(held, truth)
        took = 1000 * (time.perf_counter() - start)
        found[name] = [0 if size is None else size["before"] / size["after"], 100 * score, took]
    return found


def print_clients(kept: Kept, quick: bool) -> None:
    """Print federated digits beside those in one place."""
    rows = []
    for name in CLIENTS:
        found = kept.find(name, lambda name=name: clients(name, quick))
        rows.append([name, f"{found['right']:.2f}", f"{found['seconds']:.0f}"])
    columns = ["MNIST, 20,000 rows, ten clients of two digits each", "% right", "s"]
    print_table("Clients", columns, rows)


def print_smaller(kept: Kept, quick: bool) -> None:
    """Print compressed digits."""
    found = kept.find("smaller", lambda: smaller(quick))
    rows = [
        [name, f"{v[0]:.1f}" if v[0] else "", f"{v[1]:.2f}", f"{v[2]:.0f}"]
        for name, v in found.items()
        if name != "seconds"
    ]
    columns = ["MNIST, 784-256-128-10", "times smaller", "% right", "ms for 10,000 rows"]
    print_table("Compressed", columns, rows)


PARTS = {
    "seeds": fresh_seeds,
    "active": active,
    "sines": print_sines,
    "processes": print_processes,
    "vmap": print_vmap,
    "clients": print_clients,
    "smaller": print_smaller,
}


def run(quick: bool = False) -> None:
    """Print every comparison, or those that PARADIGMS names."""
    folder()
    kept = Kept("paradigms")
    for name in os.environ.get("PARADIGMS", " ".join(PARTS)).split():
        PARTS[name](kept, quick)
