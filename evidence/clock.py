"""Trainings that last as long as there is time: a rate that falls by the clock, and an end."""

from __future__ import annotations

import math
import time

from castalia.train import Callback, TrainState

WARM_UP = 500  # steps
EPOCHS = 100_000  # never reached


class Clock(Callback):
    """As a schedule: a warm-up, then half a cosine that ends with the time. As a callback: the end.

    Parameters
    ----------
    seconds
        For the training, from its first step.
    lines
        How many lines tell of the losses.
    """

    def __init__(self, seconds: float, lines: int = 12) -> None:
        self.seconds, self.lines, self.printed = seconds, lines, 0
        self.begin: float | None = None

    def share(self) -> float:
        """How much of the time is over."""
        self.begin = time.perf_counter() if self.begin is None else self.begin
        return min(1.0, (time.perf_counter() - self.begin) / self.seconds)

    def __call__(self, step: int, steps: int) -> float:
        """Return the factor of the rate."""
        return min(1.0, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * self.share())) / 2

    def on_epoch_end(self, state: TrainState) -> None:
        """Print the losses from time to time; end when the time is over."""
        share, line = self.share(), state.history[-1]
        if share * self.lines >= self.printed + 1 or share == 1 or state.epoch == 1:
            self.printed = int(share * self.lines)
            shown = {k: v for k, v in line.items() if isinstance(v, float) and k != "lr"}
            words = ", ".join(f"{name} {value:.4g}" for name, value in shown.items())
            print(f"{share * self.seconds:.0f} s, epoch {state.epoch}: {words}", flush=True)
        if share == 1:
            state.stop("the time is over")
