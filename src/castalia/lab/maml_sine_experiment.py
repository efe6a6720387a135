"""MAML on sines: a start from which one step on five points is nearly enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.dense import MLPRegressor
from castalia.models.meta import MAML
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, INK, caption

__all__ = ["run"]

SHOTS, STEPS = 5, (0, 1, 3, 10)


def run(*, quick: bool = False) -> Outcome:
    """Learn a start from many sines, and new sines from five points of each."""
    X, y = _sines(100 if quick else 2000, 20, seed=0)
    new, truth = _sines(6 if quick else 200, 30, seed=1)
    learnt = _maml(rates="learnt", epochs=20 if quick else 100, lr=5e-3).fit(X, y)
    pretrained, fresh = (_maml(epochs=1, lr=1e-9).fit(X, y) for _ in range(2))
    rows = X.reshape(-1, 1), y.ravel()
    whole = _net(epochs=2 if quick else 5, random_state=0).fit(*rows)
    pretrained.module_.load_state_dict(whole.module_.state_dict())
    starts = {"MAML": learnt, "trained on all sines": pretrained, "random": fresh}
    errors = {name: _errors(start, new, truth) for name, start in starts.items()}
    figure, (left, right) = panels(2, (9, 3.6))
    _draw(left, learnt, new[0], truth[0])
    for (name, error), colour in zip(errors.items(), COLOURS, strict=False):
        right.plot(STEPS, error, "o-", ms=4, color=colour, label=name)
    right.set(xlabel="steps on five points", ylabel="squared error elsewhere", ylim=(0, None))
    caption(right)
    numbers = {f"{name}, {k} steps": float(e) for name, error in errors.items()
               for k, e in zip(STEPS, error, strict=True)}  # fmt: skip
    said = (
        f"One step on five points leaves a squared error of {errors['MAML'][1]:.2f} from the start "
        f"that MAML learnt, {errors['trained on all sines'][1]:.2f} from one trained on all sines "
        f"and {errors['random'][1]:.2f} from a random one."
    )
    return Outcome(figure, numbers, said)


def _net(**settings: Any) -> MLPRegressor:
    training = Training(schedule="cosine", validation=0)
    return MLPRegressor(hidden=(40, 40), activation="tanh", training=training, **settings)


def _maml(**settings: Any) -> MAML:
    return MAML(_net(), shots=SHOTS, inner_lr=0.1, tasks=25, random_state=0, **settings)


def _sines(tasks: int, points: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sines of height 0.5 to 3 and any phase, on [-4, 4]."""
    random = np.random.default_rng(seed)
    x = random.uniform(-4, 4, (tasks, points))
    high, shift = random.uniform(0.5, 3, (tasks, 1)), random.uniform(0, np.pi, (tasks, 1))
    return x[:, :, None], high * np.sin(x + shift)


def _errors(start: MAML, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the mean squared error on the other points, by steps."""
    gaps = [
        [np.mean((start.adapt(x[:SHOTS], t[:SHOTS], k).predict(x[SHOTS:]) - t[SHOTS:]) ** 2)
         for k in STEPS]
        for x, t in zip(X, y, strict=True)
    ]  # fmt: skip
    return np.asarray(np.mean(gaps, axis=0))


def _draw(ax: Any, start: MAML, x: np.ndarray, y: np.ndarray) -> None:
    """Show one new sine, its five points and what is said before and after."""
    line, order = np.linspace(-4, 4, 200)[:, None], np.argsort(x[:, 0])
    ax.plot(x[order, 0], y[order], ":", color=INK, lw=1, label="the sine")
    ax.plot(x[:SHOTS, 0], y[:SHOTS], "o", color=INK, ms=5)
    for steps, name, colour in ((0, "before", COLOURS[1]), (1, "after a step", COLOURS[0])):
        said = start.adapt(x[:SHOTS], y[:SHOTS], steps).predict(line)
        ax.plot(line[:, 0], said, color=colour, label=name)
    ax.set(xlabel="x", ylabel="y")
    caption(ax)
