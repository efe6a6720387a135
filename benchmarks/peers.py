"""One task done by us, by hand and by the peers: Adam, the same network, epochs, batches and rate.

Every function takes ``(X, y, task)`` and returns a function that fits once and returns a function
that gives the training accuracy. Imports and conversions to the peer's own format are not timed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.harness import Contender, installed

Fit = Callable[[], Callable[[], float]]


@dataclass(frozen=True)
class Task:
    """Sizes of a fit."""

    epochs: int
    batch_size: int
    lr: float = 1e-3
    hidden: tuple[int, ...] = (64, 64)


def network(inputs: int, outputs: int, hidden: tuple[int, ...]) -> nn.Sequential:
    """The network of the hand-written loops and of the torch peers."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


@contextlib.contextmanager
def one_dnn(enabled: bool) -> Iterator[None]:
    """Switch oneDNN; ``torch.backends.mkldnn.flags`` does the same but warns about Intel GPUs."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(enabled)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def fit_castalia(X: np.ndarray, y: np.ndarray, task: Task, **settings: Any) -> Any:
    """Our fit, without validation rows, since no other contender has any."""
    from castalia.models.dense import MLPClassifier
    from castalia.train import Training

    return MLPClassifier(
        hidden=task.hidden,
        epochs=task.epochs,
        batch_size=task.batch_size,
        lr=task.lr,
        training=Training(**{"validation": 0, "verbose": False, "device": "cpu", **settings}),
        random_state=0,
    ).fit(X, y)


def castalia(X: np.ndarray, y: np.ndarray, task: Task, **settings: Any) -> Fit:
    """The same as a contender."""

    def fit() -> Callable[[], float]:
        model = fit_castalia(X, y, task, **settings)
        return lambda: model.score(X, y)

    return fit


def by_hand(X: np.ndarray, y: np.ndarray, task: Task, onednn: bool = True) -> Fit:
    """The loop a careful person writes: data in one tensor, index batches, fused Adam."""
    inputs, targets = torch.from_numpy(X).float(), torch.from_numpy(y).long()

    def fit() -> Callable[[], float]:
        with one_dnn(onednn):
            torch.manual_seed(0)
            net = network(X.shape[1], int(y.max()) + 1, task.hidden)
            optimizer = torch.optim.Adam(net.parameters(), lr=task.lr, fused=True)
            criterion = nn.CrossEntropyLoss()
            for _ in range(task.epochs):
                for index in torch.randperm(len(inputs)).split(task.batch_size):
                    optimizer.zero_grad()
                    loss = criterion(net(inputs[index]), targets[index])
                    loss.backward()
                    optimizer.step()
        return lambda: float((net(inputs).argmax(1) == targets).float().mean())

    return fit


def scikit_learn(X: np.ndarray, y: np.ndarray, task: Task) -> Fit:
    """scikit-learn's own perceptron, told never to stop early."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    def fit() -> Callable[[], float]:
        model = MLPClassifier(
            task.hidden,
            batch_size=task.batch_size,
            learning_rate_init=task.lr,
            max_iter=task.epochs,
            alpha=0.0,
            tol=0.0,
            n_iter_no_change=10 * task.epochs,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        return lambda: model.score(X, y)

    return fit


def skorch(X: np.ndarray, y: np.ndarray, task: Task) -> Fit:
    from skorch import NeuralNetClassifier

    X, y = X.astype(np.float32), y.astype(np.int64)

    def fit() -> Callable[[], float]:
        torch.manual_seed(0)
        model = NeuralNetClassifier(
            network(X.shape[1], int(y.max()) + 1, task.hidden),
            criterion=nn.CrossEntropyLoss,
            optimizer=torch.optim.Adam,
            lr=task.lr,
            batch_size=task.batch_size,
            max_epochs=task.epochs,
            iterator_train__shuffle=True,
            train_split=None,
            verbose=0,
        ).fit(X, y)
        return lambda: model.score(X, y)

    return fit


def lightning(X: np.ndarray, y: np.ndarray, task: Task) -> Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import lightning as L

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    inputs, targets = torch.from_numpy(X).float(), torch.from_numpy(y).long()

    class Perceptron(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = network(X.shape[1], int(y.max()) + 1, task.hidden)

        def training_step(self, batch: Any, _: int) -> Any:
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=task.lr)

    def fit() -> Callable[[], float]:
        torch.manual_seed(0)
        model = Perceptron()
        rows = torch.utils.data.TensorDataset(inputs, targets)
        loader = torch.utils.data.DataLoader(rows, batch_size=task.batch_size, shuffle=True)
        with warnings.catch_warnings(), open(os.devnull, "w") as nowhere:
            warnings.simplefilter("ignore")  # it advises more loader workers
            with contextlib.redirect_stderr(nowhere), contextlib.redirect_stdout(nowhere):
                L.Trainer(
                    max_epochs=task.epochs,
                    accelerator="cpu",
                    devices=1,
                    logger=False,
                    enable_checkpointing=False,
                    enable_progress_bar=False,
                    enable_model_summary=False,
                ).fit(model, loader)
        return lambda: float((model.net(inputs).argmax(1) == targets).float().mean())

    return fit


def keras(X: np.ndarray, y: np.ndarray, task: Task) -> Fit:
    os.environ["KERAS_BACKEND"] = "torch"
    import keras as k

    X = X.astype(np.float32)

    def fit() -> Callable[[], float]:
        k.utils.set_random_seed(0)
        dense = [k.layers.Dense(width, activation="relu") for width in task.hidden]
        model = k.Sequential([k.Input(X.shape[1:]), *dense, k.layers.Dense(int(y.max()) + 1)])
        model.compile(
            optimizer=k.optimizers.Adam(task.lr),
            loss=k.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        model.fit(X, y, batch_size=task.batch_size, epochs=task.epochs, verbose=0)
        return lambda: float((model.predict(X, verbose=0).argmax(1) == y).mean())

    return fit


PEERS = {"skorch": skorch, "lightning": lightning, "keras": keras}


def installed_peers(X: np.ndarray, y: np.ndarray, task: Task) -> list[Contender]:
    """The peers that can be imported here."""
    return [Contender(n, make(X, y, task)) for n, make in PEERS.items() if installed(n)]
