"""A linear autoencoder that is trained by gradients ends in the space of principal components."""

from __future__ import annotations

import numpy as np
from scipy.linalg import subspace_angles

from castalia.lab.digits import digits
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.lab.image_tiles import draw_tiles
from castalia.models.generative import PCA, LinearAutoencoder
from castalia.train import Callback, Training
from castalia.train.state import TrainState
from castalia.utils.figure_style import COLOURS, MUTED, caption

__all__ = ["run"]

CODE = 8


class Angles(Callback):
    """Keeps the largest angle between two spaces, in degrees, and the error, after every epoch."""

    def __init__(self, X: np.ndarray, space: np.ndarray) -> None:
        self.X, self.space = X, space
        self.angle: list[float] = []
        self.error: list[float] = []

    def on_epoch_end(self, state: TrainState) -> None:
        """Compare the rows of W with the components."""
        W = next(p for p in state.net.parameters() if p.ndim == 2).detach().cpu().numpy()
        self.angle.append(float(np.rad2deg(subspace_angles(W.T, self.space.T).max())))
        basis = np.linalg.svd(W, full_matrices=False)[2]
        self.error.append(float(np.square(self.X - self.X @ basis.T @ basis).sum(axis=1).mean()))


def run(*, quick: bool = False) -> Outcome:
    """Train on small digits and compare with the decomposition, epoch by epoch."""
    found = digits(300 if quick else 1000, 10, small=True)
    kept = found.x.std(axis=0) > 0.05  # pixels that are never on have no scale
    X = found.x[:, kept]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    exact = PCA(components=CODE).fit(X)
    watch = Angles(X, exact.components_)
    training = Training(validation=0, schedule="cosine", callbacks=(watch,))
    LinearAutoencoder(
        code=CODE, lr=1e-2, epochs=30 if quick else 120, training=training, random_state=0
    ).fit(X)
    values = np.linalg.svd(X, compute_uv=False)
    least = float(np.square(values[CODE:]).sum() / len(X))
    figure, axes = panels(3, (11, 3.2))
    epochs = np.arange(1, len(watch.error) + 1)
    axes[0].plot(epochs, watch.error, color=COLOURS[0], label="autoencoder")
    axes[0].axhline(least, color=MUTED, ls="--", label="singular values left out")
    axes[0].set(title="squared error of an image", xlabel="epoch")
    caption(axes[0], 1)
    axes[1].semilogy(epochs, watch.angle, color=COLOURS[0])
    axes[1].set(title="largest angle to the components, degrees", xlabel="epoch")
    shown = np.zeros((CODE, kept.size))
    shown[:, kept] = exact.components_
    draw_tiles(axes[2], shown.reshape(-1, 8, 8), 4, "the eight components", both_signs=True)
    numbers = {
        "error": watch.error[-1],
        "least error": least,
        "first angle": watch.angle[0],
        "last angle": watch.angle[-1],
    }
    said = (
        f"The error ends at {watch.error[-1]:.3f} where the singular values left out add up to "
        f"{least:.3f}, and the spaces are {watch.angle[-1]:.2g} degrees apart."
    )
    return Outcome(figure, numbers, said)
