"""Which functions are the code of a public name, and which ones it calls on."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import castalia

__all__ = ["functions_of", "layers", "ours", "parents_of", "resolve"]

HOME = str(Path(castalia.__file__).parent)
GENERATED = "<string>"  # where dataclasses put the methods they write


def resolve(path: str) -> Any:
    """Import ``package:name``, dotted attributes allowed."""
    module, _, attributes = path.partition(":")
    found: Any = importlib.import_module(module)
    for attribute in attributes.split("."):
        found = inspect.getattr_static(found, attribute, None) or getattr(found, attribute)
    return found


def ours(thing: Any) -> bool:
    """Whether a function, class or module belongs to the library."""
    name = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", "")
    return str(name).split(".")[0] == "castalia"


def functions_of(thing: Any) -> list[FunctionType]:
    """List the functions of the library that a thing consists of, without what it inherits.

    A class consists of its methods, a table of its entries, a module of what it defines.
    """
    found: dict[int, FunctionType] = {}
    for function in _unfold(thing):
        found.setdefault(id(function.__code__), function)
    return list(found.values())


def parents_of(cls: type) -> list[type]:
    """List the library's classes that a class derives from, nearest first."""
    return [parent for parent in cls.__mro__[1:] if ours(parent)]


def layers(thing: Any, depth: int = 3) -> Iterator[list[FunctionType]]:
    """Yield the functions of a thing, then those it inherits or names, then those these name."""
    seen: set[int] = set()
    things: list[Any] = [thing]
    for _ in range(depth):
        layer = [f for f in _all(things) if id(f.__code__) not in seen]
        seen |= {id(function.__code__) for function in layer}
        yield layer
        parents = [p for t in things if isinstance(t, type) for p in parents_of(t)]
        things = [*parents, *(named for function in layer for named in _named(function))]


def _all(things: Iterable[Any]) -> list[FunctionType]:
    """Join the functions of several things, each once."""
    return list({id(f.__code__): f for thing in things for f in functions_of(thing)}.values())


def _named(function: FunctionType) -> list[Any]:
    """Find the functions and classes of the library that a function names."""
    found = [function.__globals__.get(name) for name in function.__code__.co_names]
    return [f for f in found if callable(f) and ours(f) and not isinstance(f, ModuleType)]


def _unfold(thing: Any) -> Iterator[FunctionType]:
    """Yield the functions inside wrappers, classes, tables and modules."""
    if isinstance(thing, FunctionType) and _written_here(thing):
        yield thing
    for part in _parts(thing):
        if part is not None and part is not thing:
            yield from _unfold(part)


def _parts(thing: Any) -> list[Any]:
    """List what a thing directly consists of."""
    if isinstance(thing, ModuleType):
        return [v for v in vars(thing).values() if getattr(v, "__module__", "") == thing.__name__]
    if isinstance(thing, type):
        home = thing.__module__
        return [v for v in vars(thing).values() if getattr(v, "__module__", home) == home]
    if isinstance(thing, Mapping):
        return list(thing.values())
    if isinstance(thing, property):
        return [thing.fget, thing.fset]
    return [getattr(thing, name, None) for name in ("__func__", "__wrapped__", "func")]


def _written_here(function: FunctionType) -> bool:
    """Whether the code is the library's own: a decorator's wrapper only borrows its module."""
    file = function.__code__.co_filename
    return ours(function) and (file == GENERATED or file.startswith(HOME))
