"""Gaussian processes on the UCI regressions with the 20 fixed splits of Gal & Ghahramani (2016).

Beside them: scikit-learn's exact process with the same kernel, on the same rows, and the published
MC dropout of `evidence/regression.py`. A process for each core.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.gaussian_process import GaussianProcessRegressor as SklearnProcess
from sklearn.gaussian_process import kernels

from castalia.models.kernel import (
    RBF,
    Constant,
    GaussianProcessRegressor,
    Matern,
    SparseGaussianProcess,
    White,
)
from evidence.regression import PUBLISHED, load
from evidence.rows import folder, print_table, spread

Scores = tuple[float, float, float]  # RMSE, log-likelihood, seconds


def models(width: int, seed: int) -> dict[str, Any]:
    """What is compared, on standardised columns."""
    scales = (width**0.5,) * width
    theirs = kernels.ConstantKernel() * kernels.RBF(scales) + kernels.WhiteKernel(0.1)
    return {
        "GaussianProcessRegressor": GaussianProcessRegressor(random_state=seed),
        "the same, Matern 3/2": GaussianProcessRegressor(
            kernel=Constant() * Matern(scales, ard=True, nu=1.5) + White(0.1), random_state=seed
        ),
        "SparseGaussianProcess(inducing=100)": SparseGaussianProcess(
            kernel=Constant() * RBF(scales, ard=True) + White(0.1), random_state=seed
        ),
        "scikit-learn, RBF": SklearnProcess(theirs, normalize_y=True),
    }


def run(quick: bool = False) -> None:
    """RMSE and log-likelihood on the test rows, mean ± std over splits; the split is the seed."""
    tables = {name: load(folder() / "uci-regression" / f"{name}.npz") for name in PUBLISHED}
    kinds = list(models(1, 0))
    tasks = [
        (name, model, split)
        for model in reversed(kinds)  # scikit-learn's take longest
        for name in PUBLISHED
        for split in range(1 if quick else 5 if model.startswith("scikit-learn") else 20)
    ]
    found: dict[tuple[str, str], list[Scores]] = {}
    workers = Parallel(n_jobs=-1, return_as="generator_unordered")
    for name, model, scores in workers(delayed(score)(*task, *tables[task[0]]) for task in tasks):
        found.setdefault((name, model), []).append(scores)
        print(name, model, *(f"{part:.3f}" for part in scores), flush=True)
    rows = []
    for name, (rmse, likelihood) in PUBLISHED.items():
        rows.append([name, "MC dropout (published)", f"{rmse:.2f}", f"{likelihood:.2f}", "20", ""])
        for model in kinds:
            errors, logs, seconds = zip(*found[name, model], strict=True)
            texts = (spread(errors, 2), spread(logs, 2), str(len(errors)), f"{min(seconds):.1f}")
            rows.append([name, model, *texts])
    columns = ["data", "model", "test RMSE", "test log-likelihood", "splits", "s, quickest fit"]
    print_table("Gaussian processes", columns, rows)


def score(
    name: str, kind: str, split: int, X: np.ndarray, y: np.ndarray, masks: np.ndarray
) -> tuple[str, str, Scores]:
    """RMSE and mean log-likelihood on the test rows, in the units of y, on one thread."""
    torch.set_num_threads(1)
    test, start = masks[split], time.perf_counter()
    mean, spreads = X[~test].mean(axis=0), X[~test].std(axis=0)
    X = (X - mean) / np.where(spreads > 0, spreads, 1.0)
    model = models(X.shape[1], split)[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[~test], y[~test])
    seconds = time.perf_counter() - start
    middle, std = model.predict(X[test], return_std=True)
    z = (y[test] - middle) / std
    log = np.mean(-0.5 * z**2 - np.log(std) - 0.5 * math.log(2 * math.pi))
    return name, kind, (float(np.sqrt(np.mean((middle - y[test]) ** 2))), float(log), seconds)
