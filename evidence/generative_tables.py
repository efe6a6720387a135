"""Generative models beside closed forms and rivals: densities, score fields, anomalies.

A linear VAE beside probabilistic PCA; a denoising autoencoder's slope and field beside the exact
ones; flows beside a kernel density and a Gaussian mixture; autoencoders beside an isolation forest
on tables with planted anomalies, half of them rows of columns that do not belong together. PARTS
names what is run, of ``exact densities anomalies``.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import torch
from sklearn.datasets import make_moons
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from castalia.models.generative import (
    PCA,
    Autoencoder,
    DenoisingAutoencoder,
    NormalizingFlow,
    VariationalAutoencoder,
)
from castalia.train import Training
from evidence.kept_figures import Kept
from evidence.rows import folder, print_table, spread

SEEDS = (0, 1, 2)
PLANTED = 0.05  # share of anomalies
PARTS = os.environ.get("PARTS", "exact densities anomalies").split()
SMOOTH = Training(validation=0, schedule="cosine", average=("ema", 0.99), clip=5.0)
FLOWS: dict[str, dict[str, Any]] = {  # of which the rows that were kept back choose
    "usual": {},
    "averaged": {"training": SMOOTH},
    "wide": {"training": SMOOTH, "hidden": (128, 128), "bins": 16},
    "deep": {"training": SMOOTH, "depth": 10, "epochs": 100},
}


def run(quick: bool = False) -> None:
    """Print one table for each."""
    folder()
    kept, seeds = Kept("generative_tables"), SEEDS[:1] if quick else SEEDS
    if "exact" in PARTS:
        _exact(kept, seeds, quick)
    if "densities" in PARTS:
        _densities(kept, quick)
    if "anomalies" in PARTS:
        _anomalies(kept, seeds, quick)


def _exact(kept: Kept, seeds: tuple[int, ...], quick: bool) -> None:
    linear = [kept.find(f"linear, {s}", lambda s=s: ppca_gap(s, quick)) for s in seeds]
    slopes = [kept.find(f"slope, {s}", lambda s=s: denoising_slope(s, quick)) for s in seeds]
    fields = [kept.find(f"field, {s}", lambda s=s: field_cosine(s, quick)) for s in seeds]
    rows = [
        ["linear VAE: nats below probabilistic PCA", spread([f["gap"] for f in linear], 4), "0.01"],
        ["denoising slope: error, %", spread([f["error"] for f in slopes], 2), "2"],
        ["field on a circle: mean cosine", spread([f["cosine"] for f in fields], 3), "> 0.95"],
    ]
    print_table("Autoencoders beside closed forms", ["figure", "found", "bar"], rows)


def ppca_gap(seed: int, quick: bool) -> dict[str, float]:
    """Nats a row by which a linear VAE stays below the exact likelihood."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(1000, 2)) @ random.normal(size=(2, 5))
    X = X + 0.5 * random.normal(size=X.shape)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    training = Training(validation=0, schedule="cosine", average="ema")
    model = VariationalAutoencoder(
        code=2, hidden=(), spread="one", lr=2e-2, epochs=5 if quick else 100, training=training,
        random_state=seed,
    ).fit(X)  # fmt: skip
    values, _ = model.log_likelihood(X, samples=1000)
    return {"gap": float(PCA(components=2).fit(X).score(X) - values.mean())}


def denoising_slope(seed: int, quick: bool) -> dict[str, float]:
    """Relative error of the slope s^2 / (s^2 + sigma^2) of what comes back of Gaussian data."""
    X = np.random.default_rng(seed).normal(size=(4000, 1))
    training = Training(validation=0, schedule="cosine", average="ema")
    model = DenoisingAutoencoder(
        noise=0.5, hidden=(32,), lr=5e-3, epochs=5 if quick else 60, training=training,
        random_state=seed,
    ).fit(X)  # fmt: skip
    at = np.linspace(-1.5, 1.5, 61)[:, None]
    slope = np.polyfit(at[:, 0], np.asarray(model.reconstruct(at))[:, 0], 1)[0]
    variance = float(X.var())
    exact = variance / (variance + (0.5 * X.std()) ** 2)
    return {"slope": float(slope), "error": 100 * abs(slope / exact - 1)}


