"""Bagging of 50 dense networks on the digits: ours, side by side, against scikit-learn's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.digits import data
from benchmarks.harness import Bar, Contender, Report, main, race, ratio, table

HIDDEN, BATCH = (64,), 100


@dataclass(frozen=True)
class Size:
    members: int
    epochs: int
    rounds: int
    bars: bool = True


SIZES = {"full": Size(50, 20, 5), "quick": Size(50, 5, 3), "tiny": Size(3, 1, 1, bars=False)}

Fit = Callable[[], Callable[[], float]]


def castalia(split: tuple[np.ndarray, ...], size: Size) -> Fit:
    """Ours; an epoch passes over the drawn rows, each weighted by how often it was drawn."""
    from castalia.models.dense import MLPClassifier
    from castalia.models.ensemble import Bagging
    from castalia.train import Training

    X, y, test_X, test_y = split
    net = MLPClassifier(
        hidden=HIDDEN,
        epochs=size.epochs,
        batch_size=BATCH,
        training=Training(validation=0, device="cpu", verbose=False),
    )

    def fit() -> Callable[[], float]:
        model = Bagging(estimator=net, members=size.members, random_state=0).fit(X, y)
        return lambda: model.score(test_X, test_y)

    return fit


def one_by_one(split: tuple[np.ndarray, ...], size: Size) -> Fit:
    """Our members on the same samples, each fitted by itself."""
    from castalia.models.dense import MLPClassifier
    from castalia.models.ensemble.bootstrap import bootstrap_counts
    from castalia.train import Training

    X, y, test_X, test_y = split
    training = Training(validation=0, device="cpu", verbose=False)

    def fit() -> Callable[[], float]:
        random = np.random.default_rng(0)
        counts = bootstrap_counts(X, y, samples=size.members, random=random)
        fits = [
            MLPClassifier(
                hidden=HIDDEN,
                epochs=size.epochs,
                batch_size=BATCH,
                training=training,
                random_state=i,
            ).fit(X, y, counts[i])
            for i in range(size.members)
        ]
        return lambda: _accuracy([m.predict_proba(test_X) for m in fits], test_y)

    return fit


def scikit_learn(split: tuple[np.ndarray, ...], size: Size) -> Fit:
    """scikit-learn's; an epoch passes over all rows, those not drawn with weight 0."""
    from sklearn.ensemble import BaggingClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    X, y, test_X, test_y = split
    net = MLPClassifier(
        HIDDEN, batch_size=BATCH, max_iter=size.epochs, tol=0, n_iter_no_change=size.epochs + 1
    )

    def fit() -> Callable[[], float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = BaggingClassifier(net, size.members, random_state=0).fit(X, y)
        return lambda: float(model.score(test_X, test_y))

    return fit


def _accuracy(probabilities: list[np.ndarray], y: np.ndarray) -> float:
    return float((np.mean(probabilities, axis=0).argmax(axis=1) == y).mean())


def split_digits(dtype: type) -> tuple[np.ndarray, ...]:
    """1,500 rows to fit (whole batches, which scikit-learn's weights of 0 need) and 297 to test."""
    X, y = data(1)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order].astype(dtype), y[order]
    return X[:1500], y[:1500], X[1500:], y[1500:]


def run(scale: str = "full") -> Report:
    """Time a whole fit of the ensemble, every contender on one thread."""
    size = SIZES[scale]
    narrow, wide = split_digits(np.float32), split_digits(np.float64)
    contenders = [
        Contender("castalia", castalia(narrow, size)),
        Contender("castalia, one by one", one_by_one(narrow, size)),
        Contender("scikit-learn, float32", scikit_learn(narrow, size)),
        Contender("scikit-learn, float64", scikit_learn(wide, size)),
    ]
    found = race(contenders, size.rounds)
    bars = [
        Bar(f"times as fast as {name}", ratio(found[name], found["castalia"]).median, ">=", 5.0)
        for name in ("scikit-learn, float32", "scikit-learn, float64")
        if size.bars
    ]
    setting = (
        f"{size.members} members of {HIDDEN[0]} hidden units, 1,500 rows, {size.epochs} epochs, "
        f"batch {BATCH}, one thread, {size.rounds} rounds; accuracy on 297 other rows."
    )
    figures = {name: vars(result) for name, result in found.items()}
    return Report("bagging", setting, table(found, "castalia"), bars, figures)


if __name__ == "__main__":
    main(run)
