"""One watched script: from the import of torch to its end.

Everything here runs inside somebody's script, so nothing here may raise: each wrapper calls the
session through ``_guarded``, which turns our errors into notes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.finding_codes import NAMES
from castalia.diagnose.finding_record import Finding
from castalia.diagnose.monitor import Doctor, watch
from castalia.diagnose.record import Record
from castalia.diagnose.script.joint_diagnosis import joined
from castalia.diagnose.script.loss_calls import LOSSES, LossCall, failed, watched_loss
from castalia.diagnose.script.made_lines import MadeLines
from castalia.diagnose.script.torch_patches import Patches
from castalia.diagnose.script.trained_modules import TrainedModules
from castalia.diagnose.script.training_phases import Phases

__all__ = ["FOUND", "Session"]

FOUND = 3  # exit code of a script that ends at a certain error

MOST_NOTES = 3
MOST_DOCTORS = 8


@dataclass
class _Watched:
    """A module under watch."""

    module: nn.Module
    doctor: Doctor
    moved: set[int]  # ids of what its optimizers move
    since: int  # backward calls before it was first seen

    @property
    def name(self) -> str:
        return _name(self.module)


def _name(module: nn.Module) -> str:
    """Return the name of a module's class, under what data-parallel and compiled ones wrap."""
    for wrapper in ("module", "_orig_mod"):
        if type(module).__module__.startswith("torch."):
            module = getattr(module, wrapper, module)
    return type(module).__name__


