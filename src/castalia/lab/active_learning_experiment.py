"""Active learning: labels are asked for where they say most."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.dense import MLPClassifier
from castalia.models.strategies import ActiveLearning
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, caption

__all__ = ["run"]

QUERIES = {"margin": "where two classes are close", "random": "at random"}


def run(*, quick: bool = False) -> Outcome:
    """Ask for ten labels at a time in two ways, and count until 90 % are right."""
    rounds, seeds = (9, range(1)) if quick else (26, range(5))
    curves = {q: np.array([_curve(q, rounds, seed) for seed in seeds]) for q in QUERIES}
    counts = 20 + 10 * np.arange(rounds + 1)
    figure, (ax,) = panels(1, (5.4, 3.8))
    for (query, curve), colour in zip(curves.items(), COLOURS, strict=False):
        mean = curve.mean(axis=0)
        ax.plot(counts, mean, color=colour, label=QUERIES[query])
        ax.fill_between(counts, curve.min(axis=0), curve.max(axis=0), color=colour, alpha=0.15)
    ax.axhline(0.9, color="0.6", lw=0.8, ls=(0, (4, 2)))
    ax.set(xlabel="labels", ylabel="right on other digits")
    caption(ax)
    numbers = {f"right in the end, {name}": float(curves[q][:, -1].mean())
               for q, name in QUERIES.items()}  # fmt: skip
    needed = {q: _needed(counts, curve.mean(axis=0)) for q, curve in curves.items()}
    numbers |= {f"labels for 90 %, {QUERIES[q]}": n for q, n in needed.items()}
    said = (
        f"With {counts[-1]} labels asked for where two classes are close "
        f"{100 * numbers['right in the end, where two classes are close']:.0f} % of other digits "
        f"are right, with as many at random "
        f"{100 * numbers['right in the end, at random']:.0f} %."
    )
    return Outcome(figure, numbers, said)


def _curve(query: str, rounds: int, seed: int) -> list[float]:
    """Return the share of held-out digits that are right, after each round."""
    X, y = load_digits(return_X_y=True)
    pool, held, labels, truth = train_test_split(
        X / 16, y, test_size=0.4, random_state=seed, stratify=y
    )
    first = np.concatenate([np.flatnonzero(labels == k)[:2] for k in range(10)])
    free = np.ones(len(pool), dtype=bool)
    free[first] = False
    net = MLPClassifier(hidden=(32,), epochs=40, lr=0.01, training=Training(validation=0))
    model = ActiveLearning(net, query=query, random_state=seed).fit(pool[first], labels[first])
    found = [model.score(held, truth)]
    for _ in range(rounds):
        rows = np.flatnonzero(free)[model.ask(pool[free], 10)]
        free[rows] = False
        model.tell(pool[rows], labels[rows])
        found.append(model.score(held, truth))
    return found


def _needed(counts: np.ndarray, right: np.ndarray) -> float:
    """Return the labels after which 90 % were right, NaN where they never were."""
    reached = np.flatnonzero(right >= 0.9)
    return float(counts[reached[0]]) if len(reached) else float("nan")
