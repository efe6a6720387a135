"""One progress bar, a curve in a notebook, or plain lines where there is no terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

from castalia.train.callbacks import Callback
from castalia.train.notebook_curve import NotebookCurve
from castalia.train.state import TrainState

__all__ = ["ProgressBar", "ProgressLines", "build_progress"]

PATIENCE = 1.0  # seconds before a bar appears with verbose="auto"


def describe(state: TrainState) -> str:
    """Return the last epoch in a few words."""
    if not state.history:
        return ""
    line = state.history[-1]
    words = [f"loss {line['loss']:.4f}"] if "loss" in line else []
    if "val_loss" in line:
        words.append(f"validation {line['val_loss']:.4f}")
    return ", ".join(words)


class ProgressBar(Callback):
    """A rich progress bar over epochs, on standard error.

    Parameters
    ----------
    delay
        Seconds to wait before it appears.
    """

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.bar: Any = None
        self.task: Any = None

    def on_fit_start(self, state: TrainState) -> None:
        """Start the clock."""
        self.started = time.monotonic()

    def on_epoch_end(self, state: TrainState) -> None:
        """Show, or move, the bar."""
        if self.bar is None:
            if time.monotonic() - self.started < self.delay:
                return
            self._open(state)
        self.bar.update(
            self.task,
            completed=state.epoch,
            total=state.epochs,
            words=describe(state),
            stage=state.stage,
        )

    def on_fit_end(self, state: TrainState) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    on_failure = on_fit_end

    def _open(self, state: TrainState) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar = Progress(
            TextColumn("{task.fields[stage]}"),
            BarColumn(),
            TextColumn("epoch {task.completed}/{task.total}"),
            TextColumn("{task.fields[words]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self.task = self.bar.add_task("", total=state.epochs, stage=state.stage, words="")
        self.bar.start()


class ProgressLines(Callback):
    """At most about ten plain lines, on standard error."""

    def on_epoch_end(self, state: TrainState) -> None:
        """Write a line for every tenth of the training."""
        every = max(1, state.epochs // 10)
        if state.epoch % every == 0 or state.epoch == state.epochs or state.stopped:
            sys.stderr.write(
                f"{state.stage}: epoch {state.epoch}/{state.epochs}, {describe(state)}\n"
            )


def build_progress(verbose: Any, quiet: bool = False) -> list[Callback]:
    """Return the progress callback of ``Training.verbose``, or none."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if "ipykernel" in sys.modules and verbose is not False and not quiet:
        return [NotebookCurve(PATIENCE if verbose == "auto" else 0.0)]
    if quiet or verbose is False or (verbose == "auto" and not terminal):
        return []
    if not terminal:
        return [ProgressLines()]
    return [ProgressBar(PATIENCE if verbose == "auto" else 0.0)]
