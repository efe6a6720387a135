"""MLP 64-64 on the digits, repeated: our fit against a hand-written loop and the peers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks import peers
from benchmarks.harness import Bar, Contender, Report, main, race, ratio, table

SPEED_BARS = {
    "scikit-learn, float64": 1.0,
    "scikit-learn, float32": 1.0,
    "skorch": 4.0,
    "lightning": 5.0,
    "keras": 6.0,
}


@dataclass(frozen=True)
class Size:
    copies: int
    epochs: int
    rounds: int
    peers: bool = True


SIZES = {"full": Size(20, 10, 7), "quick": Size(5, 3, 3), "tiny": Size(1, 1, 1, peers=False)}


def data(copies: int) -> tuple[np.ndarray, np.ndarray]:
    """The 1,797 digits, scaled to 0..1, ``copies`` times: (n, 64) and (n,)."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return np.tile(X / 16, (copies, 1)), np.tile(y, copies)


def run(scale: str = "full") -> Report:
    """Time a whole fit of every contender on one thread."""
    size = SIZES[scale]
    X, y = data(size.copies)
    narrow = X.astype(np.float32)
    task = peers.Task(size.epochs, batch_size=128)
    contenders = [
        Contender("castalia", peers.castalia(narrow, y, task)),
        Contender("by hand", peers.by_hand(X, y, task)),
        Contender("by hand, oneDNN off", peers.by_hand(X, y, task, onednn=False)),
        Contender("scikit-learn, float64", peers.scikit_learn(X, y, task)),
        Contender("scikit-learn, float32", peers.scikit_learn(narrow, y, task)),
        *(peers.installed_peers(X, y, task) if size.peers else []),
    ]
    found = race(contenders, size.rounds)
    ours = found["castalia"]
    bars = [
        Bar(f"time over {name}", ratio(ours, found[name]).median, "<=", 1.1)
        for name in ("by hand", "by hand, oneDNN off")
    ]
    bars += [
        Bar(f"times as fast as {name}", ratio(found[name], ours).median, ">=", bound)
        for name, bound in SPEED_BARS.items()
        if name in found
    ]
    setting = f"{len(X):,} rows, {size.epochs} epochs, batch 128, one thread, {size.rounds} rounds."
    figures = {name: vars(result) for name, result in found.items()}
    return Report("digits", setting, table(found, "castalia"), bars, figures)


if __name__ == "__main__":
    main(run)
