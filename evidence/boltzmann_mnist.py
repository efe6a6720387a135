"""Restricted Boltzmann machine with 500 hidden units on binarised MNIST, log-likelihood by AIS.

Published: 2008, Salakhutdinov, Murray, On the quantitative analysis of deep belief networks: about
-86.3 nats a test image for 500 hidden units trained by CD-25, pixels drawn by their grey values.
With OUT set, the figures are also written there as JSON.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from castalia.models.generative import RestrictedBoltzmannMachine
from evidence.rows import folder, print_table

DRAWS = 3  # binary images of each grey one


def run(quick: bool = False, **settings: Any) -> None:
    """Train with persistent chains, then bound log Z by annealed importance sampling."""
    train, test = (grey(f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k"))
    random = np.random.default_rng(0)
    if quick:
        train, test = train[:2000], test[:500]
    X = np.concatenate([drawn(train, random) for _ in range(1 if quick else DRAWS)])
    held = drawn(test, random)
    start = time.perf_counter()
    usual = {
        "hidden": 50 if quick else 500,
        "k": 1 if quick else 5,
        "chains": 500,
        "epochs": 2 if quick else 40,
        "batch_size": 200,
        "lr": 0.05,
        "random_state": 0,
    }
    model = RestrictedBoltzmannMachine(**{**usual, **settings}).fit(X)
    trained = time.perf_counter() - start
    print(f"trained in {trained:.0f} s: {model.history_[-1]}", flush=True)
    z = model.log_partition(runs=100 if quick else 500, betas=200 if quick else 20_000)
    likelihood = float(np.mean(-model.free_energy(held)) - z.log_z)
    low, high = (float(np.mean(-model.free_energy(held)) - end) for end in (z.high, z.low))
    found = {"test": likelihood, "low": low, "high": high, "log_z": z.log_z, "seconds": trained}
    print(json.dumps(found), flush=True)
    if "OUT" in os.environ:
        (Path(os.environ["OUT"]) / "boltzmann_mnist.json").write_text(json.dumps(found))
    columns = ["model", "test log-likelihood, nats", "by three errors of log Z", "s of training"]
    rows = [
        ["RBM, CD-25 (published)", "-86.3", "", ""],
        ["RestrictedBoltzmannMachine", f"{likelihood:.2f}", f"{low:.2f} to {high:.2f}",
         f"{trained:.0f}"],
    ]  # fmt: skip
    print_table("Boltzmann machine on MNIST", columns, rows)


def grey(name: str) -> np.ndarray:
    """Grey values between 0 and 1, (N, 784)."""
    with gzip.open(folder() / "mnist" / name) as file:
        pixels = np.frombuffer(file.read(), dtype=np.uint8, offset=16)
    return pixels.reshape(-1, 784).astype(np.float32) / 255


def drawn(images: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Binary images whose pixels are on with the probability of their grey value."""
    return (random.random(images.shape, dtype=np.float32) < images).astype(np.float32)
