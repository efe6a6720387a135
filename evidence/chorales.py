"""Bach's chorales (JSB, quarter notes): 88 keys pressed or not, each step given those before.

Negative log-likelihood of a step, summed over keys, as 2018, Bai, Kolter, Koltun (arXiv 1803.01271)
count it: the first step of a chorale is not counted. They publish 8.45 (LSTM), 8.10 (TCN), 8.43
(GRU), 8.91 (RNN). Weights are chosen by the validation chorales.
"""

from __future__ import annotations

import gzip
import json

import numpy as np

from castalia.models.sequence import RNNGenerator
from castalia.train import Training
from evidence.rows import folder, keep, print_table, spread

KEYS = range(21, 109)
CELLS = {"LSTM": "lstm", "GRU": "gru", "Elman": "elman"}
SETTINGS = {"hidden": 256, "dropout": 0.3, "lr": 2e-3, "batch_size": 4}


def load() -> dict[str, list[np.ndarray]]:
    """Chorales by part, each (T, 88) of 0 and 1."""
    path = folder() / "jsb-chorales" / "jsb-chorales-quarter.json.gz"
    found = json.loads(gzip.decompress(path.read_bytes()))
    return {part: [roll(piece) for piece in pieces] for part, pieces in found.items()}


def roll(piece: list[list[int]]) -> np.ndarray:
    """Steps of keys, (T, 88)."""
    steps = np.zeros((len(piece), len(KEYS)))
    for row, notes in zip(steps, piece, strict=True):
        for note in notes:
            row[int(note) - KEYS[0]] = 1
    return steps


def loss(model: RNNGenerator, pieces: list[np.ndarray]) -> float:
    """Mean over steps of - log p, without the first of each piece."""
    steps = [part[1:] for part in model.step_log_prob(pieces)]
    return -float(np.mean(np.concatenate(steps)))


def train(cell: str, data: dict[str, list[np.ndarray]], seed: int, quick: bool) -> RNNGenerator:
    """Train one network: many small steps, weights averaged and decayed."""
    training = Training(
        validation=(data["valid"], None),
        patience=20,
        clip=1.0,
        weight_decay=0.05,
        optimizer="adamw",
        schedule="cosine",
        average=("ema", 0.995),
        verbose=False,
    )
    epochs = 1 if quick else 100
    model = RNNGenerator(
        cell=cell,
        likelihood="bernoulli",
        epochs=epochs,
        random_state=seed,
        training=training,
        **SETTINGS,
    )
    return model.fit(data["train"])


def run(quick: bool = False) -> None:
    """Train each cell with three seeds."""
    data, rows = load(), []
    for name, cell in CELLS.items():
        found = []
        for seed in range(1 if quick else 3):
            found.append(loss(train(cell, data, seed, quick), data["test"]))
            keep("chorales", network=name, seed=seed, loss=found[-1])
        rows.append([name, spread(found, 2)])
    rows.append(["LSTM, published (Bai 2018)", "8.45"])
    print_table("JSB chorales", ["network", "test NLL a step"], rows)
