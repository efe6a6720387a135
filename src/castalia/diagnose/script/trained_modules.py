"""What a script trains: its optimizers, and the outermost modules that own what they move.

A module is judged when it is first called. One that owns everything an optimizer moves is the one
to watch, before its forward pass goes on. One that owns a part of it, or none, waits until the
first ``backward`` shows whether a larger one comes; else the parts are watched as one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from castalia.diagnose.script.joint_modules import Parts, Uncalled

__all__ = ["LooseTensors", "TrainedModules"]

PATIENCE = 100  # backward calls after which an optimizer that owns nothing seen is given up


class LooseTensors(nn.Module):
    """Tensors that a script trains without a module around them."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        super().__init__()
        # The tensors themselves, so that their gradients are seen; a Parameter would be a copy.
        self._parameters.update({f"tensor{i}": x for i, x in enumerate(tensors)})  # type: ignore


class TrainedModules:
    """The optimizers and modules seen so far.

    Parameters
    ----------
    made
        Gives all modules that the script has made: one may run without ever being called, where
        only ``forward`` is.
    """

    def __init__(self, made: Callable[[], Iterable[nn.Module]] = list) -> None:
        self._made = made
        self._optimizers: list[weakref.ref[Optimizer]] = []
        self._judged: Any = WeakIdKeyDictionary()  # a module may have a hash of its own
        self._asked: Any = WeakIdKeyDictionary()  # without gradients so far
        self._outermost: list[tuple[weakref.ref[nn.Module], bool]] = []  # called with gradients?
        self._backwards = 0
        self.looking = True

    def made(self, optimizer: Optimizer) -> None:
        """An optimizer was made: modules are judged again."""
        self._optimizers.append(weakref.ref(optimizer))
        self._judged, self._asked = WeakIdKeyDictionary(), WeakIdKeyDictionary()
        self._backwards, self.looking = 0, True

    def waiting(self) -> list[Optimizer]:
        """Return the optimizers whose module has not been found."""
        return [alive for ref in self._optimizers if (alive := ref()) is not None]

    def called(self, module: nn.Module) -> list[Optimizer]:
        """Judge a module that is called; return the optimizers it is to be watched with."""
        with_gradients = torch.is_grad_enabled()
        if module in self._judged or (module in self._asked and not with_gradients):
            return []
        inner = list(module.modules())
        seen = self._judged if with_gradients else self._asked
        for one in inner:
            seen[one] = None
        mine = _owned(module)
        touching = [one for one in self.waiting() if mine & _moved(one)]
        if any(_moved(one) <= mine for one in touching):
            self._take(touching)
            return touching
        if mine and (with_gradients or touching):
            inside = {id(one) for one in inner}
            kept = [one for one in self._outermost if id(one[0]()) not in inside]
            self._outermost = [*kept, (weakref.ref(module), with_gradients)]
        return []

    def settled(self, watching: bool) -> list[tuple[nn.Module, list[Optimizer]]]:
        """Return what else is trained, now that a script goes backward."""
        self._backwards += 1
        waiting, called = self.waiting(), self._called()
        self._outermost = []
        found = [self._completed(*one) for one in _partial_owners(called, waiting)]
        if not found and not watching:
            found = _strangers([module for module, graded in called if graded], waiting)
            made = _outermost(list(self._made()))
            found = found or _owners(made, waiting)
            # One that was wrapped in something that is gone by now.
            found = found or (_strangers(made, waiting) if len(made) == 1 and waiting else [])
        for _, optimizers in found:
            self._take(optimizers)
        self.looking = bool(self.waiting()) and self._backwards < PATIENCE
        self.looking |= not found and not watching
        return found

    def _completed(
        self, called: nn.Module, optimizers: list[Optimizer]
    ) -> tuple[nn.Module, list[Optimizer]]:
        """Return what owns all that optimizers move, though only a part of it is called."""
        moved = set[int]().union(*map(_moved, optimizers))
        if moved <= _owned(called):
            return called, optimizers
        parts = set(called.children()) if isinstance(called, Parts) else {called}
        for whole in _outermost(list(self._made())):
            if moved <= _owned(whole) and parts <= set(whole.modules()):
                return Uncalled(whole, called), optimizers
        return called, optimizers

    def _called(self) -> list[tuple[nn.Module, bool]]:
        return [(alive, how) for ref, how in self._outermost if (alive := ref()) is not None]

    def _take(self, optimizers: Sequence[Optimizer]) -> None:
        self._optimizers = [ref for ref in self._optimizers if ref() not in optimizers]
        self.looking = bool(self.waiting())


def _partial_owners(
    called: Sequence[tuple[nn.Module, bool]], waiting: Sequence[Optimizer]
) -> list[tuple[nn.Module, list[Optimizer]]]:
    """Return what owns parts of what optimizers move; what shares an optimizer, as one."""
    groups: list[tuple[list[tuple[nn.Module, bool]], list[Optimizer]]] = []
    for module, graded in called:
        touching = [one for one in waiting if _owned(module) & _moved(one)]
        if not touching:
            continue
        same = next((group for group in groups if set(touching) & set(group[1])), None)
        if same is None:
            groups.append(([(module, graded)], touching))
        else:
            same[0].append((module, graded))
            same[1].extend(one for one in touching if one not in same[1])
    return [(_whole(parts), optimizers) for parts, optimizers in groups if any(g for _, g in parts)]


def _whole(parts: Sequence[tuple[nn.Module, bool]]) -> nn.Module:
    """Return one module of several: of those called with gradients on, the first is entered."""
    if len(parts) == 1:
        return parts[0][0]
    return Parts([module for module, _ in parts], [graded for _, graded in parts].index(True))


def _strangers(
    modules: Sequence[nn.Module], waiting: Sequence[Optimizer]
) -> list[tuple[nn.Module, list[Optimizer]]]:
    """Return what is trained where no module owns anything that an optimizer moves."""
    loose = [p for one in waiting for p in _tensors(one) if not isinstance(p, nn.Parameter)]
    if loose:
        return [(LooseTensors(loose), list(waiting))]
    # An optimizer of another module, or updates by hand.
    trained = [m for m in modules if m.training and any(p.requires_grad for p in m.parameters())]
    return [(module, list(waiting)) for module in trained]


def _owners(
    made: Sequence[nn.Module], waiting: Sequence[Optimizer]
) -> list[tuple[nn.Module, list[Optimizer]]]:
    """Return the modules that own what optimizers move, though none was called."""
    pairs = [(one, [o for o in waiting if _moved(o) <= _owned(one)]) for one in made]
    return [(one, optimizers) for one, optimizers in pairs if optimizers]


def _outermost(made: Sequence[nn.Module]) -> list[nn.Module]:
    """Return the modules with parameters that are part of no other."""
    inner = {id(part) for one in made for part in one.modules() if part is not one}
    return [one for one in made if id(one) not in inner and any(True for _ in one.parameters())]


def _tensors(optimizer: Any) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _owned(module: nn.Module) -> set[int]:
    return {id(p) for p in module.parameters()}


def _moved(optimizer: Any) -> set[int]:
    return {id(p) for p in _tensors(optimizer)}
