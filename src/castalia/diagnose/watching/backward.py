"""Listening to backward passes.

``Tensor.backward`` calls ``torch.autograd.backward``, and so does every library; it is replaced by
one that tells the listeners before and after, as long as there are any.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

__all__ = ["listen", "unlisten"]


class Listener(Protocol):
    """Somebody who wants to know of backward passes."""

    def before_backward(self, loss: Tensor) -> None:
        """Gradients of this scalar are about to be computed."""

    def after_backward(self) -> None:
        """They have been computed."""


_listeners: list[Listener] = []
_original: Callable[..., None] | None = None


def listen(listener: Listener) -> None:
    """Tell the listener of every backward pass from now on."""
    global _original
    if _original is None:
        _original = torch.autograd.backward
        torch.autograd.backward = _wrapped(_original)
    _listeners.append(listener)


def unlisten(listener: Listener) -> None:
    """Tell the listener no more; the last to go restores torch's own function."""
    global _original
    if listener in _listeners:
        _listeners.remove(listener)
    ours = getattr(torch.autograd.backward, "__wrapped__", None) is _original
    if not _listeners and _original is not None and ours:
        torch.autograd.backward = _original
        _original = None


def _wrapped(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        loss = tensors if isinstance(tensors, Tensor) else None
        if loss is None and isinstance(tensors, tuple | list) and len(tensors) == 1:
            loss = tensors[0]
        if loss is None or torch.compiler.is_compiling():
            return original(tensors, *args, **kwargs)
        listeners = tuple(_listeners)
        for listener in listeners:
            listener.before_backward(loss)
        original(tensors, *args, **kwargs)
        for listener in listeners:
            listener.after_backward()
        return None

    return backward
