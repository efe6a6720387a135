"""Binarised MNIST: likelihoods of a dense VAE and of DRAW; classes from 100 labels by M1 and M2.

Pixels are drawn by their grey values: ten times for the training images, once for the 10,000 test
images. The VAE's likelihood is estimated with 5,000 importance samples, DRAW's is its bound.
Published: 86.76 nats for a VAE with one stochastic layer of 50 units (2016, Burda, Grosse,
Salakhutdinov, arXiv 1509.00519), at most 80.97 for DRAW with 64 steps (2015, Gregor et al., arXiv
1502.04623). M1 + M2: a semi-supervised VAE on the codes of a VAE, error with 100 labels 3.33 %
(2014, Kingma et al., arXiv 1406.5298; of M2 on pixels 11.97 %). MINUTES is how long each is
trained, two by default; PARTS names what is run, of ``vae draw m2``; DRAW without the compiler
where COMPILE=0.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from castalia.data.images import load_images
from castalia.models.generative import DRAW, VariationalAutoencoder
from castalia.objectives import SequentialELBO
from castalia.protocols import Batch
from castalia.train import Training
from evidence.kept_figures import Kept, fit_within
from evidence.rows import folder, print_table, spread

DRAWS = 10  # binary images of each grey one
LABELS, TRIALS = 100, 10
MINUTES = float(os.environ.get("MINUTES", 2))
PARTS = os.environ.get("PARTS", "vae draw m2").split()
COMPILED = bool(int(os.environ.get("COMPILE", 1)))  # DRAW's steps


def run(quick: bool = False) -> None:
    """Train both, and classify by codes of 100 labelled images."""
    folder()
    (train, labels), (test, truth) = load_images("mnist"), load_images("mnist", "test")
    if quick:
        train, labels, test, truth = train[:1000], labels[:1000], test[:300], truth[:300]
    random = np.random.default_rng(0)
    X = np.concatenate([drawn(train, random) for _ in range(1 if quick else DRAWS)])
    held, kept = drawn(test, random), Kept("binary_mnist")
    seconds, seeds = (1.0, 1) if quick else (60 * MINUTES, int(os.environ.get("SEEDS", 1)))

    def autoencoder(seed: int) -> dict[str, Any]:
        model = fit_within(seconds, lambda n: vae(n, seed, quick), X)
        values, errors = model.log_likelihood(held, samples=50 if quick else 5000)
        bound = -float(np.mean(model.log_likelihood(held, samples=1)[0]))
        few = few_labels(model, (train, labels), (test, truth))
        nll, error = -float(values.mean()), float(errors.mean())
        return {"nll": nll, "standard_error": error, "bound": bound, **few}

    def painter() -> dict[str, Any]:
        model = fit_within(seconds, lambda n: draw(n, quick), X)
        ends = [{key: line[key] for key in ("epoch", "loss", "kl")} for line in model.history_]
        return {"bound": lower_bound(model, held), "steps": model.steps, "history": ends}

    rows = []
    if "vae" in PARTS:
        rows.append(["VAE, 50 units (published)", "86.76", "", "", ""])
        for seed in range(seeds):
            f = kept.find(f"vae, seed {seed}", lambda s=seed: autoencoder(s))
            rows.append(
                ["VariationalAutoencoder", f"{f['nll']:.2f} ± {f['standard_error']:.2f}",
                 f"{f['bound']:.2f}", f"{f['codes']:.1f} / {f['pixels']:.1f}",
                 f"{f['seconds']:.0f}"]
            )  # fmt: skip
    if "draw" in PARTS:
        f = kept.find("draw", painter)
        rows += [
            ["DRAW, 64 steps (published)", "", "80.97", "", ""],
            [f"DRAW, {f['steps']} steps", "", f"{f['bound']:.2f}", "", f"{f['seconds']:.0f}"],
        ]
    if "m2" in PARTS:
        _semi_supervised(kept, seconds, (X, train, labels), (test, truth), quick)
    columns = ["model", "test nats, 5,000 samples", "bound",
               "% right with 100 labels: codes / pixels", "s"]  # fmt: skip
    if rows:
        print_table("Binarised MNIST", columns, rows)


def _semi_supervised(
    kept: Kept, seconds: float, train: tuple[Any, Any, Any], test: tuple[Any, Any], quick: bool
) -> None:
    """Errors of M2 on the codes of a VAE, for three draws of the labelled images."""
    coded: list[np.ndarray] = []

    def codes() -> list[np.ndarray]:
        if not coded:
            model = fit_within(seconds, lambda n: vae(n, 0, quick), train[0])
            found = [model.transform(images) for images in (train[1], test[0])]
            used = found[0].std(axis=0) > 0.1  # the others say nothing
            coded.extend(part[:, used] for part in found)
        return coded

    def error(seed: int) -> dict[str, Any]:
        Z, held = codes()
        y, random = np.asarray(train[2]), np.random.default_rng(seed)
        rows = np.concatenate(
            [random.choice(np.flatnonzero(y == c), LABELS // 10, False) for c in np.unique(y)]
        )
        few = np.full(len(y), -1)
        few[rows] = y[rows]
        again = np.repeat(rows, len(y) // (5 * len(rows)))  # a sixth of a batch has labels
        Z, few = np.concatenate([Z, Z[again]]), np.concatenate([few, y[again]])
        model = fit_within(seconds / 4, lambda n: m2(n, seed), Z, few)
        line = LogisticRegression(max_iter=500).fit(codes()[0][rows], y[rows])
        both = {"m2": model.predict(held), "line": line.predict(held)}
        return {
            name: 100 * float(np.mean(said != np.asarray(test[1]))) for name, said in both.items()
        }

    found = [kept.find(f"m2, {seed}", lambda s=seed: error(s)) for seed in range(1 if quick else 3)]
    rows = [
        ["M1 + M2 (published)", "3.33"],
        ["VariationalAutoencoder(unlabelled=-1) on its codes", spread([f["m2"] for f in found], 2)],
        ["logistic regression on its codes", spread([f["line"] for f in found], 2)],
    ]
    print_table("MNIST with 100 labels", ["model", "test error, %"], rows)


def m2(epochs: int, seed: int) -> VariationalAutoencoder:
    """A semi-supervised one on codes."""
    training = Training(schedule="warmup_cosine", average=("ema", 0.999), validation=0)
    return VariationalAutoencoder(
        code=8, hidden=(300, 300), conditional=True, unlabelled=-1, epochs=epochs,
        batch_size=500, lr=1e-3, training=training,
        random_state=seed,
    )  # fmt: skip


@torch.inference_mode()
def lower_bound(model: DRAW, X: np.ndarray, draws: int = 5) -> float:
    """Mean over draws of minus the bound, the divergence in closed form."""
    torch.manual_seed(0)
    net: Any = model.module_.eval()
    loss, device = SequentialELBO(model._row_likelihood()), net.canvas.device
    x = torch.from_numpy(X[:, None] / np.float32(255)).to(device)
    found = [
        len(part) * loss.terms(net, Batch(part, None), "train")["loss"]
        for _ in range(draws)
        for part in x.split(1000)
    ]
    return float(torch.stack(found).double().sum()) / (draws * len(x))


def vae(epochs: int, seed: int, quick: bool) -> VariationalAutoencoder:
    """Two dense layers each way and 50 latent units."""
    training = Training(schedule="warmup_cosine", average=("ema", 0.9995), validation=0)
    return VariationalAutoencoder(
        code=50, hidden=(32,) if quick else (300, 300), activation="tanh", width=0,
        likelihood="bernoulli", epochs=epochs, batch_size=500, lr=2e-3, training=training,
        random_state=seed,
    )  # fmt: skip


def draw(epochs: int, quick: bool) -> DRAW:
    """32 steps, 256 units a cell, windows of 5 x 5."""
    training = Training(
        schedule="warmup_cosine", average=("ema", 0.999), validation=0, clip=10.0,
        compile=True if COMPILED and not quick else "auto", precision="tf32",
    )  # fmt: skip
    return DRAW(
        code=2 if quick else 50, steps=2 if quick else 32, hidden=16 if quick else 256, window=5,
        epochs=epochs, batch_size=500, lr=1.5e-3, training=training, random_state=0,
    )  # fmt: skip


def drawn(images: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Black and white images, bytes, white with the probability of the grey value."""
    return (255 * (random.random(images.shape, dtype=np.float32) < images / 255)).astype(np.uint8)


def few_labels(model: Any, train: tuple[Any, Any], test: tuple[Any, Any]) -> dict[str, float]:
    """Accuracy in percent of logistic regression from 100 labels, by codes and by pixels."""
    codes = [model.transform(part[0]) for part in (train, test)]
    flat = [part[0].reshape(len(part[0]), -1) / 255 for part in (train, test)]
    return {
        name: _accuracy(*pair, np.asarray(train[1]), np.asarray(test[1]))
        for name, pair in {"codes": codes, "pixels": flat}.items()
    }


def _accuracy(X: np.ndarray, held: np.ndarray, y: np.ndarray, truth: np.ndarray) -> float:
    """Mean over draws of the labelled rows, ten of each class."""
    random, found = np.random.default_rng(0), []
    for _ in range(TRIALS):
        rows = np.concatenate(
            [random.choice(np.flatnonzero(y == c), LABELS // 10) for c in np.unique(y)]
        )
        mean = X.mean(axis=0)  # not the scale: codes that say nothing vary little
        line = LogisticRegression(max_iter=500).fit(X[rows] - mean, y[rows])
        found.append(line.score(held - mean, truth))
    return 100 * float(np.mean(found))
