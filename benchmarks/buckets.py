"""Texts of mixed lengths: batches of like lengths against padding every text to the longest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Bar, Contender, Report, main, race, ratio, table


@dataclass(frozen=True)
class Size:
    texts: int
    dim: int
    depth: int
    epochs: int
    rounds: int


SIZES = {
    "full": Size(4000, 64, 2, 2, 5),
    "quick": Size(500, 32, 2, 1, 2),
    "tiny": Size(120, 8, 1, 1, 1),
}
LONGEST = 128  # words


def reviews(n: int) -> tuple[list[str], np.ndarray]:
    """Texts whose lengths are as skewed as those of reviews; some words give the label away."""
    rng = np.random.default_rng(0)
    lengths = rng.lognormal(3.0, 0.7, n).clip(2, LONGEST).astype(int)
    labels = rng.integers(2, size=n)
    words = [rng.integers(2000, size=length) for length in lengths]
    for row, label in zip(words, labels, strict=True):
        row[rng.integers(len(row))] = 2000 + label
    return [" ".join(f"w{i}" for i in row) for row in words], labels


def run(scale: str = "full") -> Report:
    """Time whole fits of one classifier, three ways to make batches."""
    from castalia import Training
    from castalia.data.batches import Samples, TensorRows
    from castalia.models.language import TransformerClassifier

    class Padded(TransformerClassifier):
        """Every batch is as wide as the longest text of all."""

        def _padded_rows(self, samples: Samples) -> Samples:
            return Samples(TensorRows(samples.x.x), samples.y, samples.weight)

    size = SIZES[scale]
    texts, labels = reviews(size.texts)
    training = Training(device="cpu", watch=False, verbose=False)

    def fit(kind: Any, **settings: Any) -> Callable[[], Callable[[], float]]:
        def timed() -> Callable[[], float]:
            model = kind(
                dim=size.dim, depth=size.depth, epochs=size.epochs, batch_size=32,
                context=LONGEST, random_state=0, training=training, **settings,
            ).fit(texts, labels)  # fmt: skip
            return lambda: float(model.score(texts, labels))

        return timed

    contenders = [
        Contender("like lengths", fit(TransformerClassifier)),
        Contender("like lengths, 2048 tokens", fit(TransformerClassifier, batch_tokens=2048)),
        Contender("padded to the longest", fit(Padded)),
    ]
    found = race(contenders, size.rounds, warm_up=1)
    base = "padded to the longest"
    over = [ratio(found[c.name], found[base]).median for c in contenders[:2]]
    bars = [
        Bar(f"{c.name}: CPU time over padding to the longest", value, "<=", 0.6)
        for c, value in zip(contenders, over, strict=False)
    ]
    setting = (
        f"{size.texts:,} texts of 2 to {LONGEST} words (median 20), Transformer of width {size.dim}"
        f" and depth {size.depth}, {size.epochs} epochs, {size.rounds} rounds, CPU."
    )
    figures = {name: vars(result) for name, result in found.items()}
    return Report("buckets", setting, table(found, base), bars, figures)


if __name__ == "__main__":
    main(run)
