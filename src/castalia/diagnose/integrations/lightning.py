"""The doctor as a callback of Lightning's ``Trainer``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.integrations.guarded_doctor import GuardedDoctor, validation_numbers
from castalia.utils.imports import require

__all__ = ["DoctorCallback"]

_lightning = require("lightning.pytorch", caller="DoctorCallback for Lightning")


class DoctorCallback(_lightning.Callback):  # type: ignore[name-defined,misc]
    """Watches a Lightning training; the findings are logged at its end.

    Works with automatic and manual optimization and with several optimizers. Validation is read
    from ``trainer.callback_metrics``: the loss from a name such as ``val_loss``, the score from one
    such as ``val_acc``. Of several processes, the first is watched.

    Parameters
    ----------
    mute
        Codes of findings not wanted, such as ``["CST207"]``.

    Attributes
    ----------
    diagnosis
        What was found; None before a training.

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

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin to watch."""
        if trainer.is_global_zero:
            self._doctor.begin(pl_module, trainer.optimizers)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Log how validation went."""
        if not trainer.sanity_checking:
            self._doctor.epoch(*validation_numbers(trainer.callback_metrics, "val"))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Log what was found."""
        self._doctor.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Log what was found before the training raised."""
        self._doctor.end()
