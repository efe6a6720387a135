"""ETTh1, multivariate: seven channels of a transformer station, forecast 96 and 720 hours ahead.

Split and scaling as usual for this set: 12, 4 and 4 months of 30 days, standardised by the first
twelve, errors in standardised units over every test window. All systems forecast all channels.

Published mean squared errors (context 336): DLinear 0.375 and 0.472, NLinear 0.374 and 0.440 (2023,
Zeng et al., arXiv 2205.13504); PatchTST/42 0.375 and 0.449 (2023, Nie et al., arXiv 2211.14730).

One line a fit is kept under $OUT (or beside the working directory), so that a run that was
interrupted goes on: ``python -m evidence forecasts``.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from castalia.data import Sequences, read
from castalia.data.sequences import SeriesWindows
from castalia.models.sequence import (
    NaiveForecaster,
    RNNForecaster,
    TemporalConvNet,
    TransformerForecaster,
    WindowRegressor,
)
from castalia.train import Training
from evidence.rows import folder, print_table, spread

MONTH = 30 * 24
TRAIN, VALIDATION, TEST = 12 * MONTH, 16 * MONTH, 20 * MONTH
CONTEXT = 336
SYSTEMS: dict[str, tuple[type, dict[str, Any]]] = {
    "WindowRegressor, ridge": (WindowRegressor, {"solver": "ridge"}),
    "WindowRegressor, ridge, window level": (
        WindowRegressor,
        {"solver": "ridge", "level": "window"},
    ),
    "WindowRegressor": (WindowRegressor, {"lr": 1e-3, "epochs": 20, "batch_size": 128}),
    "WindowRegressor, window level": (
        WindowRegressor,
        {"level": "window", "lr": 1e-3, "epochs": 20, "batch_size": 128},
    ),
    "TransformerForecaster": (
        TransformerForecaster,
        {
            "dim": 16,
            "heads": 4,
            "depth": 3,
            "dropout": 0.3,
            "lr": 1e-3,
            "epochs": 15,
            "batch_size": 128,
        },
    ),
    "TemporalConvNet": (
        TemporalConvNet,
        {
            "level": "window",
            "shared": True,
            "dropout": 0.3,
            "depth": 6,
            "lr": 5e-4,
            "epochs": 6,
            "batch_size": 64,
        },
    ),
    "RNNForecaster": (
        RNNForecaster,
        {
            "cell": "gru",
            "level": "window",
            "shared": True,
            "dropout": 0.3,
            "lr": 5e-4,
            "epochs": 6,
            "batch_size": 64,
        },
    ),
}


def load() -> np.ndarray:
    """The seven channels, standardised by the training months, (14400, 7)."""
    data = read(folder() / "time-series" / "ETTh1.csv.gz")
    values = np.column_stack([data.column(name) for name in data.columns if name != "date"])
    values = values[:TEST].astype(np.float64)
    return (values - values[:TRAIN].mean(axis=0)) / values[:TRAIN].std(axis=0)


def windows(values: np.ndarray, begin: int, end: int, horizon: int) -> SeriesWindows:
    """Windows whose future lies between two steps."""
    start = np.arange(begin - CONTEXT, end - CONTEXT - horizon + 1)
    series = Sequences([values])
    return SeriesWindows(series, 0 * start, start, CONTEXT, horizon)


def fit(name: str, values: np.ndarray, horizon: int, seed: int, quick: bool) -> dict[str, Any]:
    """Train with validation on the next four months, and test on the last four."""
    begin = time.perf_counter()
    made, settings = SYSTEMS[name]
    held = windows(values, TRAIN, VALIDATION, horizon)
    training = Training(validation=(held, None), patience=3, clip=1.0, verbose=False)
    own = {**settings, "epochs": 1} if quick else settings
    model = made(context=CONTEXT, horizon=horizon, random_state=seed, training=training, **own)
    model.fit(windows(values, CONTEXT, TRAIN, horizon))
    mse, mae = errors(model, windows(values, VALIDATION, TEST, horizon))
    seconds = time.perf_counter() - begin
    return {"name": name, "horizon": horizon, "seed": seed, "mse": mse, "mae": mae, "s": seconds}


def errors(model: Any, test: SeriesWindows) -> tuple[float, float]:
    """Mean squared and absolute errors over all test windows, a thousand at a time."""
    square, absolute, count = 0.0, 0.0, 0
    for start in range(0, len(test), 1000):
        some = test.take(np.arange(start, min(start + 1000, len(test))))
        gap = model.predict_windows(some) - some.future()
        square, absolute = square + float((gap**2).sum()), absolute + float(np.abs(gap).sum())
        count += gap.size
    return square / count, absolute / count


def run(quick: bool = False) -> None:
    """Fit every system at both horizons with three seeds; finished fits are not repeated."""
    kept = Path(os.environ.get("OUT", ".")) / f"forecasts{'-quick' if quick else ''}.jsonl"
    lines = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(line["name"], line["horizon"], line["seed"]) for line in lines}
    values = load()
    for horizon in (96, 720):
        for name in SYSTEMS:
            closed = "ridge" in name  # no seed changes it
            for seed in range(1 if quick or closed else 3):
                if (name, horizon, seed) in done:
                    continue
                lines.append(fit(name, values, horizon, seed, quick))
                print(json.dumps(lines[-1]), flush=True)
                with kept.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    print_rows(values, lines)


def print_rows(values: np.ndarray, lines: list[dict[str, Any]]) -> None:
    """One row a system, with the repetition of the last day beside them."""
    rows = []
    for name in ("seasonal naive", *SYSTEMS):
        row = [name]
        for horizon in (96, 720):
            if name == "seasonal naive":
                model = NaiveForecaster(season=24, horizon=horizon).fit(values[:TRAIN])
                row.append(
                    "{:.3f} / {:.3f}".format(
                        *errors(model, windows(values, VALIDATION, TEST, horizon))
                    )
                )
                continue
            mine = [x for x in lines if (x["name"], x["horizon"]) == (name, horizon)]
            row.append(f"{spread([x['mse'] for x in mine])} / {spread([x['mae'] for x in mine])}")
        rows.append(row)
    rows.append(["DLinear, published", "0.375 / 0.399", "0.472 / 0.490"])
    print_table("ETTh1", ["system", "96 h: MSE / MAE", "720 h: MSE / MAE"], rows)
