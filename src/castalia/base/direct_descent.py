"""The one loop for models that also have a direct solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor, nn

from castalia.base.run_recorder import open_recorder
from castalia.base.watched import remember, watchers
from castalia.data.batches import Samples, SparseRows, TensorRows
from castalia.protocols import Objective, Rows, Stage
from castalia.train import Callback, Precision, Training, TrainState, check_training, train
from castalia.utils.devices import resolve_device
from castalia.utils.seeds import seed_from, seed_scope
from castalia.utils.shared_arrays import shared_tensor

__all__ = ["descend", "loop_settings"]


def loop_settings(training: Training | None, device: str) -> Training:
    """Return how the loop runs: as was said, or by plain steps; on every row in both cases."""
    if training is None:
        return Training(optimizer="sgd", validation=0, verbose=False, device=device)
    return replace(training, validation=0)


def descend(
    est: Any,
    net: nn.Module,
    objective: Objective,
    X: Any,
    y: Tensor,
    weight: np.ndarray | None = None,
    *,
    training: Training,
    epochs: int,
    batch_size: int,
    lr: float,
    callbacks: Sequence[Callback] = (),
) -> TrainState:
    """Train a small network on checked rows, in their own precision, and return where it ended.

    Parameters
    ----------
    est
        The estimator being fitted: its ``random_state`` seeds the order of the rows.
    net
        The network, already at its starting point; changed in place and left on the CPU.
    objective
        What is minimised.
    X
        Rows as ``check_matrix`` gives them, an array, a tensor or CSR; or ``Rows`` with a
        ``dtype``.
    y, weight
        Encoded targets and row weights.
    training
        How the loop runs; ``validation`` must be 0, every row is trained on.
    epochs, batch_size, lr
        As everywhere; a batch of all rows makes it plain gradient descent.
    callbacks
        Further callbacks.
    """
    check_training(training)
    device = resolve_device(training.device)
    dtype = torch.float32 if str(X.dtype).endswith("float32") else torch.float64
    recorder = open_recorder(est, training, X, y, weight, seed_from(est.random_state))
    if isinstance(X, Rows):
        rows: Rows = X
    elif issparse(X):
        rows = SparseRows(X)
    else:
        rows = TensorRows(X if isinstance(X, Tensor) else shared_tensor(X))
    samples = Samples(
        rows,
        y.to(dtype) if y.is_floating_point() else y,
        None if weight is None else torch.from_numpy(weight).to(dtype),
    )
    batch_size = min(batch_size, len(y))
    steps = epochs * samples.n_batches(batch_size)
    work = float(sum(p.numel() for p in net.parameters()) * batch_size)
    doctor = watchers(est, training, recorder, device, work=work, steps=steps)
    with seed_scope(recorder.seed, device):
        state = train(
            net.to(dtype),
            [Stage("train", objective)],
            samples,
            training,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            seed=recorder.seed,
            device=device,
            precision=Precision(str(dtype).removeprefix("torch."), dtype),
            callbacks=[*callbacks, *doctor],
            recorder=recorder,
        )
    remember(est, doctor)
    net.to("cpu")
    return state
