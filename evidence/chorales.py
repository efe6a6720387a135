"""Bach's chorales (JSB, quarter notes): 88 keys pressed or not, each step given those before.

Negative log-likelihood of a step, summed over keys, as 2018, Bai, Kolter, Koltun (arXiv 1803.01271)
count it: the first step of a chorale is not counted. They publish 8.45 (LSTM), 8.10 (TCN), 8.43
(GRU), 8.91 (RNN). Weights and setting are chosen by the validation chorales.
"""

from __future__ import annotations

import gzip
import json
import time
from typing import Any

import numpy as np

from castalia.models.sequence import RNNGenerator
from castalia.train import Training
from evidence.rows import folder, keep, print_table, spread

KEYS = range(21, 109)
BASE = {"hidden": 256, "dropout": 0.3, "lr": 2e-3, "batch_size": 4, "decay": 0.05, "average": 0.995}
SETTINGS: dict[str, dict[str, Any]] = {  # beside BASE
    "LSTM": {},
    "LSTM, 384 units, dropout 0.4": {"hidden": 384, "dropout": 0.4},
    "LSTM, 384 units, dropout 0.4, slower average": {
        "hidden": 384,
        "dropout": 0.4,
        "average": 0.998,
    },
    "LSTM, 512 units, dropout 0.5": {"hidden": 512, "dropout": 0.5},
    "LSTM, 384 units, dropout 0.3, decay 0.1": {"hidden": 384, "decay": 0.1},
    "LSTM, batches of 2": {"batch_size": 2, "lr": 1e-3, "average": 0.998},
    "GRU": {"cell": "gru"},
    "Elman": {"cell": "elman"},
}


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


def fit(name: str, seed: int, quick: bool) -> tuple[float, float]:
    """Train one network, many small steps, weights averaged and decayed; validation and test."""
    data, own = load(), {**BASE, **SETTINGS[name]}
    training = Training(
        validation=(data["valid"], None),
        patience=20,
        clip=1.0,
        weight_decay=own.pop("decay"),
        optimizer="adamw",
        schedule="cosine",
        average=("ema", own.pop("average")),
        verbose=False,
    )
    own.update(likelihood="bernoulli", epochs=1 if quick else 100)
    begin = time.perf_counter()
    model = RNNGenerator(random_state=seed, training=training, **own).fit(data["train"])
    seconds = round(time.perf_counter() - begin)
    found = loss(model, data["valid"]), loss(model, data["test"])
    keep("chorales", setting=name, seed=seed, valid=found[0], test=found[1], s=seconds)
    return found


def run(quick: bool = False) -> None:
    """Train every setting once, and the one that validation chooses with two more seeds."""
    found = {name: [fit(name, 0, quick)] for name in (list(SETTINGS)[:1] if quick else SETTINGS)}
    best = min(found, key=lambda name: found[name][0][0])
    found[best] += [fit(best, seed, quick) for seed in (() if quick else (1, 2))]
    rows = []
    for name, pairs in found.items():
        valid, test = zip(*pairs, strict=True)
        rows.append([name, str(len(valid)), spread(valid), spread(test)])
    rows.append(["LSTM, published (Bai 2018)", "", "", "8.45"])
    print_table("JSB chorales", ["network", "seeds", "validation NLL a step", "test"], rows)
