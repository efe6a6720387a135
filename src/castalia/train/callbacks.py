"""Callbacks: eight events around fit, epoch, batch, gradients and failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from castalia.train.state import TrainState

__all__ = ["EVENTS", "Callback", "Dispatch"]

EVENTS = (
    "on_fit_start",
    "on_epoch_start",
    "on_batch_start",
    "on_gradients",
    "on_batch_end",
    "on_epoch_end",
    "on_fit_end",
    "on_failure",
)


class Callback:
    """Base of callbacks; override the events you need, the others cost nothing.

    Every event gets the ``TrainState``; ``state.stop(reason)`` ends the training after the epoch.

    Examples
    --------
    >>> class Count(Callback):
    ...     epochs = 0
    ...     def on_epoch_end(self, state):
    ...         self.epochs += 1
    """

    def on_fit_start(self, state: TrainState) -> None:
        """Before the first step (also after resuming)."""

    def on_epoch_start(self, state: TrainState) -> None:
        """Before an epoch."""

    def on_batch_start(self, state: TrainState) -> None:
        """Before a batch."""

    def on_gradients(self, state: TrainState) -> None:
        """Gradients are ready, not yet clipped or applied. Listening switches CUDA graphs off."""

    def on_batch_end(self, state: TrainState) -> None:
        """After the step of a batch."""

    def on_epoch_end(self, state: TrainState) -> None:
        """After an epoch, with its line in ``state.history``."""

    def on_fit_end(self, state: TrainState) -> None:
        """After the last epoch, with the final weights in place."""

    def on_failure(self, state: TrainState) -> None:
        """When the training ends by an error or by Ctrl-C."""


class Dispatch:
    """Calls each event of the callbacks that listen to it."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self.listeners: dict[str, list[Callable[[TrainState], None]]] = {
            event: [
                getattr(c, event)
                for c in callbacks
                if getattr(type(c), event) is not getattr(Callback, event)
            ]
            for event in EVENTS
        }

    def __call__(self, event: str, state: TrainState) -> None:
        """Call everybody who listens to the event."""
        for listener in self.listeners[event]:
            listener(state)

    def listens(self, event: str) -> bool:
        """Whether anybody listens."""
        return bool(self.listeners[event])
