"""What the callbacks of all libraries have in common."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch import nn

from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.monitor import Doctor, watch

__all__ = ["GuardedDoctor", "validation_numbers"]

logger = logging.getLogger("castalia.diagnose")

_LOSS = re.compile(r"loss|nll|mse|mae|error|perplexity")
_SCORE = re.compile(r"acc|f1|auc|auroc|r2|score|precision|recall|iou|bleu|rouge|map")
_OTHER = re.compile(r"runtime|per_second|samples|steps|epoch|best")


class GuardedDoctor:
    """Watches one training of another library's loop, and logs once what it found.

    Nothing here raises: a training is not to fail because of its doctor.

    Parameters
    ----------
    mute
        Codes of findings not wanted.
    """

    def __init__(self, mute: Iterable[str] = ()) -> None:
        self.mute = tuple(mute)
        self.doctor: Doctor | None = None
        self._found: Diagnosis | None = None

    def begin(self, module: nn.Module, optimizers: Iterable[Any], loss_fn: Any = None) -> None:
        """Watch from now on."""
        self.close()
        self._found = None
        self.doctor = self._guarded(watch, module, _plain(optimizers) or None, loss_fn)

    def epoch(self, loss: float | None, score: float | None) -> None:
        """Log how a validation went, if it is known."""
        if self.doctor is not None and not (loss is None and score is None):
            self._guarded(self.doctor.epoch, loss, score)

    def end(self) -> None:
        """Diagnose, log it once, and stop watching."""
        if self.doctor is None:
            return
        self._found = self._guarded(self.doctor.diagnosis, self.mute)
        self.close()
        if self._found is not None:
            wrong = any(found.severity != "info" for found in self._found.findings)
            logger.log(logging.WARNING if wrong else logging.INFO, "%s", self._found)

    def close(self) -> None:
        """Stop watching; log nothing."""
        if self.doctor is not None:
            self._guarded(self.doctor.close)
        self.doctor = None

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The diagnosis, in the middle of a training that so far; None where there was none."""
        if self.doctor is not None:
            return self._guarded(self.doctor.diagnosis, self.mute)
        return self._found

    def _guarded(self, act: Callable[..., Any], *args: Any) -> Any:
        try:
            return act(*args)
        except Exception:
            logger.debug("The doctor raised an error.", exc_info=True)
            return None


def _plain(optimizers: Iterable[Any]) -> list[Any]:
    """Return torch's own optimizers under the wrappers of other libraries."""
    found = []
    for optimizer in optimizers:
        inner = optimizer
        while hasattr(inner, "optimizer"):
            inner = inner.optimizer
        found.append(inner)
    return found


def validation_numbers(
    metrics: Mapping[str, Any], prefix: str
) -> tuple[float | None, float | None]:
    """Return loss and score among the metrics that a library has gathered.

    Examples
    --------
    >>> validation_numbers({"loss": 0.1, "val_acc": 0.9, "val_loss": 0.5}, "val")
    (0.5, 0.9)
    """
    ours = {
        name.lower(): value
        for name, value in metrics.items()
        if name.lower().startswith(prefix) and not _OTHER.search(name)
    }
    losses = [v for name, v in ours.items() if name.endswith("loss")]
    losses += [v for name, v in ours.items() if _LOSS.search(name)]
    scores = [v for n, v in ours.items() if _SCORE.search(n) and not _LOSS.search(n)]
    return _number(losses), _number(scores)


def _number(values: list[Any]) -> float | None:
    for value in values:
        try:
            return float(value)
        except (TypeError, ValueError):
            continue
    return None
