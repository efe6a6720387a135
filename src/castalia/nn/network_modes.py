"""Running a network in another mode, and restoring its own afterwards."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import nn

__all__ = ["compiled", "evaluating", "uncompiled"]


@cache
def compiled(function: Callable[..., Any], mode: str | None) -> Callable[..., Any]:
    """Compile what a network does together with its loss, once for each function and mode."""
    return torch.compile(function, mode=mode)


@contextmanager
def evaluating(net: nn.Module, *, awake: tuple[type[nn.Module], ...] = ()) -> Iterator[nn.Module]:
    """Put a network into evaluation mode and give every module its own mode back afterwards.

    Parameters
    ----------
    net
        The network.
    awake
        Kinds of modules that behave as in training nevertheless.

    Examples
    --------
    >>> net = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(3).eval())
    >>> with evaluating(net):
    ...     [module.training for module in net]
    [False, False]
    >>> [module.training for module in net]
    [True, False]
    """
    before = [(module, module.training) for module in net.modules()]
    for module, _ in before:
        module.training = isinstance(module, awake)
    try:
        yield net
    finally:
        for module, training in before:
            module.training = training


@contextmanager
def uncompiled(net: nn.Module) -> Iterator[nn.Module]:
    """Run a network that ``Module.compile`` compiled as it was written.

    Batches of another size or mode would be compiled again, which takes longer than they do.

    >>> import torch
    >>> net = nn.Flatten()
    >>> net._compiled_call_impl = lambda x: "compiled"  # as Module.compile would set
    >>> with uncompiled(net):
    ...     net(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 12])
    >>> net(torch.zeros(2, 3, 4))
    'compiled'
    """
    compiled, net._compiled_call_impl = net._compiled_call_impl, None
    try:
        yield net
    finally:
        net._compiled_call_impl = compiled
