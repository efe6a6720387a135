"""Gaussian processes on the UCI regressions with the 20 fixed splits of Gal & Ghahramani (2016).

Beside them: scikit-learn's exact process with the same kernel, on the same rows, and the published
MC dropout of `evidence/regression.py`.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np
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
    splits = 1 if quick else 20
    rows = []
    for name, (rmse, likelihood) in PUBLISHED.items():
        rows.append([name, "MC dropout (published)", f"{rmse:.2f}", f"{likelihood:.2f}", "20", ""])
        X, y, masks = load(folder() / "uci-regression" / f"{name}.npz")
        for model in models(X.shape[1], 0):
            if model.startswith("scikit-learn") and not quick:
                count = min(splits, 5)  # they take minutes
            else:
                count = splits
            start = time.perf_counter()
            found = [score(model, X, y, masks[k], k) for k in range(count)]
            errors, logs = zip(*found, strict=True)
            seconds = f"{(time.perf_counter() - start) / count:.1f}"
            rows.append([name, model, spread(errors, 2), spread(logs, 2), str(count), seconds])
            print("  ".join(rows[-1]), flush=True)
    columns = ["data", "model", "test RMSE", "test log-likelihood", "splits", "s a fit"]
    print_table("Gaussian processes", columns, rows)


def score(
    name: str, X: np.ndarray, y: np.ndarray, test: np.ndarray, seed: int
) -> tuple[float, float]:
    """RMSE and mean log-likelihood on the test rows, in the units of y."""
    mean, spreads = X[~test].mean(axis=0), X[~test].std(axis=0)
    X = (X - mean) / np.where(spreads > 0, spreads, 1.0)
    model = models(X.shape[1], seed)[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[~test], y[~test])
    middle, std = model.predict(X[test], return_std=True)
    z = (y[test] - middle) / std
    log = np.mean(-0.5 * z**2 - np.log(std) - 0.5 * math.log(2 * math.pi))
    return float(np.sqrt(np.mean((middle - y[test]) ** 2))), float(log)
