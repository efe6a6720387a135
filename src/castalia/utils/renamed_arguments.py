"""Arguments that have a new name: the old one works for one version, with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["renamed"]

F = TypeVar("F", bound=Callable[..., Any])


def renamed(**names: str) -> Callable[[F], F]:
    """Let a function take arguments by their old names, old to new, with a ``FutureWarning``.

    >>> @renamed(number="count")
    ... def twice(count):
    ...     return 2 * count
    >>> twice(count=4)
    8
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            for old in names.keys() & kwargs.keys():
                warnings.warn(
                    f"{function.__name__}: `{old}` is now `{names[old]}`; the old name goes with "
                    "the next version.",
                    FutureWarning,
                    stacklevel=2,
                )
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return called  # type: ignore[return-value]

    return decorate
