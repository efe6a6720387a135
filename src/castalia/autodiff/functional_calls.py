"""Calling functions so that autograd records, and modules with other tensors than their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

__all__ = ["call_with", "differentiating"]


def call_with(
    module: nn.Module,
    tensors: Mapping[str, Tensor],
    inputs: tuple[Any, ...],
    keywords: dict[str, Any] | None = None,
) -> Any:
    """Return ``module(*inputs, **keywords)`` computed with other parameters and buffers.

    torch's ``functional_call`` leaves what was lent in a module that is reached by two names (one
    layer used twice): it exchanges the tensor twice and puts back the wrong one.

    >>> layer = nn.Linear(1, 1, bias=False)
    >>> call_with(nn.Sequential(layer, layer), {"0.weight": torch.ones(1, 1)}, (torch.ones(1),))
    tensor([1.])
    >>> layer.weight.requires_grad
    True
    """
    tables: list[dict[str, Any]] = []
    for part in module.modules():
        tables += [part._parameters, part._buffers]
    own = [dict(table) for table in tables]
    try:
        return functional_call(module, dict(tensors), inputs, keywords)
    finally:
        for table, held in zip(tables, own, strict=True):
            table.update(held)


@contextmanager
def differentiating() -> Iterator[None]:
    """Let autograd record, also where the caller is under ``no_grad`` or ``inference_mode``."""
    with torch.inference_mode(False), torch.enable_grad():
        yield
