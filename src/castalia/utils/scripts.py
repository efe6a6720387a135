"""Running somebody's script as ``python script.py`` would, and acting when it imports a package."""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean

__all__ = ["NoProgram", "after_import", "run_as_main", "without_frames"]


class NoProgram(InvalidParameter):
    """There is nothing of that name to run."""


def run_as_main(target: str, args: Sequence[str], *, module: bool, caller: str) -> None:
    """Run a script, a folder with ``__main__.py`` or a module as ``__main__``.

    What the program raises goes on to the caller. ``sys.argv``, ``sys.path[0]`` and the
    attributes of ``__main__`` are those that Python gives to ``python target args`` and to
    ``python -m target args``; they stay so, as the program may have threads and exit handlers.
    """
    if not module and not os.path.exists(target):
        near = did_you_mean(target, _neighbours(target))
        raise NoProgram(f"{caller}: the script must be a file; got '{target}'.{near}")
    sys.argv = [target, *args]
    if module:
        _first_on_path(os.getcwd())
        _execute(*_module(target, caller))
    elif _is_package(target):
        _first_on_path(os.path.realpath(target))
        _execute(*_folder(target, caller))
    else:
        _first_on_path(os.path.dirname(os.path.realpath(target)))
        _execute(*_file(target, caller))


def _first_on_path(folder: str) -> None:
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _neighbours(path: str) -> list[str]:
    folder = os.path.dirname(path) or "."
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [os.path.join(os.path.dirname(path), n) for n in names if n.endswith(".py")]


def _is_package(path: str) -> bool:
    return os.path.isdir(path) or path.endswith((".zip", ".pyz"))


Program = tuple[Callable[[], CodeType], dict[str, Any]]


def _file(path: str, caller: str) -> Program:
    full = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    try:
        with io.open_code(full) as file:
            source = file.read()
    except OSError as error:
        raise NoProgram(
            f"{caller}: the script must be readable; got '{path}' ({error.strerror})."
        ) from None
    names = {"__file__": full, "__loader__": SourceFileLoader("__main__", full)}
    return lambda: compile(source, full, "exec", dont_inherit=True), names


def _folder(path: str, caller: str) -> Program:
    spec = PathFinder.find_spec("__main__", [path])
    if spec is None:
        raise NoProgram(f"{caller}: a folder must hold `__main__.py` to be run; got '{path}'.")
    return _specified(spec)


def _module(name: str, caller: str) -> Program:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module's package needs something that is not there
        spec = None
    if spec is None:
        raise NoProgram(f"{caller}: `-m` must be followed by a module; got '{name}'.")
    sys.argv[0] = spec.origin or name
    return _specified(spec)


def _specified(spec: ModuleSpec) -> Program:
    loader: Any = spec.loader
    names = {
        "__file__": spec.origin,
        "__cached__": spec.cached,
        "__loader__": loader,
        "__package__": spec.parent,
        "__spec__": spec,
    }
    return lambda: loader.get_code(spec.name), names


def _execute(code: Callable[[], CodeType], names: dict[str, Any]) -> None:
    main = ModuleType("__main__")
    main.__dict__.update({"__builtins__": builtins, "__cached__": None, **names})
    sys.modules["__main__"] = main
    exec(code(), main.__dict__)


def without_frames(error: BaseException, ours: Sequence[str]) -> None:
    """Take out of an error's traceback, and of its causes', what lies in our files and above."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _shown(one.__traceback__, tuple(ours))
        left += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            left += one.exceptions


def _shown(trace: TracebackType | None, ours: tuple[str, ...]) -> TracebackType | None:
    steps: list[TracebackType] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code is _execute.__code__:  # what called the program is no part of it
            steps.clear()
        elif not code.co_filename.startswith(ours):
            steps.append(trace)
        trace = trace.tb_next
    shown = None
    for step in reversed(steps):
        shown = TracebackType(shown, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return shown


def after_import(name: str, act: Callable[[], None]) -> None:
    """Act once, when a package has been imported; at once where it is there already."""
    if name in sys.modules:
        act()
    else:
        sys.meta_path.insert(0, _AfterImport(name, act))


class _AfterImport(MetaPathFinder):
    """Finds one package by the finders below it and acts when its code has run."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self.name, self.act = name, act

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = spec and spec.loader
        if loader is None:
            return None
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # a loader's own method shows again
            execute(module)
            self.act()

        loader.exec_module = exec_module
        return spec
