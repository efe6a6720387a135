"""Watching the norm of the gradient."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from castalia.optim import gradient_norm
from castalia.train.callbacks import Callback
from castalia.train.state import TrainState

__all__ = ["GradientNorms"]


class GradientNorms(Callback):
    """Keeps the norm of the gradient of every step, before clipping.

    A training that has come to rest at a minimum has a vanishing gradient. Often the loss flattens
    while the norm grows: then it is not a minimum that stops it. A resumed training starts with an
    empty list.

    Attributes
    ----------
    norms
        One number a step.

    Examples
    --------
    >>> watch = GradientNorms()
    >>> watch.norms, watch.trend()
    ([], 'flat')
    """

    def __init__(self) -> None:
        self.norms: list[float] = []
        self._last: Tensor | None = None
        self._waiting: list[Tensor] = []  # on the device, until the epoch ends

    def on_gradients(self, state: TrainState) -> None:
        """Note the norm; the last one of a step counts."""
        self._last = gradient_norm(state.net.parameters())

    def on_batch_end(self, state: TrainState) -> None:
        """Keep the step's norm."""
        if self._last is not None:
            self._waiting.append(self._last)
            self._last = None

    def on_epoch_end(self, state: TrainState) -> None:
        """Move the epoch's norms to the host."""
        if self._waiting:
            self.norms += torch.stack(self._waiting).tolist()
            self._waiting = []

    def means(self, window: int = 20) -> list[float]:
        """Mean of each norm and of the up to ``window - 1`` before it."""
        parts = (self.norms[max(0, i + 1 - window) : i + 1] for i in range(len(self.norms)))
        return [math.fsum(part) / len(part) for part in parts]

    def trend(self, factor: float = 2.0) -> str:
        """Say "growing", "falling" or "flat".

        The mean of the last quarter is compared with that of the first; flat is less than
        ``factor`` either way.
        """
        quarter = len(self.norms) // 4
        if not quarter:
            return "flat"
        first, last = math.fsum(self.norms[:quarter]), math.fsum(self.norms[-quarter:])
        return (
            "growing" if last > factor * first else "falling" if last * factor < first else "flat"
        )
