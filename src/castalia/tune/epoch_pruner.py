"""Giving up a training that falls behind, epoch by epoch."""

from __future__ import annotations

import copy
from typing import Any

from castalia.train import Callback, Training, TrainState

__all__ = ["PruneByEpoch", "watched"]


class PruneByEpoch(Callback):
    """Reports the validation loss of every epoch and stops when the study says so.

    Parameters
    ----------
    trial
        What to report to.
    offset
        Number of the first epoch in the count of the trial: folds follow one another.
    """

    def __init__(self, trial: Any, offset: int = 0) -> None:
        self.trial, self.offset = trial, offset
        self.behind = False

    def on_epoch_end(self, state: TrainState) -> None:
        """Report minus the loss, which is to be as large as possible."""
        line = state.history[-1]
        value = line["val_loss"] if line.get("val_loss") is not None else line["loss"]
        self.trial.report(-float(value), self.offset + state.epoch)
        if self.trial.should_prune():
            self.behind = True
            state.stop("fell behind the other trials of the search")


def watched(model: Any, callback: Callback) -> Any:
    """Add a callback to a trained estimator's settings, leaving the user's record alone."""
    usual = getattr(model, "usual_training", Training())
    training = copy.copy(model.training if model.training is not None else usual)
    training.callbacks = (*training.callbacks, callback)
    return model.set_params(training=training)
