"""Listeners to backward passes.

``Tensor.backward`` calls ``torch.autograd.backward``, and so does every library; it is replaced by
one that calls the listeners before and after, as long as there are any.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from castalia.diagnose.monitor.weak_hooks import guarded_call

__all__ = ["Listener", "is_inside", "is_transformed", "listed", "listen"]

# Called before a pass: the tensors and their gradients as backward was given them, passes within
# passes too. Returns whether to be called after it as well.
Before = Callable[[Any, Any], Any]
After = Callable[[], Any]

_listeners: tuple[Listener, ...] = ()
_original: Callable[..., None] | None = None


class Listener:
    """Somebody listening, until removed.

    Parameters
    ----------
    before, after
        Called around every backward pass; `after` only where `before` said True.
    """

    def __init__(self, before: Before, after: After) -> None:
        self.before, self.after = before, after

    def remove(self) -> None:
        """Listen no more; the last to go restores torch's own function."""
        global _listeners, _original
        _listeners = tuple(one for one in _listeners if one is not self)
        ours = getattr(torch.autograd.backward, "__wrapped__", None) is _original
        if not _listeners and _original is not None and ours:
            torch.autograd.backward = _original
            _original = None


def listen(before: Before, after: After) -> Listener:
    """Call these around every backward pass from now on."""
    global _listeners, _original
    if _original is None:
        _original = torch.autograd.backward
        torch.autograd.backward = _wrapped(_original)
    listening = Listener(before, after)
    _listeners += (listening,)
    return listening


def is_inside() -> bool:
    """Whether a backward pass is under way in this thread, as when a checkpoint is recomputed."""
    return bool(torch._C._current_graph_task_id() != -1)


def is_transformed() -> bool:
    """Whether a function is being transformed, as by ``torch.func.grad``."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def _wrapped(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
        called = [one for one in _listeners if guarded_call(one, one.before, tensors, grad_tensors)]
        original(tensors, grad_tensors, *args, **kwargs)
        for one in called:
            guarded_call(one, one.after)

    return backward


def listed(value: Any) -> list[Any]:
    """Return one tensor, several or none as a list."""
    if value is None or isinstance(value, Tensor):
        return [] if value is None else [value]
    return list(value) if isinstance(value, tuple | list) else []
