"""A search that is kept in an SQLite file, against the same search in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge

from benchmarks.harness import Bar, Contender, Report, main, race, ratio, table


@dataclass(frozen=True)
class Size:
    trials: int
    epochs: int
    rounds: int


SIZES = {
    "full": Size(trials=12, epochs=30, rounds=9),
    "quick": Size(trials=6, epochs=20, rounds=3),
    "tiny": Size(trials=2, epochs=1, rounds=1),
}


def run(scale: str = "full") -> Report:
    """Search the learning rate of a network, pruned, and the penalty of a ridge regression."""
    from castalia import MLPClassifier
    from castalia.tune import RandomSearch, Uniform

    size = SIZES[scale]
    X, y = load_iris(return_X_y=True)
    network = MLPClassifier(hidden=(16,), epochs=size.epochs, random_state=0)
    rate, penalty = Uniform(1e-4, 1e-1, log=True), Uniform(1e-3, 1e3, log=True)

    def search(model: object, space: dict[str, object], stored: bool) -> Callable[[], None]:
        def once() -> None:
            with tempfile.TemporaryDirectory() as folder:
                study = Path(folder) / "study.sqlite" if stored else None
                found = RandomSearch(
                    model, space, trials=size.trials, cv=3, prune=True, study=study, random_state=0
                )
                found.fit(X, y)

        return once

    contenders = [
        Contender("network, in memory", search(network, {"lr": rate}, False)),
        Contender("network, stored", search(network, {"lr": rate}, True)),
        Contender("ridge, in memory", search(Ridge(), {"alpha": penalty}, False)),
        Contender("ridge, stored", search(Ridge(), {"alpha": penalty}, True)),
    ]
    found = race(contenders, size.rounds)
    longer = ratio(found["network, stored"], found["network, in memory"], "wall")
    each = [
        (a - b) / size.trials * 1000
        for a, b in zip(found["ridge, stored"].wall, found["ridge, in memory"].wall, strict=True)
    ]
    busier = ratio(found["network, stored"], found["network, in memory"])
    bars = [
        Bar("wall time of a stored search over one in memory", longer.median, "<=", 1.1),
        Bar("CPU time of a stored search over one in memory", busier.median, "<=", 1.1),
    ]
    setting = (
        f"RandomSearch, {size.trials} trials, 3 folds, pruned: MLP of 16 units on iris, "
        f"{size.epochs} epochs; Ridge, whose trials cost nothing: the file adds "
        f"{min(each):.1f} to {max(each):.1f} ms a trial. {size.rounds} rounds."
    )
    figures = {name: vars(result) for name, result in found.items()}
    return Report("studies", setting, table(found, "network, in memory"), bars, figures)


if __name__ == "__main__":
    main(run)
