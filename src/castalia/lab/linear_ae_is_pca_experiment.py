"""A linear autoencoder that is trained by gradients ends in the space of principal components."""

from __future__ import annotations

import numpy as np
from scipy.linalg import subspace_angles

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.generative import PCA, LinearAutoencoder
from castalia.train import Callback, Training
from castalia.train.state import TrainState
from castalia.utils.figure_style import COLOURS, MUTED

__all__ = ["run"]

CODE, COLUMNS = 3, 10


class Angles(Callback):
    """Keeps the largest angle between two spaces, in degrees, and the error, after every epoch."""

    def __init__(self, X: np.ndarray, space: np.ndarray) -> None:
        self.X, self.space = X, space
        self.angle: list[float] = []
        self.error: list[float] = []

    def on_epoch_end(self, state: TrainState) -> None:
        """Compare the rows of W with the components."""
        W = next(p for p in state.net.parameters() if p.ndim == 2).detach().cpu().double().numpy()
        self.angle.append(float(np.rad2deg(subspace_angles(W.T, self.space.T).max())))
        basis = np.linalg.svd(W, full_matrices=False)[2]
        self.error.append(float(np.square(self.X - self.X @ basis.T @ basis).sum(axis=1).mean()))


def run(*, quick: bool = False) -> Outcome:
    """Train on rows of three factors and noise, and compare with the decomposition."""
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, CODE)) @ random.normal(size=(CODE, COLUMNS))
    X = X + 0.7 * random.normal(size=X.shape)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    watch = Angles(X, PCA(components=CODE).fit(X).components_)
    training = Training(validation=0, schedule="cosine", callbacks=(watch,), device="cpu")
    LinearAutoencoder(
        code=CODE, lr=1e-2, epochs=25 if quick else 60, training=training, random_state=0
    ).fit(X)
    values = np.square(np.linalg.svd(X, compute_uv=False)) / len(X)
    least = float(values[CODE:].sum())
    figure, axes = panels(3, (11, 3.2))
    axes[0].bar(np.arange(1, COLUMNS + 1), values, color=[COLOURS[0]] * CODE + [MUTED] * 7)
    axes[0].set(title="variance of the components", xlabel="component")
    epochs = np.arange(1, len(watch.error) + 1)
    axes[1].plot(epochs, watch.error, color=COLOURS[0], label="autoencoder")
    axes[1].axhline(least, color=MUTED, ls="--", label="sum of the grey bars")
    axes[1].set(title="squared error of a row", xlabel="epoch")
    axes[1].legend(frameon=False, fontsize=8)
    axes[2].semilogy(epochs, watch.angle, color=COLOURS[0])
    axes[2].set(title="largest angle to the components, degrees", xlabel="epoch")
    numbers = {
        "error": watch.error[-1],
        "least error": least,
        "first angle": watch.angle[0],
        "last angle": watch.angle[-1],
    }
    said = (
        f"The error ends at {watch.error[-1]:.4f} where the components left out have "
        f"{least:.4f}, and the spaces are {watch.angle[-1]:.2g} degrees apart."
    )
    return Outcome(figure, numbers, said)
