"""The best epoch by validation loss, and the patience that waits for a better one."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor

from castalia.train.state import TrainState

__all__ = ["BestWeights"]


class BestWeights:
    """Notes the best epoch of a stage, keeps its weights, and ends what gets no better.

    Parameters
    ----------
    patience
        Epochs without a better loss before the stage ends; None: no weights are kept, and nothing
        ends early.

    Attributes
    ----------
    weights : dict or None
        Those of the best epoch.
    stale : str
        Why a stage ends.
    """

    def __init__(self, patience: int | None) -> None:
        self.patience = patience
        self.weights: dict[str, Tensor] | None = None
        self.stale = f"no better validation loss for {patience} epochs"

    def watch(
        self, loss: float, state: TrainState, weights: Callable[[], dict[str, Tensor]]
    ) -> None:
        """Compare the loss of an epoch with the best; ``weights`` is called for a better one."""
        best = state.best
        if best is None or best["stage"] != state.stage_index or _better(loss, best["val_loss"]):
            state.best = {"epoch": state.epoch, "stage": state.stage_index, "val_loss": loss}
            if self.patience is not None:
                self.weights = {name: w.detach().clone() for name, w in weights().items()}
        elif self.patience is not None and state.epoch - best["epoch"] >= self.patience:
            state.stop(self.stale)


def _better(value: float, best: float) -> bool:
    """Whether a validation loss beats the best so far; any number beats NaN."""
    return value < best or (math.isnan(best) and not math.isnan(value))
