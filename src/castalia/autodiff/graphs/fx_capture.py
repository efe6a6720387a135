"""From a running function to boxes: torch's ``make_fx`` with notes taken beside it.

``make_fx`` records the operations, functionalised: nothing is changed in place, neither values nor
the buffers of a module. Notes say what torch's graph leaves out: which module asked, on which
line, whether the gradient stops there, and what a random generator was about to draw.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch._subclasses.functional_tensor import dispatch_functionalize
from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from castalia.autodiff.graphs.box import Source
from castalia.autodiff.graphs.custom import closed_functions

__all__ = ["Note", "capture", "record", "user_line"]

_OURS = (str(Path(torch.__file__).parent) + os.sep, str(Path(__file__).parent) + os.sep)
_DATA = Tensor.data.__get__  # type: ignore[attr-defined]
_DETACH = (Tensor.detach, Tensor.detach_, torch.detach, torch.detach_, _DATA)
_SET = Tensor.requires_grad.__set__  # type: ignore[attr-defined]
_DIFFERENTIATES = (Tensor.requires_grad_, _SET, torch.autograd.grad)


def _copy(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """What an assignment leaves in its target; ``aten.copy`` itself has no derivative."""
    return source.to(device=target.device, dtype=target.dtype).expand(target.shape)


_REWRITTEN: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.copy.default: _copy,
    # what torch calls when no gradient is asked for has no derivative either
    torch.ops.aten._embedding_bag_forward_only.default: torch.ops.aten._embedding_bag.default,
}


@dataclass(frozen=True)
class Note:
    """What is known of an operation besides its arguments."""

    module: str
    module_class: str
    source: Source | None
    detached: bool
    state: tuple[torch.device, Tensor] | None


def capture(
    function: Callable[..., Any], tensors: Sequence[Tensor], modules: dict[nn.Module, str]
) -> fx.GraphModule:
    """Record ``function(*tensors)``; every node of an operation has a ``Note`` in its meta.

    Parameters
    ----------
    function
        From tensors to a flat list of outputs.
    tensors
        What to call it with: different objects, even where their numbers are shared.
    modules
        The modules it may call, and their names.
    """
    notes = _Notes(modules)
    notes.calls.differentiates = any(tensor.requires_grad for tensor in tensors)

    def watched(*flat: Tensor) -> Any:
        with notes.calls:
            return function(*flat)

    def functional(*flat: Tensor) -> Any:
        with notes:
            return dispatch_functionalize(watched)(*flat)

    with _open_operations(), notes.watch_modules(), closed_functions(notes.write):
        return make_fx(functional, _REWRITTEN, tracing_mode="real")(*tensors)


def record(function: Callable[..., Any], tensors: Sequence[Tensor]) -> fx.GraphModule:
    """Record ``function(*tensors)`` as it is, without notes."""
    with _open_operations():
        return make_fx(dispatch_functionalize(function), _REWRITTEN, tracing_mode="real")(*tensors)


def user_line(frame: FrameType | None) -> Source | None:
    """Return the innermost line that belongs neither to torch nor to this package."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((*_OURS, "<string>", "<eval_with_key>")):
            return Source(file, frame.f_lineno)
        frame = frame.f_back
    return None


class _Notes(TorchDispatchMode):
    """Write a note on every node as it is recorded."""

    def __init__(self, modules: dict[nn.Module, str]) -> None:
        super().__init__()
        self.names = modules
        self.inside: list[nn.Module] = []
        self.calls = _Calls()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        nodes = get_proxy_mode().tracer.graph.nodes  # type: ignore[union-attr]
        last = next(iter(reversed(nodes)), None)  # None: a function without arguments
        kwargs = kwargs or {}
        note = self._note(func, (*args, *kwargs.values()), user_line(sys._getframe(1)))
        out = func(*args, **kwargs)
        for node in reversed(nodes):
            if node is last:
                break
            node.meta["note"], node.meta["call"] = note, self.calls.number
            node.meta["saved"] = self.calls.made_by_autograd(node)
        return out

    def write(self, node: fx.Node) -> None:
        """Write the note of a node that a custom function made."""
        node.meta["note"] = self._note(node.target, (), user_line(sys._getframe(1)))

    def _note(self, func: Any, args: Any, source: Source | None) -> Note:
        module = next((m for m in reversed(self.inside) if m in self.names), None)
        stops = not torch.is_grad_enabled() or str(func) == "aten.detach.default"
        state = None
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()):
            state = _generator_state(args)
        name, kind = ("", "") if module is None else (self.names[module], type(module).__name__)
        return Note(name, kind, source, stops, state)

    @contextmanager
    def watch_modules(self) -> Iterator[None]:
        """Know which module is running, without touching any."""
        enter = register_module_forward_pre_hook(lambda m, _: self.inside.append(m))
        leave = register_module_forward_hook(lambda *_: self._leave(), always_call=True)
        try:
            yield
        finally:
            enter.remove()
            leave.remove()

    def _leave(self) -> None:
        self.inside.pop()


class _Calls(TorchFunctionMode):
    """Follow the calls of the function being traced, to know whose a ``detach`` is.

    Leaves are traced without ``requires_grad``, so a ``detach`` is the user's. Only a function that
    differentiates inside makes autograd save outputs detached, in the call that computes them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.detaching = self.differentiates = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.number += 1
        self.differentiates |= func in _DIFFERENTIATES
        self.detaching = func in _DETACH
        try:
            if func == _DATA:  # leaves no trace of its own
                return args[0].detach()
            return func(*args, **(kwargs or {}))
        finally:
            self.detaching = False

    def made_by_autograd(self, node: fx.Node) -> bool:
        """Whether a node is autograd's own copy of what it saves."""
        if str(node.target) != "aten.detach.default" or not self.differentiates or self.detaching:
            return False
        (source,) = node.all_input_nodes
        return bool(source.meta.get("call") == self.number or source.meta.get("saved"))


@contextmanager
def _open_operations() -> Iterator[None]:
    """Let attention and recurrent layers run as the plain operations they are made of."""
    with ExitStack() as stack:
        with warnings.catch_warnings():  # of a setting for Intel's GPUs, which is not changed
            warnings.simplefilter("ignore", UserWarning)
            stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        yield


def _generator_state(args: Any) -> tuple[torch.device, Tensor]:
    """Device and state of the generator that an operation with these arguments draws from."""
    devices = (a if isinstance(a, torch.device) else getattr(a, "device", None) for a in args)
    device = next((d for d in devices if d is not None), torch.device("cpu"))
    with _disable_current_modes():
        cuda = device.type == "cuda"
        return device, torch.cuda.get_rng_state(device) if cuda else torch.get_rng_state()
