"""The best epoch by validation loss, and the patience that waits for a better one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from torch import Tensor

from castalia.train.state import TrainState

__all__ = ["BestWeights"]

PROGRESS = 1e-4  # by so much the mean of several best losses must fall within the patience


class BestWeights:
    """Notes the best epoch of a stage, keeps its weights, and ends what gets no better.

    Parts of a network that learn apart from each other each have a best epoch of their own. One of
    many gets a little better in almost every epoch, so patience asks for more: that the mean of
    their best losses falls by 0.0001.

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
        self,
        losses: Sequence[float],
        state: TrainState,
        weights: Callable[[], dict[str, Tensor]],
    ) -> None:
        """Compare the losses of an epoch, one a part, with the best; ``weights`` gives those now.

        Of P parts, part i has the rows i, i + P, … of every weight.
        """
        best = state.best if state.best and state.best["stage"] == state.stage_index else None
        old = [math.nan] * len(losses) if best is None else best.get("parts", [best["val_loss"]])
        better = [best is None or _better(*pair) for pair in zip(losses, old, strict=True)]
        if any(better):
            kept = [
                new if wins else was for new, was, wins in zip(losses, old, better, strict=True)
            ]
            state.best = {"epoch": state.epoch, "stage": state.stage_index, "val_loss": fmean(kept)}
            if len(kept) > 1:
                state.best |= {"parts": kept, "mark": _mark(best, state.best)}
            if self.patience is not None:
                self._keep(weights(), better)
        since = _mark_of(state.best or {}).get("epoch", state.epoch)
        if self.patience is not None and state.epoch - since >= self.patience:
            state.stop(self.stale)

    def _keep(self, weights: dict[str, Tensor], better: Sequence[bool]) -> None:
        """Copy the weights of the parts that are better."""
        if self.weights is None or all(better):
            self.weights = {name: w.detach().clone() for name, w in weights.items()}
            return
        for name, w in weights.items():
            for i, wins in enumerate(better):
                if wins:
                    self.weights[name][i :: len(better)] = w[i :: len(better)]


def _mark(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """Return the epoch and the loss from which patience waits for progress."""
    mark = new
    if old is not None:
        was = _mark_of(old)
        mark = new if _better(new["val_loss"], was["val_loss"] - PROGRESS) else was
    return {name: mark[name] for name in ("epoch", "val_loss")}


def _mark_of(best: dict[str, Any]) -> dict[str, Any]:
    """Return the mark of several parts; of one, its best epoch."""
    return best.get("mark", best)


def _better(value: float, best: float) -> bool:
    """Whether a validation loss beats the best so far; any number beats NaN."""
    return value < best or (math.isnan(best) and not math.isnan(value))
