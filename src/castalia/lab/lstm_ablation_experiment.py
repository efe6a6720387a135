"""What the parts of an LSTM are for: each left out in turn.

A stream of bits with resets; at every step the number of ones since the last reset is asked for.
Only what can be forgotten can be counted again, so it is the forget gate that is missed.
Reference: 2017, Greff et al., LSTM: a search space odyssey, arXiv 1503.04069.
"""

from __future__ import annotations

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.sequence import RNNRegressor
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, caption

__all__ = ["errors", "run", "streams"]

PARTS = {
    "": "whole",
    "nig": "no input gate",
    "nfg": "no forget gate",
    "nog": "no output gate",
    "niaf": "no input\nactivation",
    "noaf": "no output\nactivation",
}
SHORT, LONG = 20, 60  # steps of streams: as trained, and longer


def streams(rows: int, steps: int, seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return bits and resets, (rows, steps, 2), and the ones since the last reset at each step."""
    random = np.random.default_rng(seed)
    bits = random.random((rows, steps)) < 0.5
    resets = random.random((rows, steps)) < 0.12
    counts = np.zeros((rows, steps))
    for t in range(steps):
        before = counts[:, t - 1] if t else 0
        counts[:, t] = np.where(resets[:, t], 0, before + bits[:, t])
    return np.stack([bits, resets], axis=-1).astype(np.float32), list(counts)


def errors(part: str, rows: int, epochs: int, seed: int) -> tuple[float, float]:
    """Return the mean squared errors of an LSTM without a part, on short and on long streams."""
    model = RNNRegressor(
        without=(part,) if part else (),
        hidden=12,
        epochs=epochs,
        batch_size=64,
        lr=0.02,
        random_state=seed,
        training=Training(validation=0, clip=1.0, schedule="cosine", verbose=False),
    ).fit(*streams(rows, SHORT, seed))
    found = []
    for steps in (SHORT, LONG):
        X, y = streams(200, steps, 1000 + seed)
        said = model.predict(X)
        found.append(float(np.mean((np.concatenate(said) - np.concatenate(y)) ** 2)))
    return found[0], found[1]


def run(*, quick: bool = False) -> Outcome:
    """Leave out each part, with several seeds."""
    rows, epochs, seeds = (128, 20, 1) if quick else (512, 60, 5)
    figure, (ax,) = panels(1, (8.5, 3.6))
    numbers: dict[str, float] = {}
    for place, part in enumerate(PARTS):
        found = np.array([errors(part, rows, epochs, seed) for seed in range(seeds)])
        for side, (steps, colour) in enumerate(zip((SHORT, LONG), COLOURS, strict=False)):
            at = place + 0.2 * (2 * side - 1)
            middle = float(np.median(found[:, side]))
            shown = f"{steps} steps{', as trained' if not side else ''}" if not place else None
            ax.bar(at, middle, 0.36, color=colour, label=shown)
            ax.plot(np.full(seeds, at), found[:, side], "k.", ms=4)
            numbers[f"{part or 'whole'}: {steps} steps"] = middle
    ax.set_yscale("log")
    ax.set_xticks(range(len(PARTS)), list(PARTS.values()))
    ax.set_ylabel("squared error of the count")
    caption(ax, 2)
    kept = {k.split(":")[0]: v for k, v in numbers.items() if k.endswith(f": {SHORT} steps")}
    others = max(v for k, v in kept.items() if k not in ("whole", "nfg"))
    said = (
        f"On new streams an LSTM misses the count by {kept['whole']:.3f} (squared), without its "
        f"forget gate by {kept['nfg']:.3f}; no other part costs more than {others:.3f}."
    )
    return Outcome(figure, numbers, said)
