"""Long memory: what an LSTM keeps for many steps and a simple recurrent network loses.

Three tasks that need nothing but memory. Adding: two of T numbers are marked, and their sum is
asked for at the end. Copying: symbols, then T blanks, then the symbols again. Counting: after
a^n b..., when does b^n end, for n longer than any in training. Gates of the LSTM begin with a
memory of about T steps, and in counting they see its cells (peepholes).
References: 1997, Hochreiter, Schmidhuber, Long short-term memory; 2001, Gers, Schmidhuber, LSTM
recurrent networks learn simple context-free and context-sensitive languages; 2018, Tallec,
Ollivier, arXiv 1804.11188.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.sequence import RNNRegressor, RNNTagger
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, caption

__all__ = ["CELLS", "TASKS", "Sizes", "adding", "copying", "counting", "drawn", "run"]

CELLS = ("lstm", "elman")
KINDS = 4  # of symbols to copy


@dataclass(frozen=True)
class Sizes:
    """How long the tasks are, and how much is trained."""

    adding: int = 60
    copying: int = 10
    symbols: int = 2
    trained: int = 20
    tested: int = 60
    rows: int = 2000
    epochs: int = 25
    hidden: int = 32
    seeds: int = 3
    counted: int = 40  # epochs of counting
    rate: float = 5e-3  # of the LSTM
    loop: Mapping[str, Any] = field(default_factory=lambda: {"schedule": "cosine"})


QUICK = Sizes(30, 8, 2, 6, 9, 200, 6, 12, 1, 20)


def _settings(cell: str, memory: int, sizes: Sizes, seed: int) -> dict[str, Any]:
    training = Training(validation=0, clip=1.0, verbose=False, **sizes.loop)
    return {
        "cell": cell,
        "memory": memory if cell == "lstm" else None,
        "hidden": sizes.hidden,
        "epochs": sizes.epochs,
        "batch_size": 100,
        "lr": sizes.rate if cell == "lstm" else 1e-3,
        "random_state": seed,
        "training": training,
    }


def adding(cell: str, sizes: Sizes, seed: int) -> float:
    """Return the mean squared error on new sums; always saying 1 has 1/6."""
    random = np.random.default_rng(seed)

    def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
        X = np.zeros((n, sizes.adding, 2), dtype=np.float32)
        X[..., 0] = random.random((n, sizes.adding))
        half, every = sizes.adding // 2, np.arange(n)
        for places in (random.integers(0, half, n), random.integers(half, sizes.adding, n)):
            X[every, places, 1] = 1
        return X, (X[..., 0] * X[..., 1]).sum(axis=1)

    model = RNNRegressor(**_settings(cell, sizes.adding, sizes, seed)).fit(*rows(sizes.rows))
    X, y = rows(500)
    return float(np.mean((model.predict(X) - y) ** 2))


def copying(cell: str, sizes: Sizes, seed: int) -> float:
    """Return the share of symbols that are copied right; guessing has a quarter."""
    random = np.random.default_rng(seed)

    def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
        symbols = random.integers(1, KINDS + 1, (n, sizes.symbols))
        blank = np.zeros((n, sizes.copying), dtype=int)
        asked = np.full((n, sizes.symbols), KINDS + 1)
        X = np.concatenate([symbols, blank, asked], axis=1)
        return X[..., None], np.concatenate([0 * symbols, blank, symbols], axis=1)

    settings = _settings(cell, 3 * sizes.copying // 2, sizes, seed)
    model = RNNTagger(categorical=(0,), dim=8, bidirectional=False, **settings)
    X, y = rows(sizes.rows)
    model.fit(X, list(y))
    X, y = rows(300)
    said = np.array(model.predict(X).tolist())
    return float(np.mean(said[:, -sizes.symbols :] == y[:, -sizes.symbols :]))


def counting(cell: str, sizes: Sizes, seed: int) -> float:
    """Return the largest n up to which every a^n b^n is ended in the right place."""

    def rows(numbers: Any) -> tuple[list[list[str]], list[list[str]]]:
        X = [["a"] * n + ["b"] * n for n in numbers]
        return X, [["any"] * n + ["b"] * (n - 1) + ["end"] for n in numbers]

    small: dict[str, Any] = {"hidden": 12, "lr": 0.02, "epochs": sizes.counted, "batch_size": 50}
    small |= {"cell": "peephole"} if cell == "lstm" else {}
    settings = {**_settings(cell, 10 * sizes.trained, sizes, seed), **small}
    model = RNNTagger(bidirectional=False, **settings)
    model.fit(*rows(list(range(1, sizes.trained + 1)) * max(1, 400 // sizes.trained)))
    X, wanted = rows(range(1, sizes.tested + 1))
    right = [said == true for said, true in zip(model.predict(X), wanted, strict=True)]
    return float(right.index(False) if False in right else sizes.tested)


TASKS: dict[str, Callable[[str, Sizes, int], float]] = {
    "adding": adding,
    "copying": copying,
    "counting": counting,
}


def run(*, quick: bool = False) -> Outcome:
    """Train both networks on the three tasks, with several seeds."""
    sizes = QUICK if quick else Sizes()
    return drawn(
        {
            (name, cell): [task(cell, sizes, seed) for seed in range(sizes.seeds)]
            for name, task in TASKS.items()
            for cell in CELLS
        },
        sizes,
    )


def drawn(scores: Mapping[tuple[str, str], list[float]], sizes: Sizes) -> Outcome:
    """Draw what each network reaches in each task, seed by seed."""
    figure, axes = panels(3, (10, 3.4))
    titles = {
        "adding": (f"adding, T = {sizes.adding}", "squared error of the sum"),
        "copying": (f"copying after {sizes.copying} blanks", "share of symbols copied"),
        "counting": (f"counting, trained to {sizes.trained}", "counts right up to"),
    }
    numbers: dict[str, float] = {}
    for ax, name in zip(axes, TASKS, strict=True):
        for place, (cell, colour) in enumerate(zip(CELLS, COLOURS, strict=False)):
            found = scores[name, cell]
            numbers[f"{name}: {cell}"] = float(np.median(found))
            across = place + np.linspace(-0.1, 0.1, len(found)) * (len(found) > 1)
            ax.plot(across, found, "o", color=colour, ms=5)
        ax.set(xlabel=titles[name][0], ylabel=titles[name][1], xlim=(-0.5, 1.5))
        ax.set_xticks([0, 1], ["LSTM", "Elman"])
    axes[0].axhline(1 / 6, linestyle=":", color=COLOURS[2], label="always 1")
    axes[1].axhline(1 / KINDS, linestyle=":", color=COLOURS[2], label="guessing")
    axes[2].axhline(sizes.trained, linestyle=":", color=COLOURS[2], label="longest in training")
    for ax in axes:
        ax.set_ylim(bottom=0)
        caption(ax, 2)
    return Outcome(figure, numbers, _said(numbers, sizes))


def _said(numbers: dict[str, float], sizes: Sizes) -> str:
    return (
        f"Medians of {sizes.seeds}: after {sizes.adding} steps an LSTM misses the sum by a squared "
        f"error of {numbers['adding: lstm']:.3f}, an Elman network by "
        f"{numbers['adding: elman']:.3f} (1/6 knows nothing); {numbers['copying: lstm']:.0%} and "
        f"{numbers['copying: elman']:.0%} of the symbols are copied; trained to {sizes.trained}, "
        f"they count right to {numbers['counting: lstm']:.0f} and "
        f"{numbers['counting: elman']:.0f} of {sizes.tested}."
    )
