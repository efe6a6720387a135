"""The one door through which optional packages come in."""

import importlib
from types import ModuleType

from castalia.errors import MissingPackage

__all__ = ["require"]


def require(package: str, *, caller: str, extra: str | None = None) -> ModuleType:
    """Import a package or say who needs it and how to get it.

    Examples
    --------
    >>> require("math", caller="doctest").sqrt(4)
    2.0
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        command = (
            f"pip install 'castalia[{extra}]'" if extra else f"pip install {package.split('.')[0]}"
        )
        raise MissingPackage(
            f"{caller}: needs the package `{package}`; install it with `{command}`."
        ) from error
