"""The number format of a training."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from castalia.utils.devices import SMALL_STEP

__all__ = ["Precision", "resolve_precision"]

# A table of at most this many rows trains in float64 on the CPU: it costs next to nothing there,
# and a weight of 2 then equals a row written twice to the last digits that anyone compares.
TINY_TABLE = 100


@dataclass(frozen=True)
class Precision:
    """Format of weights and inputs, and whether products run in bf16."""

    name: str
    dtype: torch.dtype

    def autocast(self, device: torch.device) -> AbstractContextManager[Any]:
        """Context in which the network and the loss are computed."""
        if self.name != "bf16":
            return nullcontext()
        return torch.autocast(device.type, torch.bfloat16)


def resolve_precision(name: str, device: torch.device, *, rows: int, work: float) -> Precision:
    """Resolve ``Training.precision``.

    Parameters
    ----------
    name
        The setting.
    device
        Where the training runs.
    rows
        Rows of the training table.
    work
        Multiply-adds of one step.
    """
    if name == "auto":
        if device.type == "cuda" and work >= SMALL_STEP and torch.cuda.is_bf16_supported():
            name = "bf16"
        elif device.type == "cpu" and rows <= TINY_TABLE:
            name = "float64"
        else:
            name = "float32"
    return Precision(name, torch.float64 if name == "float64" else torch.float32)
