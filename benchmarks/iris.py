"""A very small fit, where fixed costs decide: iris, 50 epochs of one batch."""

from __future__ import annotations

import numpy as np

from benchmarks import peers
from benchmarks.harness import Bar, Contender, Report, main, race, ratio, table

ROUNDS = {"full": 40, "quick": 8, "tiny": 1}
EPOCHS = {"full": 50, "quick": 50, "tiny": 2}


def run(scale: str = "full") -> Report:
    """Time a whole fit on 150 rows; the batch of 150 is scikit-learn's default there."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    task = peers.Task(EPOCHS[scale], batch_size=len(X), lr=0.01)
    narrow = X.astype(np.float32)
    contenders = [
        Contender("castalia", peers.castalia(X, y, task)),
        Contender("castalia, float32", peers.castalia(narrow, y, task)),
        Contender("by hand", peers.by_hand(X, y, task)),
        Contender("by hand, oneDNN off", peers.by_hand(X, y, task, onednn=False)),
        Contender("scikit-learn, float64", peers.scikit_learn(X, y, task)),
        Contender("scikit-learn, float32", peers.scikit_learn(narrow, y, task)),
    ]
    found = race(contenders, ROUNDS[scale], warm_up=2)
    ours, ours32 = found["castalia"], found["castalia, float32"]
    bars = [
        Bar(f"times as fast as {name}", ratio(found[name], mine).median, ">=", 1.0)
        for name, mine in (("scikit-learn, float64", ours), ("scikit-learn, float32", ours32))
    ]
    setting = (
        f"150 rows, MLP 64-64, {task.epochs} epochs, batch 150, one thread, {ROUNDS[scale]} rounds."
    )
    figures = {name: vars(result) for name, result in found.items()}
    return Report("iris", setting, table(found, "castalia"), bars, figures)


if __name__ == "__main__":
    main(run)