class Session:
    """Watches whatever this process trains, from ``start`` to ``stop``.

    Processes that it forks are not watched.

    Parameters
    ----------
    mute
        Codes of findings that are not wanted.
    on_finding
        Called with each error as soon as it is certain, while the script runs.
    stop_on_error
        Whether the script ends with exit code 3 at its next backward pass after such an error.
    on_backward
        Called with the records of what is trained, after every backward pass.

    Examples
    --------
    >>> session = Session()
    >>> session.start()
    >>> session.stop()
    >>> session.saw_training
    False
    """

    def __init__(
        self,
        mute: Iterable[str] = (),
        on_finding: Callable[[Finding], object] | None = None,
        stop_on_error: bool = False,
        on_backward: Callable[[list[Record]], object] | None = None,
    ) -> None:
        self.mute = tuple(mute)
        self.on_finding, self.stop_on_error = on_finding, stop_on_error
        self.on_backward = on_backward
        self._stopping = False
        self.active = False
        self._patches, self._calls, self._backs = Patches(), Patches(), Patches()
        self._lines = MadeLines()
        self._sightings = TrainedModules(self._lines.modules)
        self._phases = Phases(self._doctor)
        self._live: list[_Watched] = []
        self._past: list[tuple[str, Diagnosis]] = []
        self._notes: list[str] = []
        self._doctors: list[Doctor] = []  # of those that are live
        self._known: set[int] = set()  # ids of all parameters that are watched
        self._backwards = 0
        self._made_at: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        os.register_at_fork(after_in_child=self._leave)

    @property
    def saw_training(self) -> bool:
        """Whether anything was watched."""
        return bool(self._live or self._past)

    @property
    def records(self) -> list[Record]:
        """What was seen so far of each module that is trained now."""
        return [one.doctor.record for one in self._live]

    def start(self) -> None:
        """Wrap what a training must call."""
        self.active = True
        self._lines.follow(self._patches, self._guarded)
        self._patches.place(Optimizer, "__init__", self._optimizer_init)
        self._patches.place(DataLoader, "__iter__", self._loader_iter)
        for name in LOSSES:
            self._patches.place(F, name, partial(self._loss, name))
        self._patches.place(F, "dropout", self._dropout)
        self._backs.place(torch.autograd, "backward", self._backward)
        self._look()

    def stop(self) -> None:
        """Put everything back, and end what is open."""
        if self.active:
            self._guarded(self._phases.end)
        self._leave()

    def diagnosis(self, subject: str = "") -> Diagnosis:
        """Return what was found in everything that was watched."""
        live = [(one.name, one.doctor.diagnosis(mute=self.mute)) for one in self._live]
        strange = [
            f"`{code}` was to be muted, but there is no such code."
            for code in self.mute
            if code not in NAMES
        ]
        notes = [*self._notes, *strange]
        whole = joined([*self._past, *live], notes)
        return replace(whole, subject=subject) if subject else whole

    # ---- wrappers ----

    def _optimizer_init(self, original: Callable[..., None]) -> Callable[..., None]:
        def __init__(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            original(optimizer, *args, **kwargs)
            self._guarded(self._made, optimizer)

        return __init__

    def _module_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            if not torch.compiler.is_compiling():
                self._guarded(self._called, module)
            return original(module, *args, **kwargs)

        return __call__

    def _backward(self, original: Callable[..., None]) -> Callable[..., None]:
        def backward(*args: Any, **kwargs: Any) -> None:
            if self._stopping and self.active:
                raise SystemExit(FOUND)
            if self._guarded(self._goes_backward, args, kwargs):
                torch.autograd.backward(*args, **kwargs)  # through the new doctor, and then here
            else:
                original(*args, **kwargs)

        return backward

    def _loader_iter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def __iter__(loader: DataLoader) -> Any:  # noqa: N807
            self._guarded(self._reads, loader)
            return original(loader)

        return __iter__

    def _loss(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        return watched_loss(
            name,
            original,
            lambda: self.active,
            partial(self._guarded, self._loss_seen),
            partial(self._guarded, self._loss_failed),
        )

    def _dropout(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def dropout(
            input: Tensor,  # noqa: A002
            p: float = 0.5,
            training: bool = True,
            inplace: bool = False,
        ) -> Tensor:
            if not torch.compiler.is_compiling() and p > 0:
                self._guarded(self._dropped, p, training)
            return original(input, p, training, inplace)

        return dropout

    # ---- what they tell ----

    def _made(self, optimizer: Optimizer) -> None:
        self._made_at[optimizer] = self._backwards
        self._sightings.made(optimizer)
        self._look()

    def _called(self, module: nn.Module) -> None:
        optimizers = self._sightings.called(module)
        if optimizers:
            self._watch(module, optimizers)
        if not self._sightings.looking:
            self._calls.remove()

    def _goes_backward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if self._sightings.looking:
            found = self._sightings.settled(bool(self._live))
            for module, optimizers in found:
                self._watch(module, optimizers)
            if not self._sightings.looking:
                self._calls.remove()
            if found:
                return True
        self._backwards += 1
        root = args[0] if args else kwargs.get("tensors")
        if isinstance(root, list | tuple) and len(root) == 1:
            root = root[0]
        self._phases.backward(root)
        if self.on_backward is not None:
            self.on_backward(self.records)
        return False

    def _reads(self, loader: DataLoader) -> None:
        if torch.is_grad_enabled():
            self._lines.used("data", loader)
        self._phases.reads(loader.dataset)
        again = self._phases.trains_on(loader.dataset)
        for doctor in self._doctors:
            doctor.reads(again)

    def _loss_seen(self, call: LossCall) -> None:
        self._lines.used("loss")
        watched = self._current()
        self._phases.loss(call, watched.module.training if watched else True)

    def _loss_failed(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
    ) -> None:
        words, outputs, targets = failed(name, args, kwargs, error)
        self._note(words)
        if not self._live:  # there will be no backward to wait for
            for module, optimizers in self._sightings.settled(False):
                self._watch(module, optimizers)
        self._lines.used("loss")
        for one in self._live[-1:]:
            one.doctor.log(outputs=outputs, targets=targets)
            one.doctor.raised(outputs, targets)

    def _dropped(self, p: float, training: bool) -> None:
        for one in self._live[-1:] if torch.is_grad_enabled() else ():
            final = one.doctor.record.final
            if training:
                final["dropout"] = max(p, final.get("dropout", 0.0))
            else:
                final["dropout_off"] = 1.0

    # ---- the rest ----

    def _look(self) -> None:
        """See the calls of modules; this costs, so it ends when what is trained is known."""
        self._calls.remove()
        self._calls.place(nn.Module, "__call__", self._module_call)

    def _watch(self, module: nn.Module, optimizers: list[Optimizer]) -> None:
        moved = {id(p) for one in optimizers for g in one.param_groups for p in g["params"]}
        if any(one.module is module and one.moved == moved for one in self._live):
            self._note(f"{_name(module)} got a new optimizer while it was trained.")
            return
        self._backs.remove()  # ours stays above the doctors', and is called first
        try:
            self._admit(module, optimizers, moved)
        finally:
            self._backs.place(torch.autograd, "backward", self._backward)

    def _admit(self, module: nn.Module, optimizers: list[Optimizer], moved: set[int]) -> None:
        over = [one for one in self._live if self._is_over(one, module, optimizers)]
        if over:
            self._phases.end()
            self._phases = Phases(self._doctor)
        for one in over:
            self._live.remove(one)
            self._doctors.remove(one.doctor)
            self._past.append((one.name, one.doctor.diagnosis(mute=self.mute)))
            one.doctor.close()
        if len(self._live) >= MOST_DOCTORS:
            self._note(f"More than {MOST_DOCTORS} modules are trained; the rest was not watched.")
            return
        live = self._found if self.on_finding or self.stop_on_error else None
        doctor = watch(module, optimizers or None, on_finding=live)
        doctor.lines = self._lines.of(module, optimizers)
        self._known.update(map(id, module.parameters()))
        self._doctors.append(doctor)
        doctor.beside(self._doctors, self._known)
        self._live.append(_Watched(module, doctor, moved, self._backwards))

    def _found(self, found: Finding) -> None:
        """Hear of an error while the script runs."""
        if found.code in self.mute:
            return
        self._stopping = self.stop_on_error
        if self.on_finding is not None:
            self.on_finding(found)

    def _is_over(self, one: _Watched, module: nn.Module, optimizers: list[Optimizer]) -> bool:
        """Whether a training has ended, as another of its kind was set up while it ran."""
        made = [self._made_at.get(optimizer, 0) for optimizer in optimizers]
        after = bool(made) and min(made) > one.since
        return one.module is module or (type(one.module) is type(module) and after)

    def _current(self) -> _Watched | None:
        """Return whose validation a loss belongs to; None where that is not clear."""
        if len(self._live) == 1:
            return self._live[0]
        resting = [one for one in self._live if not one.module.training]
        return resting[0] if len(resting) == 1 else None

    def _doctor(self) -> Doctor | None:
        current = self._current()
        return current.doctor if current else None

    def _guarded(self, act: Callable[..., Any], *args: Any) -> Any:
        if not self.active:
            return None
        try:
            return act(*args)
        except Exception as error:
            self._note(f"The doctor stumbled ({type(error).__name__}: {error}).")
            return None

    def _note(self, words: str) -> None:
        if words not in self._notes and len(self._notes) < MOST_NOTES:
            self._notes.append(words)

    def _leave(self) -> None:
        """Stop watching without a word, as a forked process does."""
        if not self.active:
            return
        for patches in (self._calls, self._backs, self._patches):
            patches.remove()
        for one in self._live:
            self._guarded(one.doctor.close)
        self.active = False
