"""Binarised MNIST: likelihoods of a dense VAE and of DRAW.

Pixels are drawn by their grey values: DRAWS times (ten) for training images, once for the 10,000
test images. The VAE's likelihood is estimated with 5,000 importance samples, DRAW's is its bound.
Published: 86.76 nats for a VAE with one stochastic layer of 50 units (2016, Burda, Grosse,
Salakhutdinov, arXiv 1509.00519), at most 80.97 for DRAW with 64 steps (2015, Gregor et al., arXiv
1502.04623). MINUTES is how long each is trained, two by default; PARTS names what is run, of
``vae draw``; DRAW_STEPS and DRAW_HIDDEN are its steps and the units of its cells. The last 1,000
training images are not trained on: their bound, by averaged weights, is printed on the way.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch

from castalia.data.images import load_images
from castalia.models.generative import DRAW, VariationalAutoencoder
from castalia.objectives import SequentialELBO
from castalia.protocols import Batch
from castalia.train import Training
from evidence.clock import EPOCHS, Clock
from evidence.kept_figures import Kept
from evidence.rows import folder, print_table

DRAWS = int(os.environ.get("DRAWS", 10))  # binary images of each grey one
WATCHED = 1000  # grey ones that are not trained on
MINUTES = float(os.environ.get("MINUTES", 2))
PARTS = os.environ.get("PARTS", "vae draw").split()
STEPS, HIDDEN = (int(os.environ.get(f"DRAW_{k}", v)) for k, v in (("STEPS", 32), ("HIDDEN", 256)))


def run(quick: bool = False) -> None:
    """Train both."""
    folder()
    train, test = (load_images("mnist", part)[0] for part in ("train", "test"))
    train, test = (train[-2000:], test[:300]) if quick else (train, test)
    random = np.random.default_rng(0)
    held, watched = drawn(test, random), drawn(train[-WATCHED:], random)
    X = np.concatenate([drawn(train[:-WATCHED], random) for _ in range(1 if quick else DRAWS)])
    kept, seconds = Kept("binary_mnist"), 1.0 if quick else 60 * MINUTES

    def autoencoder(seed: int) -> dict[str, Any]:
        model = vae(seconds, watched, seed, quick).fit(X)
        values, errors = model.log_likelihood(held, samples=50 if quick else 5000)
        bound = -float(np.mean(model.log_likelihood(held, samples=1)[0]))
        nll, error = -float(values.mean()), float(errors.mean())
        epochs = len(model.history_)
        return {"nll": nll, "standard_error": error, "bound": bound, "epochs": epochs}

    def painter() -> dict[str, Any]:
        model = draw(seconds, watched, quick).fit(X)
        keys = ("epoch", "loss", "kl", "val_loss")
        ends = [{key: line[key] for key in keys} for line in model.history_]
        kept = {key: model.settings_[key] for key in ("step", "graph", "precision")}
        size = {"steps": model.steps, "hidden": model.hidden}
        return {"bound": lower_bound(model, held), **size, **kept, "history": ends}

    rows = []
    if "vae" in PARTS:
        rows.append(["VAE, 50 units (published)", "86.76", "", ""])
        for seed in range(1 if quick else int(os.environ.get("SEEDS", 1))):
            f = kept.find(f"vae, seed {seed}", lambda s=seed: autoencoder(s))
            nll = f"{f['nll']:.2f} ± {f['standard_error']:.2f}"
            rows.append(["VariationalAutoencoder", nll, f"{f['bound']:.2f}", f"{f['seconds']:.0f}"])
    if "draw" in PARTS:
        f = kept.find("draw", painter)
        rows += [
            ["DRAW, 64 steps (published)", "", "80.97", ""],
            [f"DRAW, {f['steps']} steps", "", f"{f['bound']:.2f}", f"{f['seconds']:.0f}"],
        ]
    print_table("Binarised MNIST", ["model", "test nats, 5,000 samples", "bound", "s"], rows)


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


def timed(seconds: float, watched: np.ndarray, decay: float, **settings: Any) -> dict[str, Any]:
    """Arguments of a fit that lasts some seconds."""
    clock = Clock(seconds)
    training = Training(
        schedule=clock, callbacks=[clock], average=("ema", decay), validation=(watched, None),
        **settings,
    )  # fmt: skip
    return {"epochs": EPOCHS, "batch_size": 500, "training": training}


def vae(seconds: float, watched: np.ndarray, seed: int, quick: bool) -> VariationalAutoencoder:
    """Two dense layers each way and 50 latent units."""
    return VariationalAutoencoder(
        code=50, hidden=(32,) if quick else (300, 300), activation="tanh", width=0,
        likelihood="bernoulli", lr=2e-3, random_state=seed, **timed(seconds, watched, 0.9995),
    )  # fmt: skip


def draw(seconds: float, watched: np.ndarray, quick: bool) -> DRAW:
    """Windows of 5 x 5, 50 latent units a step."""
    compiled = True if torch.cuda.is_available() else "auto"
    return DRAW(
        code=2 if quick else 50, steps=2 if quick else STEPS, hidden=16 if quick else HIDDEN,
        window=5, lr=2e-3, random_state=0,
        **timed(seconds, watched, 0.9995, clip=10.0, compile=compiled, precision="tf32"),
    )  # fmt: skip


def drawn(images: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Black and white images, bytes, white with the probability of the grey value."""
    return (255 * (random.random(images.shape, dtype=np.float32) < images / 255)).astype(np.uint8)
