"""What it costs to keep a record: run store, callbacks, the doctor, checkpoints by the clock."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import digits, peers
from benchmarks.harness import Bar, Contender, Report, main, race, ratio, table


def run(scale: str = "full") -> Report:
    """Time the digits fit with nothing kept, with a run folder, and with callbacks as well."""
    from castalia.train import Callback

    class Count(Callback):
        batches = epochs = 0

        def on_batch_end(self, state: object) -> None:
            self.batches += 1

        def on_epoch_end(self, state: object) -> None:
            self.epochs += 1

    size = digits.SIZES[scale]
    X, y = digits.data(size.copies)
    X = X.astype(np.float32)
    task = peers.Task(size.epochs, batch_size=128)
    home = Path(tempfile.mkdtemp(prefix="castalia-overhead-"))
    numbers = iter(range(1_000_000))

    def recorded(**settings: object) -> Callable[[], Callable[[], float]]:
        # a new folder each time: the same one would be resumed
        return lambda: peers.castalia(X, y, task, run=home / f"run{next(numbers)}", **settings)()

    contenders = [
        Contender("nothing kept", peers.castalia(X, y, task)),
        Contender("callbacks", peers.castalia(X, y, task, callbacks=[Count()])),
        Contender("run and checkpoints", recorded()),
        Contender("run, checkpoints, callbacks", recorded(callbacks=[Count()])),
    ]
    try:
        found = race(contenders, size.rounds)
    finally:
        shutil.rmtree(home)
    all_of_it = ratio(found["run, checkpoints, callbacks"], found["nothing kept"], "wall")
    bars = [Bar("time with everything kept over nothing kept (wall)", all_of_it.median, "<=", 1.05)]
    setting = (
        f"Digits, {len(X):,} rows, MLP 64-64, {size.epochs} epochs, checkpoints by the clock, "
        f"one thread, {size.rounds} rounds."
    )
    figures = {name: vars(result) for name, result in found.items()}
    return Report("overhead", setting, table(found, "nothing kept"), bars, figures)


if __name__ == "__main__":
    main(run)
