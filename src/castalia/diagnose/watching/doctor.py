"""The doctor beside a training: three lines in any PyTorch loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.diagnose.diagnosis import Diagnosis

__all__ = ["Doctor", "watch"]


def watch(
    module: nn.Module,
    optimizer: Optimizer | Iterable[Optimizer] | None = None,
    loss_fn: Any = None,
    task: str | None = None,
) -> Doctor:
    """Watch a training from outside."""
    return Doctor(module, optimizer, loss_fn, task)


class Doctor:
    """Watches one training; made by ``watch``."""

    def __init__(
        self, module: nn.Module, optimizer: Any = None, loss_fn: Any = None, task: str | None = None
    ) -> None:
        self.module = module

    def log(
        self,
        loss: Tensor | float | None = None,
        outputs: Any = None,
        targets: Any = None,
        inputs: Any = None,
    ) -> None:
        """Tell the doctor about a step. Under ``no_grad`` or ``eval()`` it is one of validation."""

    def epoch(
        self, validation_loss: float | None = None, validation_score: float | None = None
    ) -> None:
        """Tell the doctor that an epoch has ended, and how validation went (higher is better)."""

    def diagnosis(self, mute: Iterable[str] = ()) -> Diagnosis:
        """Return what was found so far."""
        return Diagnosis()

    def close(self) -> None:
        """Stop watching."""

    def __enter__(self) -> Doctor:
        """Return the doctor; leaving the block stops watching."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        self.close()
