"""The loop on tensors, without an estimator: to test objectives, networks and the loop itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from castalia.data.batches import Samples, TensorRows
from castalia.protocols import Objective, Stage
from castalia.train import Precision, Recorder, Training, TrainState, train
from castalia.utils.devices import resolve_device
from castalia.utils.seeds import seed_scope

__all__ = ["train_tensors"]


def train_tensors(
    net: nn.Module,
    objective: Objective | Sequence[Stage],
    x: Tensor,
    y: Tensor | None = None,
    *,
    weight: Tensor | None = None,
    validation: tuple[Tensor, Tensor] | None = None,
    training: Training | None = None,
    epochs: int = 1,
    batch_size: int = 16,
    lr: float = 0.1,
    seed: int = 0,
    run: Any = None,
) -> TrainState:
    """Train a network on tensors, in their own number format, and return where it ended.

    Parameters
    ----------
    net
        The network; changed in place.
    objective
        What is minimised, or stages in order.
    x, y, weight
        Rows, targets and row weights.
    validation
        Rows and targets to validate on after each epoch.
    training
        Settings; ``Training()`` by default.
    epochs, batch_size, lr, seed
        As an estimator has them.
    run
        Folder of the run, to record to and to resume from.

    Examples
    --------
    >>> import torch
    >>> from castalia.objectives import SquaredError
    >>> x = torch.linspace(-1, 1, 32)[:, None]
    >>> state = train_tensors(nn.Linear(1, 1), SquaredError(), x, 2 * x, epochs=60)
    >>> state.history[-1]["loss"] < 0.01
    True
    """
    training = training if training is not None else Training()
    stages = [Stage("train", objective)] if not isinstance(objective, Sequence) else objective
    # On the CPU unless another device is asked for by name.
    device = resolve_device("cpu" if training.device == "auto" else training.device)
    with seed_scope(seed, device):
        return train(
            net,
            stages,
            Samples(TensorRows(x), y, weight),
            training,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            seed=seed,
            device=device,
            precision=Precision(str(x.dtype).removeprefix("torch."), x.dtype),
            validation=None if validation is None else _samples(*validation),
            recorder=None if run is None else Recorder(run, seed, "tensors"),
        )


def _samples(x: Tensor, y: Tensor) -> Samples:
    return Samples(TensorRows(x), y)
