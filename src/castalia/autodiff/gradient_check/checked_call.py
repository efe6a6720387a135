"""A call copied into float64, whose numbers can be moved one at a time.

The caller's modules, tensors and random states are not touched: modules are deep copies, every
evaluation starts from the same seeds and the same buffers.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from castalia.autodiff.arguments import held_modules
from castalia.autodiff.gradient_check.double_copies import copies, odd_embeddings, wide
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.seeds import derive, generator

__all__ = ["Subject"]


class Subject:
    """What is checked: a scalar function of named float64 tensors.

    The scalar is a fixed random combination of all floating point outputs, so that one backward
    pass sees every one of them.

    Attributes
    ----------
    leaves
        Trainable parameters and floating point inputs of the copy, by name.
    skipped
        What is not checked, with the reason.
    entries
        For each leaf the flat positions that may be checked.
    """

    def __init__(self, fn: Callable[..., Any], inputs: Sequence[Any], seed: int) -> None:
        if not callable(fn):
            raise InvalidParameter(
                f"check_gradients: `fn` must be a function or a module; got {type(fn).__name__}."
            )
        self.seed = seed
        originals = held_modules(fn, inputs)
        self._modules = copies(originals)
        self._copy_of = {id(m): c for m, c in zip(originals, self._modules, strict=True)}
        self._fn = self._own(fn)
        self._inputs = [self._own(value) for value in inputs]
        self._buffers = [(b, b.clone()) for m in self._modules for b in m.buffers()]
        self._weights: dict[tuple[int, torch.Size], Tensor] = {}
        self._bounded: dict[int, Tensor] = {}
        self.leaves: dict[str, Tensor] = {}
        self.skipped: dict[str, str] = {}
        self.entries: dict[str, Tensor] = {}
        self._name_everything(_argument_names(fn, len(inputs)))
        self._gpus = sorted({leaf.device.index for leaf in self.leaves.values() if leaf.is_cuda})
        if not self.leaves:
            raise InvalidData(
                "check_gradients: there must be a trainable parameter or a floating point input to "
                f"check; got {self.skipped or 'none'}. Pass modules that `fn` uses as inputs."
            )

    # ---- copying ----

    def _own(self, value: Any) -> Any:
        """Replace modules by their copies and tensors by float64 copies."""
        if isinstance(value, nn.Module):
            return self._copy_of[id(value)]
        if isinstance(value, Tensor):
            found = value.detach().clone(memory_format=torch.contiguous_format)
            return wide(found).requires_grad_() if found.is_floating_point() else found
        if isinstance(value, MethodType) and isinstance(value.__self__, nn.Module):
            return MethodType(value.__func__, self._copy_of[id(value.__self__)])
        return _mapped(self._own, value)

    def _name_everything(self, arguments: Sequence[str]) -> None:
        named = dict(zip(arguments, self._inputs, strict=True))
        home = {id(value): name for name, value in named.items()}
        for module in self._modules:
            self._add_module(module, home.get(id(module), ""))
        for name, value in named.items():
            self._add_tensors(name, value)

    def _add_module(self, module: nn.Module, prefix: str) -> None:
        odd = odd_embeddings(module)
        for key, p in module.named_parameters():
            name = f"{prefix}.{key}" if prefix else key
            row, why = odd.get(key, (None, ""))
            if p.is_complex():
                why = f"{p.dtype} is not checked"
            if not p.requires_grad or why:
                self.skipped[name] = why or "not trainable"
            elif not any(p is leaf for leaf in self.leaves.values()):
                self._add_leaf(name, p)
                if row is not None:  # the row of the padding has no gradient, by design
                    places = torch.arange(p.numel()).view(p.shape)
                    self.entries[name] = torch.cat([places[:row], places[row + 1 :]]).reshape(-1)

    def _add_tensors(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and value.is_floating_point():
            self._add_leaf(name, value)
        elif isinstance(value, Tensor):
            no = "is not checked" if value.is_complex() else "has no derivative"
            self.skipped[name] = f"{value.dtype} {no}"
        elif isinstance(value, Mapping):
            for key, part in value.items():
                self._add_tensors(f"{name}.{key}", part)
        elif isinstance(value, list | tuple):
            for i, part in enumerate(value):
                self._add_tensors(f"{name}.{i}", part)

    def _add_leaf(self, name: str, leaf: Tensor) -> None:
        self.leaves[name] = leaf
        self.entries[name] = torch.arange(leaf.numel())

    # ---- evaluating ----

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Keep the caller's random states and default type; inside, new tensors are float64."""
        states = random.getstate(), np.random.get_state()
        dtype = torch.get_default_dtype()
        with torch.random.fork_rng(devices=self._gpus):
            torch.set_default_dtype(torch.float64)
            try:
                yield
            finally:
                torch.set_default_dtype(dtype)
                random.setstate(states[0])
                np.random.set_state(states[1])

    def scalar(self) -> Tensor:
        """Return the weighted sum of the outputs."""
        return torch.stack([term.sum().double() for term in self.terms()]).sum()

    def terms(self) -> list[Tensor]:
        """Call the copy, from the same seeds and buffers as always, and weight its outputs."""
        torch.default_generator.manual_seed(self.seed)
        for gpu in self._gpus:
            torch.cuda.default_generators[gpu].manual_seed(self.seed)
        random.seed(self.seed)
        np.random.seed(self.seed % 2**32)
        with torch.no_grad():
            for buffer, first in self._buffers:
                buffer.copy_(first)
        outputs = list(_floating(self._fn(*(_cloned(value) for value in self._inputs))))
        if not outputs:
            raise InvalidData(
                "check_gradients: `fn` must return a tensor of a floating point type, or several "
                "in a tuple or mapping; got none."
            )
        return [self._weighted(i, out) for i, out in enumerate(outputs)]

    def value(self) -> float:
        """Return the scalar as a number; infinite if every output is."""
        found = self.scalar().item()
        return found if any(b.any() for b in self._bounded.values()) else float("inf")

    def gradient(self) -> dict[str, Tensor | None]:
        """Return what autograd says; None where it sees no path."""
        value = self.scalar()
        if not value.requires_grad:
            return dict.fromkeys(self.leaves)
        found = torch.autograd.grad(value, list(self.leaves.values()), allow_unused=True)
        dense = [g.to_dense() if g is not None and g.is_sparse else g for g in found]
        return dict(zip(self.leaves, dense, strict=True))

    def measure(self) -> tuple[float, float]:
        """Return the size of the terms of the scalar and the precision they were computed in.

        Rounding errors of the terms are independent: they add up like squares.
        """
        with _LowestPrecision() as seen:
            terms = self.terms()
        size = torch.stack([term.detach().double().square().sum() for term in terms]).sum().sqrt()
        return size.item(), torch.finfo(seen.dtype).eps

    def _weighted(self, i: int, out: Tensor) -> Tensor:
        if i not in self._bounded:
            self._bounded[i] = ~out.detach().isinf()
        bounded = self._bounded[i]
        if bounded.shape == out.shape and not bounded.all():  # masked scores: -inf takes no part
            out = torch.where(bounded, out, 0.0)
        return self._weight(i, out) * out

    def _weight(self, i: int, out: Tensor) -> Tensor:
        """Draw weights between 1/2 and 3/2 of either sign; a single number has weight one."""
        if out.numel() == 1:
            return torch.ones_like(out)
        key = (i, out.shape)
        if key not in self._weights:
            source = generator(self.seed, i)
            draw = torch.rand(2, *out.shape, generator=source, dtype=torch.float64)
            self._weights[key] = ((draw[0] + 0.5) * (draw[1] - 0.5).sign()).to(out.device)
        return self._weights[key].to(out.dtype)

    # ---- moving ----

    def at(self, name: str, entry: int) -> Callable[[float], float]:
        """Return the scalar as a function of a step of one entry."""
        flat = self.leaves[name].data.view(-1)
        old = flat[entry].clone()

        def moved(step: float) -> float:
            flat[entry] = old + step
            try:
                return self.value()
            finally:
                flat[entry] = old

        return moved

    def along(self, name: str, direction: Tensor) -> Callable[[float], float]:
        """Return the scalar as a function of a step along a direction of one leaf."""
        leaf = self.leaves[name].data
        old = leaf.clone()

        def moved(step: float) -> float:
            leaf.copy_(old + step * direction)
            try:
                return self.value()
            finally:
                leaf.copy_(old)

        return moved

    @contextmanager
    def neighbour(self, number: int) -> Iterator[None]:
        """Move every leaf a little, away from kinks, for the time of the scope."""
        old = [leaf.data.clone() for leaf in self.leaves.values()]
        for i, leaf in enumerate(self.leaves.values()):
            source = generator(derive(self.seed, number), i)
            noise = torch.randn(leaf.shape, generator=source, dtype=torch.float64).to(leaf.device)
            leaf.data.add_(noise * (0.01 * leaf.data.abs() + 0.003))
        try:
            yield
        finally:
            for leaf, first in zip(self.leaves.values(), old, strict=True):
                leaf.data.copy_(first)


