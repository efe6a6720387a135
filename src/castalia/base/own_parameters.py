"""The parameters that one class of an estimator declares."""

from __future__ import annotations

from inspect import get_annotations
from typing import Any

__all__ = ["own_parameters"]


def own_parameters(est: Any, cls: type) -> dict[str, Any]:
    """Return the parameters that a class declares itself, for a network that takes just these.

    Parameters
    ----------
    est
        The estimator.
    cls
        Its class, or the one of its bases that declares them.

    Examples
    --------
    >>> class Base:
    ...     epochs: int = 3
    >>> class Wide(Base):
    ...     width: int = 8
    >>> own_parameters(Wide(), Wide)
    {'width': 8}
    """
    declared = get_annotations(cls).items()
    return {name: getattr(est, name) for name, kind in declared if "ClassVar" not in str(kind)}