def field_cosine(seed: int, quick: bool) -> dict[str, float]:
    """Mean cosine between the steps of a denoising autoencoder and the way to a circle."""
    random = np.random.default_rng(seed)
    angle = random.uniform(0, 2 * np.pi, 3000)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    training = Training(validation=0, schedule="cosine", average="ema")
    model = DenoisingAutoencoder(
        noise=0.3, hidden=(64, 64), code=32, lr=3e-3, epochs=5 if quick else 60,
        training=training, random_state=seed,
    ).fit(X)  # fmt: skip
    turn = random.uniform(0, 2 * np.pi, 400)
    radius = np.concatenate([random.uniform(0.6, 0.9, 200), random.uniform(1.1, 1.4, 200)])
    points = radius[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    step = np.asarray(model.reconstruct(points)) - points
    way = points / radius[:, None] * (1 - radius)[:, None]
    cosine = (step * way).sum(1) / np.linalg.norm(step, axis=1) / np.linalg.norm(way, axis=1)
    return {"cosine": float(cosine.mean())}


def _densities(kept: Kept, quick: bool) -> None:
    _flows(kept, quick)
    rows = []
    for name, X in tables(quick).items():
        rivals = kept.find(f"rivals, {name}", lambda X=X: densities(X, quick))
        flows = {flow: kept.figures[f"flow, {name}, {flow}"] for flow in FLOWS}
        best = max(flows, key=lambda flow: flows[flow]["kept_back"])
        cells = [flows[best]["test"], flows["usual"]["test"], rivals["mixture"], rivals["kernel"]]
        rows.append([name, str(len(X)), str(X.shape[1]), best, *(f"{c:.3f}" for c in cells)])
    columns = ["data", "rows", "columns", "flow chosen", "NormalizingFlow", "with its defaults",
               "Gaussian mixture", "kernel density"]  # fmt: skip
    print_table("Test log-likelihood, nats a row", columns, rows)


def _flows(kept: Kept, quick: bool) -> None:
    """Fit all flows, each in a process of one thread."""
    asked = [(name, flow) for name in tables(quick) for flow in FLOWS]
    left = [pair for pair in asked if "flow, {}, {}".format(*pair) not in kept.figures]
    with ProcessPoolExecutor(os.cpu_count(), initializer=torch.set_num_threads, initargs=(1,)) as p:
        running = {pair: p.submit(flow_likelihood, *pair, quick) for pair in left}
        for (name, flow), found in running.items():
            kept.find(f"flow, {name}, {flow}", found.result)


def halves(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Four fifths of the rows, and the fifth that is tested."""
    order = np.random.default_rng(0).permutation(len(X))
    return X[order[len(X) // 5 :]], X[order[: len(X) // 5]]


def flow_likelihood(name: str, flow: str, quick: bool) -> dict[str, float]:
    """Mean log-density of the tested rows, and of a tenth of the others that was kept back."""
    train, test = halves(tables(quick)[name])
    few = len(train) // 10
    settings = {"epochs": 200, "batch_size": 128, "lr": 1e-3, "random_state": 0, **FLOWS[flow]}
    model = NormalizingFlow(**settings | ({"epochs": 2} if quick else {})).fit(train[few:])
    return {"kept_back": float(model.score(train[:few])), "test": float(model.score(test))}


def densities(X: np.ndarray, quick: bool) -> dict[str, float]:
    """Mean log-density of the tested rows, of each rival fitted to the others."""
    train, test = halves(X)
    sizes = (1, 4) if quick else (1, 2, 4, 8, 16, 24, 32)
    mixtures = [GaussianMixture(k, reg_covar=1e-6, random_state=0).fit(train) for k in sizes]
    best = min(mixtures, key=lambda mixture: mixture.bic(train))
    widths = {"bandwidth": np.geomspace(0.02, 1.0, 4 if quick else 12)}
    scale = train.std(axis=0)
    kernel = GridSearchCV(KernelDensity(), widths, cv=3).fit(train / scale)
    value = kernel.best_estimator_.score_samples(test / scale).mean() - np.log(scale).sum()
    return {
        "mixture": float(best.score(test)),
        "kernel": float(value),
        "components": best.n_components,
    }


def tables(quick: bool) -> dict[str, np.ndarray]:
    """Toys in two dimensions, white wines, and an hourly table of electric loads."""
    random, n = np.random.default_rng(0), 200 if quick else 4000
    turn = np.sqrt(random.uniform(size=n)) * 3 * np.pi
    spiral = np.column_stack([turn * np.cos(turn), turn * np.sin(turn)]) / 4
    found = {
        "moons": make_moons(n, noise=0.06, random_state=0)[0],
        "spiral": spiral + 0.05 * random.normal(size=spiral.shape),
        "white wines": noisy(np.unique(wines(), axis=0), random),  # a fifth of them is there twice
        "electric loads": noisy(loads(), random)[:: 1 if quick else 3],
    }
    return {name: X[:n] for name, X in found.items()} if quick else found


def noisy(X: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Rows with noise of a hundredth of a deviation: rounded numbers have no density."""
    return X + 0.01 * X.std(axis=0) * random.normal(size=X.shape)


def wines() -> np.ndarray:
    """Eleven measurements of 4,898 white wines."""
    return np.loadtxt(folder() / "tables" / "winequality-white.csv", delimiter=",")[:, :11]


def loads() -> np.ndarray:
    """Six loads and the oil temperature of a transformer, by the hour."""
    path = folder() / "time-series" / "ETTh1.csv.gz"
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=range(1, 8))


def concrete() -> np.ndarray:
    """Nine columns of 1,030 mixtures of concrete."""
    return np.load(folder() / "uci-regression" / "concrete.npz")["data"]


def _anomalies(kept: Kept, seeds: tuple[int, ...], quick: bool) -> None:
    rows = []
    for name, make in {"white wines": wines, "electric loads": loads, "concrete": concrete}.items():
        X = make()[:: 12 if quick else 2]
        each = [
            kept.find(f"anomalies, {name}, {s}", lambda X=X, s=s: anomalies(X, s, quick))
            for s in seeds
        ]
        cells = [spread([f[k] for f in each]) for k in ("autoencoder", "forest")]
        rows.append([name, str(len(X)), *cells])
    print_table("Planted anomalies, AUC", ["data", "rows", "Autoencoder", "isolation forest"], rows)


def anomalies(X: np.ndarray, seed: int, quick: bool) -> dict[str, float]:
    """AUC of both on a half of the rows with planted anomalies, fitted to the other half."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(X))
    train, test = X[order[: len(X) // 2]], X[order[len(X) // 2 :]].copy()
    planted = random.random(len(test)) < PLANTED
    torn = random.permuted(X[random.integers(len(X), size=planted.sum())], axis=0)
    wide = random.uniform(X.min(axis=0), X.max(axis=0), size=torn.shape)
    test[planted] = np.where(random.random(len(torn))[:, None] < 0.5, torn, wide)
    ours: Any = Autoencoder(epochs=5 if quick else 100, hidden=(64,), random_state=seed).fit(train)
    forest = IsolationForest(random_state=seed).fit(train)
    return {
        "autoencoder": float(roc_auc_score(planted, -ours.score_samples(test))),
        "forest": float(roc_auc_score(planted, -forest.score_samples(test))),
    }