class _LowestPrecision(TorchFunctionMode):
    """Notes the coarsest floating point type that a computation passes through."""

    dtype = torch.float64

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, Tensor) and found.is_floating_point():
            self.dtype = max(self.dtype, found.dtype, key=lambda d: torch.finfo(d).eps)
        return found


def _argument_names(fn: Callable[..., Any], count: int) -> list[str]:
    """Return the names of the first arguments of a call."""
    try:
        signature = inspect.signature(fn.forward if isinstance(fn, nn.Module) else fn)
    except (TypeError, ValueError):
        return [f"inputs[{i}]" for i in range(count)]
    plain = [p.name for p in signature.parameters.values() if p.kind < p.VAR_POSITIONAL]
    return (plain + [f"inputs[{i}]" for i in range(len(plain), count)])[:count]


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """Apply a change inside lists, tuples and dicts."""
    if isinstance(value, Mapping):
        return {key: change(part) for key, part in value.items()}
    if isinstance(value, list):
        return [change(part) for part in value]
    if isinstance(value, tuple):
        parts = [change(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _cloned(value: Any) -> Any:
    """Clone tensors, so that a function that works in place does not reach the leaves."""
    return value.clone() if isinstance(value, Tensor) else _mapped(_cloned, value)


def _floating(value: Any) -> Iterator[Tensor]:
    """Yield the floating point tensors of an output."""
    if isinstance(value, Tensor):
        if value.is_floating_point() and value.numel():
            yield value
    elif isinstance(value, Mapping):
        yield from (t for part in value.values() for t in _floating(part))
    elif isinstance(value, list | tuple):
        yield from (t for part in value for t in _floating(part))
