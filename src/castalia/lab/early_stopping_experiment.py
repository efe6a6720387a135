"""Early stopping: keep the weights of the lowest validation loss."""

from __future__ import annotations

import numpy as np

from castalia.evaluate.displays.curves import LearningCurves
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.dense import MLPRegressor
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, MUTED, caption

__all__ = ["run"]


def data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points of a sinusoid with much noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 1))
    return x, np.sin(3 * x[:, 0]) + 0.5 * rng.normal(size=n)


def run(*, quick: bool = False) -> Outcome:
    """Train a network far too large for thirty rows, to the end and with patience."""
    X, y = data(30, 0)
    held, test = data(200, 1), data(2000, 2)
    epochs = 150 if quick else 800

    def trained(patience: int | None) -> MLPRegressor:
        training = Training(validation=held, patience=patience)
        model = MLPRegressor(
            hidden=(64, 64), epochs=epochs, lr=1e-2, training=training, random_state=0
        )
        model.fit(X, y)
        return model

    to_the_end, patient = trained(None), trained(40)

    def error(model: MLPRegressor) -> float:
        return float(np.square(model.predict(test[0]) - test[1]).mean())

    figure, (left, right) = panels(2, (9, 3.3))
    LearningCurves.from_history(to_the_end.history_).plot(left)
    grid = np.linspace(-1, 1, 200)[:, None]
    right.plot(X[:, 0], y, "o", color=MUTED, ms=4)
    curves = (
        (np.sin(3 * grid[:, 0]), "truth", MUTED),
        (to_the_end.predict(grid), "to the end", COLOURS[4]),
        (patient.predict(grid), "stopped", COLOURS[2]),
    )
    for values, name, colour in curves:
        right.plot(grid[:, 0], values, color=colour, lw=1.8, label=name)
    right.set(xlabel="x", ylabel="y", ylim=(-2, 2))
    caption(right)
    numbers = {
        "error to the end": error(to_the_end),
        "error stopped": error(patient),
        "epochs run": float(patient.n_iter_),
        "best epoch": float(np.argmin([line["val_loss"] for line in patient.history_])),
    }
    said = (
        f"Test error {numbers['error stopped']:.3f} with patience, "
        f"{numbers['error to the end']:.3f} after {epochs} epochs; the noise alone is 0.25."
    )
    return Outcome(figure, numbers, said)
