"""The parameters of a module, also of one that changes while it is trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from castalia.diagnose.monitor.weight_measures import (
    all_finite,
    equal_rows,
    looks_fresh,
    moved,
    sample,
    spectral_radius,
    travelled,
)
from castalia.diagnose.record import Record, Weight

__all__ = ["Parameters", "plain"]

RECURRENT = ("RNN", "RNNCell")  # whose square matrix is applied again and again
STARTED = 64  # numbers of each parameter kept from the start


class Parameters:
    """Parameters by name, and what is known of each in the record.

    Lazy layers get theirs at the first call, and layers may be replaced: ``refresh`` catches up.

    Parameters
    ----------
    module
        Whose parameters.
    optimizers
        Who may hold them.
    record
        Where to write.
    """

    def __init__(self, module: nn.Module, optimizers: list[Any], record: Record) -> None:
        self.module, self.optimizers, self.record = module, optimizers, record
        self.named: dict[str, nn.Parameter] = {}
        self.names: dict[int, str] = {}
        self._start: dict[str, Tensor] = {}
        self._strangers: dict[int, tuple[Any, Tensor]] = {}
        self.elsewhere: set[int] = set()  # ids of what other doctors watch

    def refresh(self) -> None:
        """Look for parameters that were added, replaced, removed or set free."""
        for weight in self.record.weights:
            weight.trainable = weight.trainable or self.named[weight.name].requires_grad
        if list(map(id, self.module.parameters())) == list(self.names):
            return
        found = named_parameters(self.module)
        new = {n: p for n, p in found.items() if self.named.get(n) is not p}
        if not new and len(found) == len(self.named):
            return
        self.named, self.names = found, {id(p): name for name, p in found.items()}
        self._start.update(sample(new, STARTED))
        owners = _owners(self.module)
        known = {weight.name: weight for weight in self.record.weights}
        known |= {name: _weight(name, p, owners.get(name, "")) for name, p in new.items()}
        self.record.weights = [known[name] for name in found]
        self.find_optimized()

    def find_recurrent(self, calls: Iterable[str]) -> None:
        """Take the spectral radius of layers that are called more than once in one pass.

        Eigenvalues of many large matrices take long; of most layers nobody asks for them.
        """
        several = {layer for layer, n in Counter(calls).items() if n > 1}
        for weight in self.record.weights:
            known = weight.radius is not None or weight.name not in self.named
            if not known and weight.name.rpartition(".")[0] in several:
                weight.radius = spectral_radius(self.named[weight.name])

    def find_optimized(self) -> None:
        """Note which parameters some optimizer holds: groups may be added at any time."""
        held = _held(self.optimizers)
        for weight in self.record.weights:
            there = not self.optimizers or id(self.named[weight.name]) in held
            weight.optimized = weight.optimized or there

    def held_by(self, *optimizers: Any) -> dict[str, nn.Parameter]:
        """Those that some of these optimizers hold."""
        held = _held(optimizers)
        return {name: p for name, p in self.named.items() if id(p) in held}

    def with_gradient(self) -> dict[str, nn.Parameter]:
        """Those whose gradient is there."""
        return {name: p for name, p in self.named.items() if p.grad is not None}

    def meet(self, strangers: Iterable[Tensor]) -> None:
        """Remember parameters of the graph that the module does not know."""
        for parameter in strangers:
            if id(parameter) not in self._strangers:
                before = sample({"": parameter}, STARTED)[""]  # type: ignore[dict-item]
                self._strangers[id(parameter)] = (parameter, before)

    def conclude(self) -> None:
        """Measure the end state of what was trained: what came after the last look was not."""
        held = _held(self.optimizers)
        still = [
            not moved(before, p, STARTED)
            for p, before in self._strangers.values()
            if id(p) not in held | self.elsewhere
        ]
        # Where some move, another network with an optimizer of its own is trained beside.
        self.record.final["strangers_still"] = float(all(still) * len(still))
        self.find_optimized()
        for weight in self.record.weights:
            parameter = self.named[weight.name]
            weight.moved = moved(self._start[weight.name], parameter, STARTED)
            weight.travelled = travelled(self._start[weight.name], parameter, STARTED)
            # One that moved was set free since the last look.
            weight.trainable = weight.trainable or bool(weight.moved)
            frozen = weight.moved is False and not weight.trainable
            weight.fresh = frozen and looks_fresh(parameter)
            if weight.rows_equal_at_start:
                weight.rows_equal_at_end = equal_rows(parameter)
        broken = len(self.named) - sum(all_finite(list(self.named.values())))
        self.record.final["broken_parameters"] = float(broken)


def named_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters by name, without the prefixes of wrappers; those not made yet left out."""
    found: dict[str, nn.Parameter] = {}
    for name, parameter in module.named_parameters():
        if not isinstance(parameter, nn.parameter.UninitializedParameter):
            short = plain(name)
            found[name if short in found else short] = parameter
    return found


def plain(name: str) -> str:
    """Drop what ``torch.compile`` and distributed wrappers put before a name.

    >>> plain("_orig_mod.module.fc.weight")
    'fc.weight'
    """
    parts = [p for p in name.split(".") if p not in ("_orig_mod", "_fsdp_wrapped_module")]
    return ".".join(parts[1:] if parts[:1] == ["module"] and len(parts) > 1 else parts)


def _owners(module: nn.Module) -> dict[str, str]:
    return {
        plain(f"{name}.{own}" if name else own): type(part).__name__
        for name, part in module.named_modules()
        for own, _ in part.named_parameters(recurse=False)
    }


def _weight(name: str, parameter: nn.Parameter, owner: str) -> Weight:
    matrix = parameter.ndim >= 2 and parameter.shape[0] > 1
    rows = equal_rows(parameter) if matrix else None
    shape, trainable = tuple(parameter.shape), parameter.requires_grad
    radius = spectral_radius(parameter) if owner in RECURRENT else None
    return Weight(name, shape, trainable, False, owner, rows, radius=radius)


def _held(optimizers: Iterable[Any]) -> set[int]:
    return {id(p) for o in optimizers for group in o.param_groups for p in group["params"]}
