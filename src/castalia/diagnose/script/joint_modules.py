"""Modules that are trained as one, though a script never puts them together."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

__all__ = ["Parts", "Uncalled"]


class Parts(nn.Module):
    """An encoder and a decoder, say, that one optimizer moves: watched as one network.

    It is never called itself: its call begins with that of the first part that is called with
    gradients on, and ends with that of the last.

    Parameters
    ----------
    parts
        In the order in which they are called.
    entrance
        Which of them is the first called with gradients on.

    Examples
    --------
    >>> both = Parts([nn.Linear(4, 2), nn.Linear(2, 4)])
    >>> [name for name, _ in both.named_parameters()]
    ['Linear.weight', 'Linear.bias', 'Linear2.weight', 'Linear2.bias']
    """

    def __init__(self, parts: Sequence[nn.Module], entrance: int = 0) -> None:
        super().__init__()
        for part in parts:
            kind = type(part).__name__
            same = sum(type(other).__name__ == kind for other in self.children())
            self.add_module(f"{kind}{same + 1}" if same else kind, part)
        self._ends = (entrance, len(parts) - 1)

    @property
    def training(self) -> bool:  # type: ignore[override]
        """Whether any part is in training mode."""
        return any(part.training for part in self.children())

    @training.setter
    def training(self, mode: bool) -> None:
        """Leave the modes to the parts."""

    @property
    def called_parts(self) -> tuple[nn.Module, nn.Module]:
        """The part that comes first, and the one that comes last."""
        parts = list(self.children())
        return parts[self._ends[0]], parts[self._ends[1]]


class Uncalled(Parts):
    """A network that is never called itself, but by methods of its own that call parts of it.

    Parameters
    ----------
    whole
        The network.
    called
        Its part that is called, or `Parts` of several.

    Examples
    --------
    >>> body = nn.Linear(4, 2)
    >>> whole = Uncalled(nn.Sequential(body, nn.Linear(2, 1)), body)
    >>> whole.called_parts == (body, body)
    True
    """

    def __init__(self, whole: nn.Module, called: nn.Module) -> None:
        super().__init__([])
        self.add_module("module", whole)  # a name that is left out before those of parameters
        self._called: tuple[nn.Module, nn.Module] = getattr(
            called, "called_parts", (called, called)
        )

    @property
    def called_parts(self) -> tuple[nn.Module, nn.Module]:
        """The part that comes first, and the one that comes last."""
        return self._called
