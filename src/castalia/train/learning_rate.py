"""The learning rate of each step of a stage."""

from __future__ import annotations

import math
from typing import Any

from castalia.optim import build_schedule
from castalia.train.state import TrainState
from castalia.train.step_parts import StepParts

__all__ = ["LearningRate"]


class LearningRate:
    """The base rate of a stage times what its schedule says of the step and of the losses so far.

    Parameters
    ----------
    parts
        Whose optimizers take the rate; ``parts.lr`` is the base.
    schedule
        ``Training.schedule``.
    state
        Where the training stands; ``lr`` is kept up to date.
    """

    def __init__(self, parts: StepParts, schedule: Any, state: TrainState) -> None:
        self.parts, self.schedule, self.state = parts, build_schedule(schedule), state
        self.factor, self.drop = 1.0, 1.0
        self.follow_losses()

    def set(self, number: int) -> None:
        """Set the rate of the epoch's ``number``-th step."""
        if self.schedule.name == "constant":
            return
        state = self.state
        done, steps = state.epoch * state.steps + number, state.epochs * state.steps
        factor = self.schedule(done, steps) * self.drop
        if factor != self.factor:
            self.parts.set_rate(factor)
            self.factor = factor
            state.lr = self.parts.lr * factor

    def follow_losses(self) -> None:
        """Let schedules that wait for a plateau see the losses of the stage so far."""
        if not self.schedule.follows_losses:
            return
        history, epochs = self.state.history, self.state.epoch
        lines = history[len(history) - epochs :]
        losses = [line.get("val_loss", line.get("loss", math.nan)) for line in lines]
        self.drop = self.schedule.drop(losses)

    def forget(self) -> None:
        """Set the rate again before the next step: the optimizers hold that of another."""
        self.factor = math.nan
