"""Restricted Boltzmann machine on digits, 256 hidden units, 20 epochs: ours and scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.harness import Bar, Contender, Report, main, race, ratio, table


@dataclass(frozen=True)
class Size:
    rows: int
    hidden: int
    epochs: int
    rounds: int


SIZES = {
    "full": Size(1797, 256, 20, 3),
    "quick": Size(600, 64, 5, 1),
    "tiny": Size(100, 8, 1, 1),
}


def run(scale: str = "full") -> Report:
    """Time whole fits; the score is the exact pseudo-likelihood of all rows, a row."""
    from sklearn.datasets import load_digits

    size = SIZES[scale]
    X = (load_digits().data[: size.rows] / 16 > 0.5).astype(np.float64)
    contenders = [
        Contender("castalia", lambda: ours(X, size)),
        Contender("scikit-learn", lambda: sklearn(X, size)),
    ]
    found = race(contenders, size.rounds)
    ours_, theirs = found["castalia"], found["scikit-learn"]
    bars = [
        Bar("times as fast as scikit-learn", ratio(theirs, ours_, "wall").median, ">=", 2.0),
        Bar(
            "pseudo-likelihood below scikit-learn's",
            (theirs.score or 0) - (ours_.score or 0), "<=", 0.0,
        ),
    ]  # fmt: skip
    text = table(found, "castalia", "pseudo-likelihood")
    setting = f"{size.rows:,} x 64 binary digits, {size.hidden} hidden, {size.epochs} epochs."
    return Report("boltzmann", setting, text, bars, {name: vars(r) for name, r in found.items()})


def pseudo_likelihood(W: np.ndarray, b: np.ndarray, c: np.ndarray, X: np.ndarray) -> float:
    """Mean over rows of sum_i log p(v_i | others), every unit flipped once."""
    drive, total = X @ W + c, np.zeros(len(X))
    base = np.logaddexp(0, drive).sum(axis=1)
    for i in range(X.shape[1]):
        flip = 1 - 2 * X[:, i]
        other = np.logaddexp(0, drive + flip[:, None] * W[i]).sum(axis=1) + flip * b[i]
        total -= np.logaddexp(0, other - base)
    return float(total.mean())


def ours(X: np.ndarray, size: Size) -> Callable[[], float]:
    from castalia import RestrictedBoltzmannMachine

    model = RestrictedBoltzmannMachine(
        hidden=size.hidden,
        epochs=size.epochs,
        method="cd",
        batch_size=150,
        lr=0.3,
        momentum=0.8,
        random_state=0,
        device="cpu",
    ).fit(X)
    return lambda: pseudo_likelihood(
        model.weights_.astype(np.float64), model.visible_bias_, model.hidden_bias_, X
    )


def sklearn(X: np.ndarray, size: Size) -> Callable[[], float]:
    from sklearn.neural_network import BernoulliRBM

    model = BernoulliRBM(size.hidden, n_iter=size.epochs, learning_rate=0.05, random_state=0).fit(X)
    return lambda: pseudo_likelihood(
        model.components_.T, model.intercept_visible_, model.intercept_hidden_, X
    )


if __name__ == "__main__":
    main(run)
