"""The number format of a training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
    """Format of weights and inputs, and of the products between them.

    Attributes
    ----------
    name
        ``"float32"``, ``"tf32"`` (float32 with products on 10-bit mantissas), ``"bf16"`` (float32
        weights, autocast products) or ``"float64"``.
    dtype
        Format of weights and inputs.
    """

    name: str
    dtype: torch.dtype

    def autocast(self, device: torch.device) -> AbstractContextManager[Any]:
        """Context in which the network and the loss are computed."""
        if self.name != "bf16":
            return nullcontext()
        return torch.autocast(device.type, torch.bfloat16)

    @contextmanager
    def products(self, device: torch.device) -> Iterator[None]:
        """Context of a whole training: float32 products on tf32 units where that is asked for."""
        if self.name not in ("tf32", "bf16") or device.type != "cuda":
            yield
            return
        matmul: Any = torch.backends.cuda.matmul
        conv: Any = torch.backends.cudnn.conv  # type: ignore[attr-defined]
        before = matmul.fp32_precision, conv.fp32_precision
        matmul.fp32_precision = conv.fp32_precision = "tf32"
        try:
            yield
        finally:
            matmul.fp32_precision, conv.fp32_precision = before


def resolve_precision(name: str, device: torch.device, *, rows: int, work: float) -> Precision:
    """Resolve ``Training.precision``."""
    if name == "auto" and device.type == "cuda":
        large = work >= SMALL_STEP and torch.cuda.is_bf16_supported()
        name = "bf16" if large else "tf32"
    elif name == "auto":
        name = "float64" if device.type == "cpu" and rows <= TINY_TABLE else "float32"
    return Precision(name, torch.float64 if name == "float64" else torch.float32)
