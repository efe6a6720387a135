"""Prediction for a million rows: ``predict`` against the bare module on one big tensor."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.harness import Bar, Contender, Report, main, race, ratio, table


@dataclass(frozen=True)
class Size:
    rows: int
    rounds: int


SIZES = {"full": Size(1_000_000, 9), "quick": Size(200_000, 5), "tiny": Size(1_000, 1)}
COLUMNS = 20


def run(scale: str = "full") -> Report:
    """Time ``predict`` from array to labels, on one thread and on all."""
    from castalia.models.dense import MLPClassifier
    from castalia.train import Training

    size = SIZES[scale]
    X = np.random.default_rng(0).standard_normal((size.rows, COLUMNS), dtype=np.float32)
    y = (X[:1000, 0] + X[:1000, 1] > 0).astype(int)
    model = MLPClassifier(epochs=2, training=Training(device="cpu"), random_state=0).fit(
        X[:1000], y
    )
    module = model.module_

    def bare() -> None:
        with torch.inference_mode():
            module(torch.from_numpy(X)).argmax(1).numpy()

    def ours() -> None:
        model.predict(X)

    contenders = [Contender("castalia predict", ours), Contender("bare module", bare)]
    texts, bars, figures = [], [], {}
    before = torch.get_num_threads()
    for threads in dict.fromkeys((1, os.cpu_count() or 1)):
        torch.set_num_threads(threads)
        found = race(contenders, size.rounds)
        texts += [f"{threads} thread(s):", "", table(found, "bare module", score=""), ""]
        slower = ratio(found["castalia predict"], found["bare module"], "wall").median
        bars.append(Bar(f"predict over bare module, {threads} thread(s), wall", slower, "<=", 1.25))
        figures[f"{threads} threads"] = {name: vars(result) for name, result in found.items()}
    torch.set_num_threads(before)
    setting = f"{size.rows:,} rows x {COLUMNS} columns, float32, MLP 64-64, {size.rounds} rounds."
    return Report("predict", setting, "\n".join(texts), bars, figures)


if __name__ == "__main__":
    main(run)
