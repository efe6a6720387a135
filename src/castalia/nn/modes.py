"""Looking at a network in another mode, and leaving it as it was found."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["evaluating", "uncompiled"]


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

    Batches of another size or mode would be compiled anew, which takes longer than they do.

    >>> net = nn.Linear(2, 1)
    >>> net.compile()
    >>> with uncompiled(net):
    ...     net._compiled_call_impl is None
    True
    >>> net._compiled_call_impl is None
    False
    """
    compiled, net._compiled_call_impl = net._compiled_call_impl, None
    try:
        yield net
    finally:
        net._compiled_call_impl = compiled
