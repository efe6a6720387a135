"""A scope in which torch works as it does in a fresh process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from castalia.utils.devices import forked_threads
from castalia.utils.process_lock import exclusive

__all__ = ["plain_torch"]


@contextmanager
def plain_torch() -> Iterator[None]:
    """Undo what the caller has switched on: ``no_grad``, autocast, another default dtype.

    A fit gives the same weights wherever it is called. Fits of several threads come one after the
    other, for they share torch's generator and its switches.

    Examples
    --------
    >>> with torch.no_grad(), plain_torch():
    ...     torch.is_grad_enabled()
    True
    """
    with ExitStack() as scope:
        scope.enter_context(exclusive())
        forked_threads()
        scope.enter_context(torch.inference_mode(False))
        scope.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                scope.enter_context(torch.autocast(device, enabled=False))
        dtype = torch.get_default_dtype()
        if dtype != torch.float32:
            scope.callback(torch.set_default_dtype, dtype)
            torch.set_default_dtype(torch.float32)
        yield
