"""Echo state networks on the tasks of the literature, beside reservoirpy with the same search.

Mackey-Glass (tau 17): 1,000 units are fitted to predict the next step of 3,000 and run on by
themselves; the error of the 84th step over 50 beginnings, divided by the deviation of the series.
NARMA-10: 1,000 units, 4,000 steps to fit and 1,000 to test. Both packages draw 12 settings by the
same random numbers, choose by a validation part, and test three seeds of the best. Memory capacity
is that of a linear reservoir of 100 units in a ring.
References: 2004, Jaeger, Haas, Science 304; 2000, Atiya, Parlos, IEEE Neural Networks 11.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from castalia import EchoStateNetwork
from castalia.lab.echo_state_experiment import mackey_glass
from castalia.models.sequence import memory_capacity, random_reservoir
from castalia.testing.toys import narma
from evidence.rows import keep, print_table, spread

AHEAD, LED = 84, 1000
Settings = dict[str, float]


def settings(random: np.random.Generator, task: str) -> Settings:
    """Draw radius, scale of inputs, leak and penalty."""
    calm = task == "Mackey-Glass"
    return {
        "radius": float(random.uniform(0.6, 1.1)),
        "scale": float(10 ** random.uniform(-1, 0.3)),
        "leak": float(random.uniform(0.3, 1.0)) if calm else 1.0,
        "alpha": float(10 ** random.uniform(-10, -6 if calm else -4)),
    }


def castalia(units: int, how: Settings, seed: int) -> Any:
    """Return ours."""
    return EchoStateNetwork(
        units=units, spectral_radius=how["radius"], input_scale=how["scale"], leak=how["leak"],
        alpha=how["alpha"], bias_scale=0.2, washout=100, random_state=seed,
    )  # fmt: skip


class Theirs:
    """reservoirpy's reservoir and ridge, with the same methods as ours."""

    def __init__(self, units: int, how: Settings, seed: int) -> None:
        from reservoirpy.nodes import Reservoir, Ridge

        nodes = Reservoir(
            units, sr=how["radius"], lr=how["leak"], input_scaling=how["scale"],
            rc_connectivity=10 / units, seed=seed,
        )  # fmt: skip
        self.model = nodes >> Ridge(ridge=how["alpha"])

    def fit(self, x: np.ndarray, y: np.ndarray) -> Theirs:
        self.model.fit(x[:, None], y[:, None], warmup=100)
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        self.model.reset()
        return self.model.run(x[:, None])[:, 0]

    def generate(self, steps: int, x: np.ndarray) -> np.ndarray:
        self.model.reset()
        last = self.model.run(x[:, None])[-1:]
        made = [last]
        for _ in range(steps - 1):
            made.append(np.atleast_2d(self.model.run(made[-1])))
        return np.concatenate(made)[:, 0]


Make = Callable[[int, Settings, int], Any]


def on_mackey_glass(
    make: Make, how: Settings, seed: int, size: tuple[int, int], test: bool
) -> float:
    """NRMSE of the 84th step of free runs, after the steps that were fitted."""
    units, steps = size
    series = np.tanh(mackey_glass(2 * steps + 60 * AHEAD + LED, seed=seed) - 1)
    model = make(units, how, seed).fit(series[: steps - 1], series[1:steps])
    begins = steps + (30 if test else 0) * AHEAD + LED + AHEAD * np.arange(25 if test else 10)
    gaps = [model.generate(AHEAD, series[b - LED : b])[-1] - series[b + AHEAD - 1] for b in begins]
    return float(np.sqrt(np.mean(np.square(gaps))) / series.std())


def on_narma(make: Make, how: Settings, seed: int, size: tuple[int, int], test: bool) -> float:
    """NRMSE of the system's outputs on steps that follow those fitted."""
    units, steps = size
    X, y = (np.asarray(part[0], dtype=float).ravel() for part in narma(1, steps + 2000, seed=seed))
    model = make(units, how, seed).fit(X[:steps], y[:steps])
    begin = steps + (1000 if test else 0)
    part = slice(begin - 100, begin + 1000)
    left = (np.ravel(model.predict(X[part])) - y[part])[100:]
    return float(np.sqrt(np.mean(left**2) / y[begin : begin + 1000].var()))


def searched(task: str, make: Make, quick: bool) -> list[float]:
    """Return the test errors of three seeds of the best of twelve settings."""
    work = {"Mackey-Glass": on_mackey_glass, "NARMA-10": on_narma}[task]
    size = (60, 600) if quick else ((1000, 3000) if task == "Mackey-Glass" else (1000, 4000))
    random = np.random.default_rng(0)
    tried = [settings(random, task) for _ in range(2 if quick else 12)]
    with np.errstate(all="ignore"):
        scores = [work(make, how, 0, size, False) for how in tried]
        best = tried[int(np.nanargmin(scores))]
        found = [work(make, best, seed, size, True) for seed in range(1, 2 if quick else 4)]
    keep("reservoirs", task=task, by=make.__name__, validation=min(scores), best=best, test=found)
    return found


def run(quick: bool = False) -> None:
    """Search and test both packages on both tasks, and measure the memory."""
    packages: dict[str, Make] = {"EchoStateNetwork": castalia}
    if find_spec("reservoirpy"):
        packages["reservoirpy"] = Theirs
    rows = []
    for task in ("Mackey-Glass", "NARMA-10"):
        for name, make in packages.items():
            found = searched(task, make, quick)
            rows.append([f"{task}, NRMSE", name, f"{np.mean(found):.2e} ± {np.std(found):.0e}"])
    ring = [
        memory_capacity(
            random_reservoir(
                100, 1, activation="identity", topology="ring", radius=0.98, scale=0.1, seed=seed
            ),
            random_state=seed,
        ).total
        for seed in range(1 if quick else 3)
    ]
    rows.append(["memory capacity of 100 units", "linear ring", spread(ring, 2)])
    print_table("Echo state networks", ["task", "package", "result"], rows)
