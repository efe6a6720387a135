"""Double descent: the test error falls, peaks where the training set is just fitted, falls again.

Over features: least squares of minimum norm on random Fourier features of digits peaks at as many
features as rows. Over epochs: inputs of two scales and noisy targets; the loud inputs fit the noise
before the quiet ones are learnt. Over rows: a network of 97 weights is worst with about as many.

References: 2019, Belkin, Hsu, Ma, Mandal, Reconciling modern machine-learning practice and the
classical bias–variance trade-off, PNAS 116. 2020, Nakkiran et al., Deep double descent, ICLR. 2021,
Heckel, Yilmaz, Early stopping in deep networks: double descent and how to eliminate it, ICLR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from castalia.evaluate.displays import DoubleDescent
from castalia.lab.digits import Digits, digits
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.dense import MLPRegressor
from castalia.models.kernel import RandomFeatureRegression
from castalia.nets.dense import MLP
from castalia.objectives import SquaredError
from castalia.testing import train_tensors
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, INK, caption, log_across
from castalia.utils.seeds import generator, seed_scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["over_epochs", "over_features", "over_rows", "run"]

# Features for every row.
SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 0.98, 1, 1.02, 1.1, 1.25, 1.5, 2, 3)
WEIGHTS = 10 * 8 + 8 + 8 + 1  # of the network over rows


def over_features(data: Digits) -> DoubleDescent:
    """Fit digits by ever more random waves; ``test`` is the share of wrong answers.

    ``train`` is the squared error, which says from where on the rows are fitted.
    """
    width = 5.0 if data.side == 28 else 2.0  # of the kernel that many waves make; Belkin has 5
    one_hot = np.eye(10)
    found = RandomFeatureRegression(length_scale=width, random_state=0).sweep(
        data.x,
        one_hot[data.y],
        data.x_test,
        one_hot[data.y_test],
        sizes=[int(len(data.y) * share / 2) for share in SHARES],  # a cosine and a sine each
    )
    wrong = (found.predictions.argmax(axis=2) != data.y_test).mean(axis=1)
    return DoubleDescent(found.features, found.train_error, wrong, "random features")


def over_epochs(epochs: int) -> DoubleDescent:
    """Train two linear layers on 100 rows with 60 loud inputs and 20 quiet ones, noise 0.5."""
    source = generator(0)
    loud, quiet = torch.ones(60), torch.ones(20)
    scale = torch.cat([loud, 0.1 * quiet])
    # Both groups matter equally: each has a sum of squared weights near one
    weights = torch.randn(80, generator=source) * torch.cat([loud / 60, quiet / 20]).sqrt()

    def draw(n: int, noise: float) -> tuple[Tensor, Tensor]:
        x = torch.randn(n, 80, generator=source)
        return x * scale, (x @ weights + noise * torch.randn(n, generator=source))[:, None]

    with seed_scope(0):
        net = MLP(80, 1, hidden=(20,), activation="identity")
    state = train_tensors(
        net,
        SquaredError(),
        *draw(100, 0.5),
        validation=draw(500, 0.0),
        training=Training(optimizer="sgd", verbose=False),
        epochs=epochs,
        batch_size=100,
        lr=0.02,
    )
    train, test = ([line[key] for line in state.history] for key in ("loss", "val_loss"))
    return DoubleDescent(1 + np.arange(epochs), np.array(train), np.array(test), "epoch")


def over_rows(rows: list[int], seeds: int) -> DoubleDescent:
    """Fit 8 hidden units to ever more rows with noise 0.5, to the end; medians over data sets."""
    curves = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        x, weights = rng.normal(size=(rows[-1] + 2000, 10)), 1.5 * rng.normal(size=10) / 10**0.5
        truth = np.sin(x @ weights)
        y = truth[: rows[-1]] + 0.5 * rng.normal(size=rows[-1])
        model = MLPRegressor(
            hidden=(8,),
            activation="tanh",
            epochs=20,
            batch_size=rows[-1],
            lr=1.0,
            training=Training(optimizer="lbfgs", precision="float64", validation=0, verbose=False),
            random_state=seed,
        )
        given = (x[: rows[-1]], y, x[rows[-1] :], truth[rows[-1] :])
        curves.append(DoubleDescent.over_rows(model, *given, rows=rows))
    train = np.median([curve.train for curve in curves], axis=0)
    test = np.median([curve.test for curve in curves], axis=0)
    return DoubleDescent(np.array(rows), train, test, "training rows")


def run(*, quick: bool = False) -> Outcome:
    """Draw the error over features, epochs and rows."""
    data = digits(300 if quick else 10_000, 1000, small=quick)
    grid = [30, 80, 500] if quick else [15, 30, 45, 60, 80, 100, 130, 170, 220, 300, 500, 1000]
    curves = {
        "features": over_features(data),
        "epochs": over_epochs(1500 if quick else 8000),
        "rows": over_rows(grid, seeds=1 if quick else 5),
    }
    figure, (left, middle, right) = panels(3, (11, 3.4))
    n = len(data.y)
    _draw(left, curves["features"], at=n, what=f"{n} rows: all fitted", train=False)
    left.set(xlabel=f"random features of {data.name}", ylabel="share of wrong answers")
    _draw(middle, curves["epochs"])
    middle.set(xlabel="epoch of two linear layers", ylabel="squared error")
    _draw(right, curves["rows"], at=WEIGHTS, what=f"{WEIGHTS} weights")
    right.set(xlabel="rows for a small network", ylabel="squared error")
    numbers = {
        key: value
        for name, curve in curves.items()
        for key, value in zip(
            (f"{name}: low", f"{name}: peak", f"{name}: end", f"{name}: peak at"),
            _shape(curve),
            strict=True,
        )
    }
    fitted = curves["features"].threshold
    numbers["features: fitted from"] = np.inf if fitted is None else fitted
    said = (
        f"With {n} rows of {data.name} the test error peaks at {numbers['features: peak at']:.0f} "
        f"features ({numbers['features: peak']:.0%}) and ends at {numbers['features: end']:.1%}, "
        f"below the {numbers['features: low']:.1%} before the peak."
    )
    return Outcome(figure, numbers, said)


def _shape(curve: DoubleDescent) -> tuple[float, float, float, float]:
    """Return the lowest test error before the peak, the peak, the end, and where the peak is."""
    at = int(np.flatnonzero(curve.x == curve.peak)[0])
    return float(curve.test[:at].min()), float(curve.test[at]), float(curve.test[-1]), curve.peak


def _draw(
    ax: Axes, curve: DoubleDescent, at: float | None = None, what: str = "", train: bool = True
) -> None:
    marker = "o" if len(curve.x) < 50 else ""
    lines = ((curve.train, "training", COLOURS[0]), (curve.test, "test", COLOURS[1]))
    for values, name, colour in lines if train else lines[1:]:
        ax.plot(curve.x, values, color=colour, lw=1.8, marker=marker, ms=3.5, label=name)
    if at is not None:
        ax.axvline(at, color=INK, lw=0.9, ls=(0, (3, 3)), label=what)
    ax.set(ylim=(0, None))
    log_across(ax, curve.x, least=1)
    caption(ax)
