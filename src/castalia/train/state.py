"""Where a training stands: what callbacks see and checkpoints keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

__all__ = ["TrainState"]


@dataclass
class TrainState:
    """The position and the record of a training.

    Attributes
    ----------
    net
        The network being trained.
    stage, stage_index
        Name and number of the current stage.
    epoch, epochs
        Current epoch of the stage, from 0, and how many there are.
    step, steps
        Current step inside the epoch, from 0, and how many there are.
    total
        Steps taken since the start, over all stages.
    lr
        Learning rate of the step.
    loss
        Loss of the last step, still on the device: reading it waits for the device.
    history
        One dict per finished epoch.
    best
        The best epoch so far by validation loss: its number and value.
    stopped
        Why the training ends early, or None.
    settings
        What was resolved at the start: device, precision, threads …
    weights
        The final weights where ``net`` ends as one shard of many; None otherwise.
    stepper
        What takes the steps of the stage: ``parts`` has its objective and optimizers,
        ``next_batch()`` returns the batch of the next step. Changing it changes the training.
    validation
        Samples validated on, or None.
    losses
        Loss of each step of the current epoch that was read from the device so far; after an epoch,
        of all its steps.
    """

    net: nn.Module
    stage: str = "train"
    stage_index: int = 0
    epoch: int = 0
    epochs: int = 0
    step: int = 0
    steps: int = 0
    total: int = 0
    lr: float = 0.0
    loss: Tensor | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    best: dict[str, Any] | None = None
    stopped: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    weights: dict[str, Tensor] | None = None
    stepper: Any = None
    validation: Any = None
    losses: list[float] = field(default_factory=list)

    def stop(self, reason: str) -> None:
        """Ask the loop to end after this epoch."""
        self.stopped = reason
