"""The doctor as a callback of skorch's nets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.integrations.guarded_doctor import GuardedDoctor, validation_numbers
from castalia.utils.imports import require

__all__ = ["DoctorCallback"]

_callbacks = require("skorch.callbacks", caller="DoctorCallback for skorch")


class DoctorCallback(_callbacks.Callback):  # type: ignore[name-defined,misc]
    """Watches the training of a skorch net; the findings are logged at its end.

    Validation is read from the net's history: ``valid_loss``, and the score from a name such as
    ``valid_acc``.

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
    >>> doctor = DoctorCallback(mute=["CST207"])  # for NeuralNetClassifier(..., callbacks=[doctor])
    >>> doctor.diagnosis is None
    True
    """

    def __init__(self, mute: Iterable[str] = ()) -> None:
        self.mute = mute
        self.doctor_ = GuardedDoctor(mute)

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What was found."""
        return self.doctor_.diagnosis

    def initialize(self) -> DoctorCallback:
        """Forget the training before, as skorch asks for when a net is initialised again."""
        self.doctor_.close()
        self.doctor_ = GuardedDoctor(self.mute)
        return self

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Begin to watch."""
        names = getattr(net, "_optimizers", ["optimizer"])
        self.doctor_.begin(net.module_, [getattr(net, f"{n}_") for n in names], net.criterion_)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Log how validation went."""
        row = net.history[-1]
        self.doctor_.epoch(*validation_numbers({k: row[k] for k in row if k != "batches"}, "valid"))

    def on_train_end(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Log what was found."""
        self.doctor_.end()
