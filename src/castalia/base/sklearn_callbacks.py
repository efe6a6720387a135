"""scikit-learn's callback protocol (>= 1.9) on our loop: one task a fit, one subtask an epoch."""

from __future__ import annotations

import copy
from typing import Any

from torch import nn

from castalia.train import Callback, TrainState

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:  # type: ignore[no-redef]
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "SklearnCallbacks", "with_callbacks"]


class SklearnCallbacks(Callback):
    """Reports our epochs to the callbacks set by ``estimator.set_callbacks``."""

    def __init__(self, estimator: Any, X: Any, y: Any, net: nn.Module, epochs: int) -> None:
        self.estimator, self.data, self.net = estimator, {"X": X, "y": y}, net
        self.epochs = epochs  # of all stages

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, net: nn.Module, epochs: int) -> list[Callback]:
        """Return the bridge, or nothing when nobody listens."""
        listens = getattr(estimator, "_skl_callbacks", None) or hasattr(
            estimator, "_parent_callback_ctx"
        )
        return [cls(estimator, X, y, net, epochs)] if listens else []

    def on_fit_start(self, state: TrainState) -> None:
        """Open the root task."""
        self.root = self.estimator._init_callback_context(max_subtasks=self.epochs)
        self.root.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def on_epoch_start(self, state: TrainState) -> None:
        """Open the epoch's task."""
        self.task = self.root.subcontext(task_name="epoch")
        self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def on_epoch_end(self, state: TrainState) -> None:
        """Close the epoch's task; a callback may ask to stop."""
        if self._end(self.task, state):
            state.stop("a scikit-learn callback asked to stop")

    def on_fit_end(self, state: TrainState) -> None:
        """Close the root task."""
        self._end(self.root, state)

    def _end(self, task: Any, state: TrainState) -> bool:
        return bool(
            task.call_on_fit_task_end(
                estimator=self.estimator,
                **self.data,
                reconstruction_attributes=lambda: self._fitted(state),
            )
        )

    def _fitted(self, state: TrainState) -> dict[str, Any]:
        """What a copy of the estimator needs to predict with the weights of now."""
        return {
            "module_": copy.deepcopy(self.net).eval(),
            "history_": list(state.history),
            "temperature_": 1.0,
            "confidence_": None,
        }
