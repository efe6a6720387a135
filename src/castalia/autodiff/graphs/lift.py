"""A function or module as a pure function of named tensors.

Parameters and buffers become arguments (``call_with``), also those of modules
that a plain function finds in its closure or among the globals it uses.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch.utils._pytree as pytree
from torch import Tensor, nn

from castalia.autodiff.functional_calls import call_with
from castalia.errors import InvalidParameter

__all__ = ["Lifted", "lift"]


class _Holder(nn.Module):
    """A function together with the modules it uses, under the names it uses."""

    def __init__(self, function: Callable[..., Any], modules: dict[str, nn.Module]) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        return self.function(*inputs, **keywords)


class Lifted:
    """A call, opened: names and tensors of its leaves, and a pure function of those tensors.

    Attributes
    ----------
    leaves
        ``(name, kind, tensor)`` of every parameter, buffer and tensor among the inputs.
    arguments
        The arguments, with the position of a leaf in the place of its tensor.
    keywords
        The names by which the last of them were given.
    modules
        Every module below, and its name.
    """

    def __init__(
        self,
        module: nn.Module,
        inputs: Sequence[Any],
        names: Sequence[str],
        keywords: tuple[str, ...] = (),
    ) -> None:
        self.module, self.keywords = module, keywords
        self.modules = {m: n for n, m in module.named_modules() if not isinstance(m, _Holder)}
        self.leaves: list[tuple[str, str, Tensor]] = [
            *((name, "parameter", p) for name, p in module.named_parameters()),
            *((name, "buffer", b) for name, b in module.named_buffers()),
        ]
        self.state = [name for name, _, _ in self.leaves]
        taken = set(self.state)
        self.arguments: list[Any] = []
        for name, value in zip(names, inputs, strict=True):
            self.arguments.append(self._open(name, value, taken))

    def _open(self, name: str, value: Any, taken: set[str]) -> Any:
        """Replace the tensors of one argument by slots."""
        paths, structure = pytree.tree_flatten_with_path(value)
        flat = []
        for path, part in paths:
            if not isinstance(part, Tensor):
                flat.append(part)
                continue
            full = ".".join([name, *(str(_key(k)) for k in path)])
            while full in taken:
                full += "_input"
            taken.add(full)
            flat.append(Slot(len(self.leaves)))
            self.leaves.append((full, "input", part))
        return pytree.tree_unflatten(flat, structure)

    def __call__(self, *tensors: Tensor) -> Any:
        """Call the function with other tensors in its leaves."""
        inputs = pytree.tree_map_only(Slot, lambda slot: tensors[slot.index], self.arguments)
        state = dict(zip(self.state, tensors, strict=False))
        first = len(inputs) - len(self.keywords)
        named = dict(zip(self.keywords, inputs[first:], strict=True))
        with _kept(self.module):
            return call_with(self.module, state, tuple(inputs[:first]), named)

    def owner(self, name: str) -> tuple[str, str]:
        """Path and class of the module that holds a parameter or buffer."""
        path = name.rpartition(".")[0]
        module = self.module.get_submodule(path)
        return path, "" if isinstance(module, _Holder) else type(module).__name__

    def copies(self, differentiable: bool = False) -> list[Tensor]:
        """Fresh tensors for a call: other objects, so that nothing given is changed or mistaken."""
        fresh = [
            tensor.detach() if kind == "parameter" else tensor.detach().clone()
            for _, kind, tensor in self.leaves
        ]
        for copy, (_, _, tensor) in zip(fresh, self.leaves, strict=True):
            copy.requires_grad_(differentiable and tensor.requires_grad)
        return fresh


class Slot:
    """The place of a leaf's tensor among the arguments."""

    def __init__(self, index: int) -> None:
        self.index = index


def lift(function: Any, inputs: Sequence[Any], keywords: dict[str, Any] | None = None) -> Lifted:
    """Open a call of a function or a module."""
    keywords = keywords or {}
    if not callable(function):
        raise InvalidParameter(
            f"trace: `fn` must be a function or an `nn.Module`; got {type(function).__name__}."
        )
    called = function.forward if isinstance(function, nn.Module) else function
    names = [*_argument_names(called, len(inputs)), *keywords]
    values = [*inputs, *keywords.values()]
    if isinstance(function, nn.Module):
        return Lifted(function, values, names, tuple(keywords))
    given = _only_modules(dict(zip(names, values, strict=True)))
    holder = _Holder(function, {**_modules_of(function), **given})
    return Lifted(holder, values, names, tuple(keywords))


def _argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """Name positional arguments as the signature does."""
    names: list[str] = []
    try:
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                names += [f"{parameter.name}_{i}" for i in range(count - len(names))]
            elif parameter.kind is not parameter.KEYWORD_ONLY:
                names.append(parameter.name)
    except (TypeError, ValueError):  # built-in functions do not say
        names = []
    names += [f"input_{i}" for i in range(len(names), count)]
    return names[:count]


def _modules_of(function: Any, seen: frozenset[Any] = frozenset()) -> dict[str, nn.Module]:
    """Find the modules that a function and the functions it calls use, by the names they use."""
    if isinstance(function, functools.partial):
        found = {f"arg{i}": value for i, value in enumerate(function.args)} | function.keywords
        return _only_modules(found) | _modules_of(function.func, seen)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, nn.Module):
        return {"self": owner}
    plain = inspect.unwrap(getattr(function, "__func__", function))
    if not inspect.isfunction(plain) or plain in seen or str(plain.__module__).startswith("torch."):
        return {}
    used = inspect.getclosurevars(plain)
    values = {**_defaults(plain), **used.globals, **used.nonlocals}
    inner: dict[str, nn.Module] = {}
    for value in values.values():
        if inspect.isfunction(value) or isinstance(value, functools.partial):
            inner |= _modules_of(value, seen | {plain})
    return _only_modules(inner | values)


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


def _only_modules(values: dict[str, Any]) -> dict[str, nn.Module]:
    found = {name: value for name, value in values.items() if isinstance(value, nn.Module)}
    inner = {m for module in found.values() for m in module.modules() if m is not module}
    return {name: module for name, module in found.items() if module not in inner}


@contextmanager
def _kept(root: nn.Module) -> Iterator[None]:
    """Put back the attributes that a forward pass sets on its modules."""
    before = [(module, dict(vars(module))) for module in root.modules()]
    try:
        yield
    finally:
        for module, attributes in before:
            vars(module).clear()
            vars(module).update(attributes)


def _key(key: Any) -> Any:
    return getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))
