"""Label noise: what wrong labels cost, and what knowing their law gives back."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.dense import MLPClassifier
from castalia.models.strategies import WeakSupervision
from castalia.testing.toys import moons
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, caption

__all__ = ["run"]


def run(*, quick: bool = False) -> Outcome:
    """Turn more and more labels of one class into the other's, and fit in three ways."""
    shares = (0.0, 0.4) if quick else (0.0, 0.1, 0.2, 0.3, 0.4, 0.45)
    found = np.array([[_scores(share, s) for s in range(1 if quick else 5)] for share in shares])
    names = ("labels taken as they are", "law counted", "law known")
    figure, (ax,) = panels(1, (5.4, 3.8))
    for i, name in enumerate(names):
        mean, spread = found[:, :, i].mean(axis=1), found[:, :, i].std(axis=1)
        ax.errorbar(shares, mean, spread, fmt="o-", ms=4, capsize=2, color=COLOURS[i], label=name)
    ax.set(xlabel="wrong labels of one class", ylabel="right on other rows")
    caption(ax)
    last = found[-1].mean(axis=0)
    numbers = {name: float(score) for name, score in zip(names, last, strict=True)}
    numbers["without noise"] = float(found[0, :, 0].mean())
    said = (
        f"With {100 * shares[-1]:.0f} % of one class labelled as the other, a network is right on "
        f"{100 * last[0]:.0f} %, with the law of the mistakes counted from the rows on "
        f"{100 * last[1]:.0f} % and with the true law on {100 * last[2]:.0f} %."
    )
    return Outcome(figure, numbers, said)


def _scores(share: float, seed: int) -> tuple[float, float, float]:
    (X, y), unseen = moons(400, 0.1, seed), moons(1000, 0.1, seed + 1000)
    wrong = (y == 0) & (np.random.default_rng(seed + 3000).random(400) < share)
    labels = np.where(wrong, 1, y)
    net = MLPClassifier(hidden=(16,), epochs=40, lr=0.02, training=Training(validation=0))
    law = np.array([[1 - share, share], [0.0, 1.0]])
    models = (
        clone(net).set_params(random_state=seed),
        WeakSupervision(net, random_state=seed),
        WeakSupervision(net, transition=law, random_state=seed),
    )
    plain, counted, known = (float(m.fit(X, labels).score(*unseen)) for m in models)
    return plain, counted, known
