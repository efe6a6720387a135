"""Operations with a backward of their own: ``torch.autograd.Function`` as one box.

Torch's tracer would look inside and forget the backward, which is the point of such a function: a
straight-through estimator, a reversed gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode, track_tensor_tree
from torch.utils._python_dispatch import _disable_current_modes

__all__ = ["Applied", "closed_functions"]


class Applied:
    """A custom function as an operation."""

    def __init__(self, function: type[torch.autograd.Function]) -> None:
        self.function = function
        self.__name__ = self.__qualname__ = function.__name__

    def __call__(self, *args: Any) -> Any:
        """Apply the function."""
        return self.function.apply(*args)


@contextmanager
def closed_functions(written: Callable[[fx.Node], None]) -> Iterator[None]:
    """Record custom functions without looking inside, and call ``written`` with each node."""
    apply = torch.autograd.Function.__dict__["apply"]
    depth = 0

    def recorded(cls: type[torch.autograd.Function], *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        mode: Any = get_proxy_mode()
        if mode is None or depth:
            return apply.__func__(cls, *args, **kwargs)
        plain = pytree.tree_map_only(FunctionalTensor, _plain, args)
        depth += 1
        try:
            with _disable_current_modes():
                out = apply.__func__(cls, *plain, **kwargs)
        finally:
            depth -= 1
        given = pytree.tree_map(mode.tracer.unwrap_proxy, plain)
        proxy = mode.tracer.create_proxy("call_function", Applied(cls), given, kwargs)
        written(proxy.node)
        track_tensor_tree(out, proxy, constant=None, tracer=mode.tracer)
        return pytree.tree_map_only(torch.Tensor, FunctionalTensor.to_functional, out)

    torch.autograd.Function.apply = classmethod(recorded)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        torch.autograd.Function.apply = apply  # type: ignore[method-assign]


def _plain(tensor: FunctionalTensor) -> torch.Tensor:
    torch._sync(tensor)  # type: ignore[attr-defined]
    return torch._from_functional_tensor(tensor.elem)
