"""Where the script makes its layers, optimizers and loaders."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader
from torch.utils.weak import WeakIdKeyDictionary

from castalia.diagnose.finding_record import SourceLine
from castalia.diagnose.script.torch_patches import Patches
from castalia.diagnose.source_lines import calling_line

__all__ = ["MadeLines"]


class MadeLines:
    """Remembers the line on which an object was made, as long as the object lives.

    Attributes
    ----------
    lines
        What holds for every module of the script: ``"loss"`` and ``"data"``.
    """

    def __init__(self) -> None:
        self.lines: dict[str, SourceLine] = {}
        self._made: Any = WeakIdKeyDictionary()  # a module may have a hash of its own

    def follow(self, patches: Patches, guarded: Callable[..., Any]) -> None:
        """Wrap the constructors."""

        def noting(original: Callable[..., None]) -> Callable[..., None]:
            def __init__(made: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
                guarded(self._note, made)
                original(made, *args, **kwargs)

            return __init__

        for cls in (nn.Module, Optimizer, DataLoader):
            patches.place(cls, "__init__", noting)

    def of(self, module: nn.Module, optimizers: Iterable[Optimizer]) -> MutableMapping[str, Any]:
        """Return the lines of one training: its layers by name, its optimizer, what all share."""
        own = {name: self._made.get(layer) for name, layer in module.named_modules() if name}
        made = [self._made.get(optimizer) for optimizer in optimizers]
        own |= {"module": self._made.get(module), "optimizer": made[0] if made else None}
        return ChainMap({name: line for name, line in own.items() if line}, self.lines)

    def modules(self) -> list[nn.Module]:
        """Return the modules that were made and live."""
        return [made for made in list(self._made) if isinstance(made, nn.Module)]

    def used(self, what: str, made: Any = None) -> None:
        """Remember the line of the loss, or the one on which the first loader read was made."""
        if what not in self.lines:
            line = calling_line() if made is None else self._made.get(made)
            if line is not None:
                self.lines[what] = line

    def _note(self, made: Any) -> None:
        line = calling_line()
        if line is not None:
            self._made.setdefault(made, line)
