"""Listeners to the calls of a module, and to weights being loaded into it.

A hook would lie in the module and so in every file, copy, script and pruned or quantised version
of it. torch calls ``_compiled_call_impl`` of a module in place of its forward pass and leaves it
out of pickles and copies: that is where the listeners stand.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from threading import get_ident
from typing import Any

import torch
from torch import nn
from torch.compiler import is_compiling
from torch.utils.weak import WeakIdKeyDictionary

from castalia.diagnose.monitor.weak_hooks import guarded_call

__all__ = ["CallListener", "LoadListener", "listen_to_calls", "listen_to_loads"]

PLACE = "_compiled_call_impl"
# Before a call: the module, its arguments by place and by name. After it: the same and the result.
Before = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], Any]
After = Callable[[nn.Module, tuple[Any, ...], Any], Any]


class _Calls:
    """Stands for the forward pass of one module: the same, with listeners around it."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.earlier = module, module.__dict__.get(PLACE)
        self.listeners: tuple[CallListener, ...] = ()
        self.thread = get_ident()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module as torch would; graphs that are traced have no listeners."""
        run = self.module._call_impl if self.earlier is None else self.earlier
        if is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined]
            return run(*args, **kwargs)
        if get_ident() != self.thread and self._is_replica(caller := sys._getframe(1)):
            return caller.f_locals["self"]._call_impl(*args, **kwargs)
        listeners = self.listeners
        for one in listeners:
            guarded_call(one, one.before, self.module, args, kwargs)
        result = run(*args, **kwargs)
        for one in listeners:
            guarded_call(one, one.after, self.module, args, result)
        return result

    def _is_replica(self, caller: Any) -> bool:
        """Whether ``DataParallel`` calls a copy that shares everything but its weights."""
        return caller.f_locals.get("self", self.module) is not self.module

    def __reduce__(self) -> tuple[Any, ...]:
        """Be nothing in a pickle, should a class write all that lies in it."""
        return type(None), ()


class CallListener:
    """Somebody listening to the calls of a module, until removed."""

    def __init__(self, calls: _Calls, before: Before, after: After) -> None:
        self.calls, self.before, self.after = calls, before, after

    def remove(self) -> None:
        """Listen no more; the last to go leaves the module as it was."""
        calls = self.calls
        calls.listeners = tuple(one for one in calls.listeners if one is not self)
        within = calls.module.__dict__
        if not calls.listeners and within.get(PLACE) is calls:
            if calls.earlier is None:
                del within[PLACE]
            else:
                within[PLACE] = calls.earlier


def listen_to_calls(module: nn.Module, before: Before, after: After) -> CallListener:
    """Call these around every call of a module from now on."""
    _hide_from_scripts()
    calls = module.__dict__.get(PLACE)
    if not isinstance(calls, _Calls):
        calls = module.__dict__[PLACE] = _Calls(module)
    listening = CallListener(calls, before, after)
    calls.listeners += (listening,)
    return listening


def _hide_from_scripts() -> None:
    """Let ``torch.jit.script`` pass the place over, as it does hooks: it is none of a script."""
    ignored = getattr(getattr(torch.jit, "_recursive", None), "ignored_attributes", [PLACE])
    if PLACE not in ignored:
        ignored.append(PLACE)


_loads: Any = WeakIdKeyDictionary()  # module -> LoadListeners; its own hash may change
_original: Any = None


class LoadListener:
    """Somebody listening to ``load_state_dict`` of a module, until removed."""

    def __init__(self, module: nn.Module, after: Callable[[], Any]) -> None:
        self.module, self.after = module, after

    def remove(self) -> None:
        """Listen no more; the last to go restores torch's own function."""
        global _original
        left = tuple(one for one in _loads.get(self.module, ()) if one is not self)
        _loads[self.module] = left
        if not left:
            del _loads[self.module]
        ours = getattr(nn.Module.load_state_dict, "__wrapped__", None) is _original
        if not _loads and _original is not None and ours:
            nn.Module.load_state_dict = _original  # type: ignore[method-assign]
            _original = None


def listen_to_loads(module: nn.Module, after: Callable[[], Any]) -> LoadListener:
    """Call this after weights are loaded into a module from now on."""
    global _original
    if _original is None:
        _original = nn.Module.load_state_dict
        nn.Module.load_state_dict = _wrapped(_original)  # type: ignore[method-assign]
    listening = LoadListener(module, after)
    _loads[module] = (*_loads.get(module, ()), listening)
    return listening


def _wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def load_state_dict(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        result = original(module, *args, **kwargs)
        for one in _loads.get(module, ()):
            guarded_call(one, one.after)
        return result

    return load_state_dict
