"""The doctor as a callback of transformers' ``Trainer``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.integrations.guarded_doctor import GuardedDoctor, validation_numbers
from castalia.utils.imports import require

__all__ = ["DoctorCallback"]

_transformers = require("transformers", caller="DoctorCallback for transformers")


class DoctorCallback(_transformers.TrainerCallback):  # type: ignore[name-defined,misc]
    """Watches a training by transformers' ``Trainer``; the findings are logged at its end.

    Validation is read from what ``evaluate`` returns: ``eval_loss``, and the score from
    ``metric_for_best_model`` or a name such as ``eval_accuracy``. Of several processes, the first
    is watched.

    Parameters
    ----------
    mute
        Codes of findings not wanted, such as ``["CST207"]``.

    Attributes
    ----------
    diagnosis
        What was found; None before a training. After a training that raised, what was found until
        then.

    Examples
    --------
    >>> doctor = DoctorCallback(mute=["CST207"])  # for Trainer(..., callbacks=[doctor])
    >>> doctor.diagnosis is None
    True
    """

    def __init__(self, mute: Iterable[str] = ()) -> None:
        super().__init__()
        self._doctor = GuardedDoctor(mute)

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What was found."""
        return self._doctor.diagnosis

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin to watch."""
        if state.is_world_process_zero:
            optimizer = kwargs.get("optimizer")
            self._doctor.begin(kwargs["model"], [] if optimizer is None else [optimizer])

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Log how validation went."""
        metrics = kwargs.get("metrics") or {}
        loss, score = validation_numbers(metrics, "eval_")
        best = args.metric_for_best_model
        if best and args.greater_is_better:
            name = best if best.startswith("eval_") else f"eval_{best}"
            score = metrics.get(name, score)
        if state.global_step > 0:
            self._doctor.epoch(loss, score)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Log what was found."""
        self._doctor.end()
