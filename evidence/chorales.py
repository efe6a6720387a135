"""Bach's chorales (JSB, quarter notes): 88 keys pressed or not, each step given those before.

Negative log-likelihood of a step, summed over keys, as 2018, Bai, Kolter, Koltun (arXiv 1803.01271)
count it: the first step of a chorale is not counted. They publish 8.43 (LSTM), 8.10 (TCN), 8.45
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
SETTINGS = {
    "GRU": {"cell": "gru", "hidden": 256, "dropout": 0.5, "lr": 3e-3},
    "LSTM": {"cell": "lstm", "hidden": 256, "dropout": 0.5, "lr": 3e-3},
    "Elman": {"cell": "elman", "hidden": 256, "dropout": 0.5, "lr": 1e-3},
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


def transposed(pieces: list[np.ndarray], most: int = 5) -> list[np.ndarray]:
    """The same pieces in other keys, up and down."""
    return [np.roll(piece, k, axis=1) for k in range(-most, most + 1) for piece in pieces]


def loss(model: RNNGenerator, pieces: list[np.ndarray]) -> float:
    """Mean over steps of - log p, without the first of each piece."""
    steps = [part[1:] for part in model.step_log_prob(pieces)]
    return -float(np.mean(np.concatenate(steps)))


def run(quick: bool = False) -> None:
    """Train each cell with three seeds, on the pieces as they are and in eleven keys."""
    data = load()
    train, valid, test = (data[part] for part in ("train", "valid", "test"))
    rows = []
    for name, settings in SETTINGS.items():
        for keys, pieces in (("one", train), ("eleven", transposed(train))):
            found = []
            for seed in range(1 if quick else 3):
                epochs = 1 if quick else (200 if keys == "one" else 40)
                training = Training(
                    validation=(valid, None),
                    patience=15,
                    clip=1.0,
                    weight_decay=1e-4,
                    optimizer="adamw",
                    verbose=False,
                )
                model = RNNGenerator(
                    likelihood="bernoulli",
                    epochs=epochs,
                    batch_size=16,
                    random_state=seed,
                    training=training,
                    **settings,
                ).fit(pieces)
                found.append(loss(model, test))
                keep("chorales", network=name, keys=keys, seed=seed, loss=found[-1])
            rows.append([name, keys, spread(found, 2)])
    rows.append(["LSTM, published (Bai 2018)", "one", "8.43"])
    print_table("JSB chorales", ["network", "keys of the training pieces", "test NLL a step"], rows)
