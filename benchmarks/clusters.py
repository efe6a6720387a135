"""k-means and Gaussian mixtures, 200,000 x 20 in ten clusters: our fits against scikit-learn's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Bar, Contender, Report, Result, Spread, main, race, ratio, table

KINDS = ("full", "tied", "diag", "spherical")


@dataclass(frozen=True)
class Size:
    rows: int
    rounds: int
    kinds: tuple[str, ...] = KINDS
    dtypes: tuple[str, ...] = ("float64", "float32")


SIZES = {
    "full": Size(200_000, 5),
    "quick": Size(40_000, 2),
    "tiny": Size(500, 1, ("diag",), ("float64",)),
}


def data(rows: int, dtype: str, spread: float = 0.7) -> np.ndarray:
    """Ten normal clouds in twenty dimensions that overlap: k-means takes some twenty steps."""
    random = np.random.default_rng(0)
    centers = spread * random.normal(size=(10, 20))
    cloud = random.normal(size=(rows, 20))
    return (cloud + centers[random.integers(10, size=rows)]).astype(dtype)


def run(scale: str = "full", threads: int = 0) -> Report:
    """Time whole fits, each with its defaults and ten clusters; ``threads`` 0 leaves them alone."""
    import torch
    from threadpoolctl import threadpool_limits

    size, before = SIZES[scale], torch.get_num_threads()
    texts, bars, figures = [], [], {}
    try:
        torch.set_num_threads(threads or before)
        with threadpool_limits(threads or None), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # both sides may run out of steps
            for dtype in size.dtypes:
                X = data(size.rows, dtype)
                for name in ("k-means", *size.kinds):
                    found = race(_contenders(name, X), size.rounds)
                    texts.append(f"### {name}, {dtype}\n\n{table(found, 'castalia', _score(name))}")
                    bars += _bars(f"{name}, {dtype}", found)
                    figures[f"{name} {dtype}"] = {key: vars(r) for key, r in found.items()}
    finally:
        torch.set_num_threads(before)
    setting = f"{size.rows:,} x 20, 10 clusters, {threads or before} threads, {size.rounds} rounds."
    return Report("clusters", setting, "\n\n".join(texts), bars, figures)


def _score(name: str) -> str:
    return "inertia / row" if name == "k-means" else "log-likelihood / row"


def _contenders(name: str, X: np.ndarray) -> list[Contender]:
    """Both sides, with another seed in every round: luck with the start evens out."""
    return [Contender(side, _timed(side, name, X)) for side in ("castalia", "scikit-learn")]


def _timed(side: str, name: str, X: np.ndarray) -> Callable[[], Callable[[], float]]:
    seeds = iter(range(10**6))

    def fit() -> Callable[[], float]:
        model = _model(side, name, next(seeds)).fit(X)
        if name == "k-means":
            return lambda: model.inertia_ / len(X)
        return lambda: float(model.score(X))

    return fit


def _model(side: str, name: str, seed: int) -> Any:
    if side == "castalia":
        from castalia import GaussianMixture, KMeans

        if name == "k-means":
            return KMeans(n_clusters=10, random_state=seed)
        return GaussianMixture(n_components=10, covariance_type=name, random_state=seed)
    from sklearn.cluster import KMeans
    from sklearn.mixture import GaussianMixture

    if name == "k-means":
        return KMeans(10, n_init=1, random_state=seed)
    return GaussianMixture(10, covariance_type=name, random_state=seed)


def _bars(what: str, found: dict[str, Result]) -> list[Bar]:
    ours, theirs = found["castalia"], found["scikit-learn"]
    faster: Spread = ratio(theirs, ours, "wall")
    bars = [Bar(f"{what}: times as fast as scikit-learn", faster.median, ">=", 1.0)]
    if ours.score is None or theirs.score is None:
        return bars
    if what.startswith("k-means"):
        worse = ours.score / theirs.score - 1
        return [*bars, Bar(f"{what}: inertia above scikit-learn's", worse, "<=", 1e-3)]
    worse = theirs.score - ours.score
    return [*bars, Bar(f"{what}: log-likelihood below scikit-learn's", worse, "<=", 1e-3)]


if __name__ == "__main__":
    main(run, threads=int)
