"""Linear models and ensembles on the same 20 fixed splits, beside the published MC dropout."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from castalia.models.dense import DistributionRegressor, MLPRegressor
from castalia.models.ensemble import Bagging, DeepEnsemble, GradientBoost
from castalia.models.linear import LinearRegression, Ridge
from castalia.train import Training
from evidence.regression import PUBLISHED, SPLITS, load
from evidence.rows import folder, print_table, spread

EPOCHS = 150


def network(kind: type, epochs: int) -> Any:
    """One hidden layer of 50, as the published one has, without a search."""
    training = Training(weight_decay=1e-4, schedule="cosine", validation=0, verbose=False)
    return kind(hidden=(50,), epochs=epochs, batch_size=32, lr=3e-3, training=training)


def models(epochs: int) -> dict[str, Callable[[int], Any]]:
    """What is compared; each is made for a seed."""
    deep = network(DistributionRegressor, epochs)
    return {
        "LinearRegression": lambda seed: LinearRegression(singular="min_norm"),
        "Ridge": lambda seed: make_pipeline(StandardScaler(), Ridge(alpha=1.0)),
        "GradientBoost": lambda seed: GradientBoost(members=300, lr=0.1, random_state=seed),
        "Bagging of MLPRegressor": lambda seed: Bagging(
            estimator=network(MLPRegressor, epochs), members=10, random_state=seed
        ),
        "DeepEnsemble of DistributionRegressor": lambda seed: DeepEnsemble(
            estimator=deep, members=5, random_state=seed
        ),
    }


def run(quick: bool = False) -> None:
    """RMSE and log-likelihood on the test rows, mean ± std over splits; the split is the seed."""
    splits, epochs = (2, 20) if quick else (SPLITS, EPOCHS)
    rows = []
    for name, (rmse, likelihood) in PUBLISHED.items():
        rows.append([name, "MC dropout (published)", f"{rmse:.2f}", f"{likelihood:.2f}", "20", ""])
        X, y, masks = load(folder() / "uci-regression" / f"{name}.npz")
        for title, make in models(epochs).items():
            start = time.perf_counter()
            found = [score(make(k), X, y, masks[k]) for k in range(splits)]
            errors, logs = zip(*found, strict=True)
            seconds = f"{(time.perf_counter() - start) / splits:.2f}"
            log = "" if None in logs else spread(logs, 2)
            rows.append([name, title, spread(errors, 2), log, str(splits), seconds])
    columns = ["data", "model", "test RMSE", "test log-likelihood", "splits", "s a fit"]
    print_table("Linear models and ensembles", columns, rows)


def score(model: Any, X: np.ndarray, y: np.ndarray, test: np.ndarray) -> tuple[float, float | None]:
    """RMSE and, where the model gives one, mean log-likelihood on the test rows."""
    model.fit(X[~test], y[~test])
    rmse = float(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))
    if not hasattr(model, "log_likelihood"):
        return rmse, None
    return rmse, float(np.mean(model.log_likelihood(X[test], y[test])))
