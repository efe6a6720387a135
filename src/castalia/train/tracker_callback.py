"""The numbers of a training in TensorBoard, Weights & Biases or MLflow as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from castalia.errors import InvalidParameter
from castalia.train.callbacks import Callback
from castalia.train.state import TrainState

__all__ = ["TrackerCallback", "send_numbers", "tracker_kind"]


def tracker_kind(tracker: Any, caller: str) -> str:
    """Return which tracker an object is: ``tensorboard``, ``mlflow`` or ``wandb``."""
    if hasattr(tracker, "add_scalar") and hasattr(tracker, "add_text"):
        return "tensorboard"
    if hasattr(tracker, "set_tags") and hasattr(tracker, "log_metrics"):
        return "mlflow"
    if hasattr(tracker, "log") and hasattr(tracker, "summary"):
        return "wandb"
    raise InvalidParameter(
        f"{caller}: the tracker must be a SummaryWriter of TensorBoard, a Run of Weights & Biases "
        f"or the module mlflow; got {type(tracker).__name__}."
    )


def send_numbers(
    tracker: Any, values: Mapping[str, float], step: int | None, caller: str = "tracker"
) -> None:
    """Log numbers at a step, in the tracker's own way."""
    kind = tracker_kind(tracker, caller)
    if kind == "tensorboard":
        for name, value in values.items():
            tracker.add_scalar(name, value, step)
    elif kind == "mlflow":
        tracker.log_metrics(dict(values), step=step)
    else:
        tracker.log(dict(values), **({} if step is None else {"step": step}))


class TrackerCallback(Callback):
    """Sends the line of every epoch to an experiment tracker.

    Parameters
    ----------
    tracker
        A ``SummaryWriter`` of TensorBoard, a ``Run`` of Weights & Biases, or the module ``mlflow``.

    Examples
    --------
    >>> from castalia import MLPRegressor, Training
    >>> class Writer:
    ...     def add_scalar(self, name, value, step):
    ...         print(name, step) if name == "loss" else None
    ...     def add_text(self, name, text, step):
    ...         pass
    >>> training = Training(callbacks=[TrackerCallback(Writer())], patience=None, validation=0)
    >>> est = MLPRegressor(hidden=(2,), epochs=2, training=training)
    >>> est = est.fit([[0.0], [1.0]], [0.0, 1.0])
    loss 1
    loss 2
    """

    def __init__(self, tracker: Any) -> None:
        tracker_kind(tracker, "TrackerCallback")
        self.tracker = tracker

    def __deepcopy__(self, memo: Any) -> TrackerCallback:
        """Return a callback to the same tracker: clones of an estimator log where it did."""
        return TrackerCallback(self.tracker)

    def on_epoch_end(self, state: TrainState) -> None:
        """Send the numbers of the epoch's line."""
        line = state.history[-1]
        numbers = {name: float(v) for name, v in line.items() if isinstance(v, int | float)}
        send_numbers(self.tracker, numbers, state.total)
