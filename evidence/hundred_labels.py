"""MNIST with 100 of its 60,000 labels: codes and a linear classifier, and semi-supervised VAEs.

Codes are learnt from all training images without labels. Ten draws of ten labelled images a class.
The linear classifier is a logistic regression, on pixels too; the 100 labels choose its penalty by
five folds, and so the codes of the last row. M2 is ``VariationalAutoencoder(unlabelled=-1)``: on
draws of the codes of a VAE (M1 + M2; labelled images are drawn again and again), and on images.
Published errors: M1 + M2 3.33 %, M2 11.97 %, M1 with a transductive support vector machine 11.82 %
(2014, Kingma et al., arXiv 1406.5298). The test images choose nothing. MINUTES is how long each
model is trained, one by default.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV

from castalia.data.images import load_images
from castalia.models.generative import DenoisingAutoencoder, VariationalAutoencoder
from castalia.train import Training
from evidence.clock import EPOCHS, Clock
from evidence.kept_figures import Kept
from evidence.rows import folder, print_table, spread

MINUTES = float(os.environ.get("MINUTES", 1))
EACH, TRIALS, SEEDS = 10, 10, 5
DRAWS = 5  # codes of each image that M2 learns from
IMAGES = "M2 on images"
Pair = tuple[np.ndarray, np.ndarray]  # images and labels


def settings(seconds: float, seed: int, decay: float = 0.999) -> dict[str, Any]:
    """What all trainings have in common."""
    clock = Clock(seconds, lines=2)
    training = Training(
        schedule=clock, callbacks=[clock], average=("ema", decay), validation=0, watch=False
    )
    return {"epochs": EPOCHS, "training": training, "random_state": seed}


def vae(seconds: float, code: int, **shape: Any) -> VariationalAutoencoder:
    """One without labels."""
    shape = {"width": 0, "hidden": (400, 400), **shape}
    return VariationalAutoencoder(
        code=code, likelihood="bernoulli", batch_size=500, lr=1.5e-3, **shape,
        **settings(seconds, 0),
    )  # fmt: skip


def denoiser(seconds: float, code: int) -> DenoisingAutoencoder:
    """Codes wider than what is needed."""
    return DenoisingAutoencoder(
        code=code, hidden=(), width=0, batch_size=500, lr=1e-3, **settings(seconds, 0)
    )


CODES: dict[str, Callable[[float], Any]] = {
    "VariationalAutoencoder, 50 units": lambda s: vae(s, 50),
    "VariationalAutoencoder, 10 units": lambda s: vae(s, 10),
    "VariationalAutoencoder, 10 units, convolutions": lambda s: vae(s, 10, width=32),
    "VariationalAutoencoder, 6 units, convolutions": lambda s: vae(s, 6, width=32),
    "DenoisingAutoencoder, 500 units": lambda s: denoiser(s, 500),
}


def run(quick: bool = False) -> None:
    """Print the accuracy of each kind of codes, and the errors of both M2."""
    folder()
    train, test = load_images("mnist"), load_images("mnist", "test")
    if quick:
        train, test = (train[0][:1500], train[1][:1500]), (test[0][:300], test[1][:300])
    seconds, kept = (1.0 if quick else 60 * MINUTES), Kept("hundred_labels")
    first, *others = CODES
    model = CODES[first](seconds).fit(train[0])
    for seed in range(1 if quick else SEEDS):
        kept.find(f"M1 + M2, {seed}", lambda s=seed: on_codes(model, train, test, s, seconds / 2))
    kept.find(
        "pixels", lambda: linear(*(flat(part[0]) for part in (train, test)), train[1], test[1])
    )
    kept.find(first, lambda: of_codes(model, train, test))
    for name in others:
        kept.find(name, lambda name=name: of_codes(CODES[name](seconds).fit(train[0]), train, test))
    for seed in range(1 if quick else 3):
        kept.find(f"{IMAGES}, {seed}", lambda s=seed: on_images(train, test, s, seconds))
    report(kept)


def report(kept: Kept) -> None:
    """Print both tables."""
    found = {name: kept.figures[name] for name in ("pixels", *CODES)}
    rows = [[name, spread(f["right"], 1), spread(f["guess"], 1)] for name, f in found.items()]
    best = [max(CODES, key=lambda name: found[name]["guess"][i]) for i in range(TRIALS)]
    chosen = [found[name]["right"][i] for i, name in enumerate(best)]
    gain = np.subtract(chosen, found["pixels"]["right"])
    rows.append(["codes that five folds choose", spread(chosen, 1), ""])
    rows.append(["the same, above pixels", f"{spread(gain, 1)}, at least {gain.min():.1f}", ""])
    columns = ["logistic regression on", "test accuracy, %", "by five folds of the labels"]
    print_table("MNIST with 100 labels: codes", columns, rows)
    errors = {
        kind: [f["error"] for name, f in kept.figures.items() if name.startswith(kind + ",")]
        for kind in ("M1 + M2", IMAGES)
    }
    rows = [["M1 + M2 / M2 (published)", "3.33 / 11.97", "10"]]
    rows += [[kind, spread(found, 2), str(len(found))] for kind, found in errors.items()]
    print_table("MNIST with 100 labels: M2", ["model", "test error, %", "seeds"], rows)


def labelled(y: np.ndarray, seed: int) -> np.ndarray:
    """Row numbers, ten of each class."""
    random = np.random.default_rng(seed)
    rows = [random.choice(np.flatnonzero(y == c), EACH, replace=False) for c in np.unique(y)]
    return np.concatenate(rows)


def flat(images: np.ndarray) -> np.ndarray:
    """Grey values between 0 and 1, (n, 784)."""
    return images.reshape(len(images), -1).astype(np.float32) / 255


def of_codes(model: Any, train: Pair, test: Pair) -> dict[str, Any]:
    """What a linear classifier makes of codes."""
    return linear(model.transform(train[0]), model.transform(test[0]), train[1], test[1])


def linear(X: np.ndarray, held: np.ndarray, y: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """Accuracy in percent on test rows and by five folds of the labelled ones, of every draw."""
    mean, scale = X.mean(axis=0), X.std()  # one scale: codes that say nothing vary little
    X, held = (X - mean) / scale, (held - mean) / scale
    right, guess = [], []
    for seed in range(TRIALS):
        rows = labelled(y, seed)
        line = LogisticRegressionCV(Cs=[0.01, 0.1, 1.0, 10.0], cv=5, max_iter=300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", FutureWarning)
            line.fit(X[rows], y[rows])
        right.append(100 * float(np.mean(line.predict(held) == truth)))
        folds = np.mean([np.asarray(scores) for scores in line.scores_.values()], axis=(0, 1))
        guess.append(100 * float(folds.max()))
    return {"right": right, "guess": guess}


def repeated(y: np.ndarray, seed: int, share: int = 5) -> np.ndarray:
    """Labelled rows, so often that one row in ``share`` + 1 has a label."""
    rows = labelled(y, seed)
    return np.repeat(rows, max(1, len(y) // (share * len(rows))))


def on_codes(model: Any, train: Pair, test: Pair, seed: int, seconds: float) -> dict[str, Any]:
    """Error of M2 on draws of the codes of a VAE."""
    (mean, deviation), held = model.posterior(train[0]), model.posterior(test[0])[0]
    used = mean.std(axis=0) > 0.1 * mean.std(axis=0).max()  # the others say nothing
    random, y = np.random.default_rng(seed), np.asarray(train[1]).astype(int)
    again = repeated(y, seed)
    rows = np.tile(np.concatenate([np.arange(len(y)), again]), DRAWS)
    few = np.tile(np.concatenate([np.full(len(y), -1), y[again]]), DRAWS)
    Z = mean[rows] + deviation[rows] * random.standard_normal(mean[rows].shape, dtype=np.float32)
    found = VariationalAutoencoder(
        code=8, hidden=(400, 400), conditional=True, unlabelled=-1, batch_size=500, lr=1e-3,
        **settings(seconds, seed),
    ).fit(Z[:, used], few)  # fmt: skip
    return error(found, held[:, used], test[1])


def on_images(train: Pair, test: Pair, seed: int, seconds: float) -> dict[str, Any]:
    """Error of M2 on images, with convolutions."""
    y = np.asarray(train[1]).astype(int)
    again = repeated(y, seed)
    few = np.concatenate([np.full(len(y), -1), y[again]])
    found = VariationalAutoencoder(
        code=16, width=32, conditional=True, unlabelled=-1, batch_size=200, lr=1e-3,
        likelihood="bernoulli", **settings(seconds, seed),
    ).fit(np.concatenate([train[0], train[0][again]]), few)  # fmt: skip
    return error(found, test[0], test[1])


def error(model: Any, held: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """Share of wrong classes, in percent, and how many epochs there were time for."""
    wrong = 100 * float(np.mean(model.predict(held) != np.asarray(truth)))
    return {"error": wrong, "epochs": len(model.history_), "bound": -model.history_[-1]["elbo"]}
