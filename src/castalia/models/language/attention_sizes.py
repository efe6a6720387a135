"""Sizes of attention that must go together."""

from __future__ import annotations

from typing import Any

from castalia.errors import InvalidParameter

__all__ = ["check_heads"]


def check_heads(owner: Any) -> None:
    """Refuse a width that cannot be shared by the heads."""
    if owner.dim % owner.heads:
        raise InvalidParameter(
            f"{type(owner).__name__}: `dim` must be a multiple of heads={owner.heads}; got "
            f"{owner.dim}."
        )
