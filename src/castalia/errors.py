"""Every error and warning the library raises on purpose.

Messages follow one grammar: ``<Owner>: <thing> must be <rule>; got <value>. <Remedy>.``
Each class also derives from the built-in error a caller would expect, so ``except ValueError``
works.
"""

from functools import partial
from typing import Any

__all__ = [
    "CastaliaError",
    "CastaliaWarning",
    "CheckpointMismatch",
    "DamagedFile",
    "DataWarning",
    "DeviceFailed",
    "Diverged",
    "InvalidData",
    "InvalidParameter",
    "MissingPackage",
    "OutOfMemory",
    "ShapeMismatch",
    "SolverFailed",
    "TrainingWarning",
    "WriteFailed",
]


class CastaliaError(Exception):
    """Root of the library's errors; the command line says them in one sentence, exit code 2."""


class InvalidParameter(CastaliaError, ValueError):
    """A setting is outside its allowed set, or two settings contradict each other."""


class InvalidData(CastaliaError, ValueError):
    """The data cannot be used as given."""


class ShapeMismatch(InvalidData):
    """Arrays that must fit together do not."""


class Diverged(CastaliaError, ArithmeticError):
    """Training produced a loss that is not a finite number.

    Attributes
    ----------
    step, epoch
        Where it happened.
    term
        The name of the loss term that was not finite.
    lr
        The learning rate in use.
    """

    def __init__(self, message: str, *, step: int, epoch: int, term: str, lr: float) -> None:
        super().__init__(message)
        self.step, self.epoch, self.term, self.lr = step, epoch, term, lr

    def __reduce__(self) -> tuple[Any, ...]:
        """Let a worker process send it."""
        where: dict[str, Any] = {"step": self.step, "epoch": self.epoch, "term": self.term}
        return partial(type(self), **where, lr=self.lr), self.args


class SolverFailed(CastaliaError, ArithmeticError):
    """A numerical method could not reach its answer: a blow-up, a stiff equation, no convergence.

    Attributes
    ----------
    at
        The time that was reached, for a differential equation; otherwise None.
    """

    def __init__(self, message: str, *, at: float | None = None) -> None:
        super().__init__(message)
        self.at = at


class OutOfMemory(CastaliaError, MemoryError):
    """The memory of the host or of a device ran out in a training; its checkpoints are whole."""


class DeviceFailed(CastaliaError, RuntimeError):
    """A device failed in a training; this process cannot use it again, checkpoints are whole."""


class MissingPackage(CastaliaError, ImportError):
    """An optional package is needed and not installed."""


class CheckpointMismatch(CastaliaError, RuntimeError):
    """A checkpoint or saved model belongs to another configuration, class or format."""


class DamagedFile(CastaliaError, OSError):
    """A file written by the library is truncated, altered, or not what it claims to be."""


class WriteFailed(CastaliaError, OSError):
    """A file could not be written; what was saved before is untouched."""


class CastaliaWarning(UserWarning):
    """Root of the library's warnings."""


class DataWarning(CastaliaWarning):
    """Something about the data deserves a look; training goes on."""


class TrainingWarning(CastaliaWarning):
    """Something about the training deserves a look; training goes on."""
