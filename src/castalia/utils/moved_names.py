"""Names that moved to another module and stay importable for one version."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["moved_names"]


def moved_names(here: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that finds moved names, with a ``FutureWarning``."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {here!r} has no attribute {name!r}")
        warnings.warn(
            f"{here}.{name} is now {names[name]}.{name}; the old path goes with the next version.",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(import_module(names[name]), name)

    return find
