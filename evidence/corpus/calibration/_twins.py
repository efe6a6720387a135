"""Healthy twins: the same training with its planted fault taken out.

A case takes its fault as the default of a keyword, and says beside it what would have been right::

    @case("CST101", dose="severe")
    @cured(lr=0.05)
    def a_rate_of_ten(seed, lr=10.0): ...

so that ``a_rate_of_ten.cured(seed)`` shows that nothing else is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["cured"]


def cured(**changes: Any) -> Callable[[Callable], Callable]:
    """Give the decorated training a twin with these arguments, as its attribute ``cured``."""

    def add(run: Callable) -> Callable:
        run.cured = partial(run, **changes)
        return run

    return add
