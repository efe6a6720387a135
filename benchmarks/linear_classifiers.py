"""Perceptron and logistic regression against scikit-learn, at equal objective values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Bar, Contender, Report, Result, main, race, ratio, table

EQUAL = 1e-6  # objective values may differ by this


@dataclass(frozen=True)
class Size:
    rows: int
    columns: int
    rounds: int


SIZES = {"full": Size(100_000, 50, 9), "quick": Size(20_000, 50, 5), "tiny": Size(500, 5, 1)}


def data(size: Size) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows with a gap between the classes and their signs; rows without, and noisy signs."""
    random = np.random.default_rng(0)
    X = random.normal(size=(size.rows, size.columns))
    w = random.normal(size=size.columns)
    w /= np.linalg.norm(w)
    clear = np.where(X @ w > 0, 1, -1)
    noisy = np.where(X @ w + 0.3 * random.normal(size=size.rows) > 0, 1, -1)
    return X + 0.1 * clear[:, None] * w, clear, X, noisy


def criterion(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """The perceptron criterion a row, of unit weights: mean max(0, -y w x) / |w|."""
    size = np.linalg.norm(np.append(model.coef_, model.intercept_))
    return float(np.maximum(0, -y * model.decision_function(X)).mean() / size)


def likelihood(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """What logistic regression minimises, a row: the loss and |w|^2 / (2 C n), C = 1."""
    loss = np.logaddexp(0, -y * model.decision_function(X)).mean()
    return float(loss + (model.coef_**2).sum() / (2 * len(X)))


def fit(
    make: Callable[[], Any],
    X: np.ndarray,
    y: np.ndarray,
    objective: Callable[[Any, np.ndarray, np.ndarray], float],
) -> Callable[[], Callable[[], float]]:
    """A whole fit to be timed, which then tells its objective value."""

    def run() -> Callable[[], float]:
        model = make().fit(X, y)
        return lambda: objective(model, X, y)

    return run


def run(scale: str = "full") -> Report:
    """Time whole fits; the bars are over scikit-learn as it comes, or in the same order of rows."""
    import sklearn.linear_model as theirs

    from castalia.models.linear import LogisticRegression, Perceptron

    size = SIZES[scale]
    apart, clear, X, noisy = data(size)
    passes = Perceptron(patience=None).fit(apart, clear).n_iter_
    same = {"shuffle": False, "tol": None}
    duels = {
        "perceptron, separable": [
            Contender("castalia", fit(Perceptron, apart, clear, criterion)),
            Contender("scikit-learn", fit(theirs.Perceptron, apart, clear, criterion)),
            Contender(
                "scikit-learn, same order",
                fit(lambda: theirs.Perceptron(max_iter=passes, **same), apart, clear, criterion),
            ),
        ],
        "perceptron, noisy, 10 epochs, same order": [
            Contender(
                "castalia", fit(lambda: Perceptron(epochs=10, patience=None), X, noisy, criterion)
            ),
            Contender(
                "scikit-learn",
                fit(lambda: theirs.Perceptron(max_iter=10, **same), X, noisy, criterion),
            ),
        ],
        "logistic regression": [
            Contender("castalia", fit(LogisticRegression, X, noisy, likelihood)),
            Contender("scikit-learn", fit(theirs.LogisticRegression, X, noisy, likelihood)),
            Contender(
                "scikit-learn, newton-cholesky",
                fit(
                    lambda: theirs.LogisticRegression(solver="newton-cholesky"),
                    X,
                    noisy,
                    likelihood,
                ),
            ),
        ],
    }
    texts, bars, figures = [], [], {}
    for name, contenders in duels.items():
        found = race(contenders, size.rounds)
        texts += [f"{name}:", "", table(found, "castalia", score="objective"), ""]
        bars += judge(name, found)
        figures[name] = {who: vars(result) for who, result in found.items()}
    setting = f"{size.rows:,} rows x {size.columns} columns, one thread, {size.rounds} rounds."
    return Report("linear_classifiers", setting, "\n".join(texts), bars, figures)


def judge(name: str, found: dict[str, Result]) -> list[Bar]:
    """Speed over scikit-learn's default, and how far our objective lies above its."""
    ours, other = found["castalia"], found["scikit-learn"]
    above = (ours.score or 0.0) - (other.score or 0.0)
    return [
        Bar(f"{name}, times as fast", ratio(other, ours).median, ">=", 1.0),
        Bar(f"{name}, objective above scikit-learn's", above, "<=", EQUAL),
    ]


if __name__ == "__main__":
    main(run)
