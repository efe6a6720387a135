"""What most adapters share: the attributes of one are all that saving needs."""

from __future__ import annotations

from typing import Any, Self

__all__ = ["AdapterState"]


class AdapterState:
    """An adapter without categorical columns, saved by its attributes."""

    categories: tuple[int, ...] = ()

    def state(self) -> dict[str, Any]:
        """Return what saving needs."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return an adapter from its saved state."""
        made = cls()
        vars(made).update(state)
        return made
