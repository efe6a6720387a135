"""A function and the tensors it is differentiated by, whatever they are kept in.

One convention for all derivative tools: ``tool(fn, *inputs, wrt=0)`` differentiates
``fn(*inputs)`` by the inputs that ``wrt`` numbers. Such an input is a tensor (or a float), a
mapping of names to tensors, or a module, which stands for its trainable parameters; the answer has
the same shape, so for a module it is a dict by parameter name. Nothing that was passed in changes:
parameters and buffers are lent to the modules for the time of a call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel

from castalia.autodiff.functional_calls import call_with
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.utils.text import did_you_mean, listing

__all__ = ["Arguments", "duals", "filled", "held_modules"]


class _Scene(nn.Module):
    """Holds the modules of a call, so that ``call_with`` can lend them other tensors."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        super().__init__()
        self.held = nn.ModuleList(modules)

    def forward(self, fn: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        return fn(*inputs)


def held_modules(fn: Any, inputs: Sequence[Any]) -> list[nn.Module]:
    """Return the modules of a call: the function, its owner if it is a method, the inputs."""
    found = [fn, getattr(fn, "__self__", None), *inputs]
    return list({id(m): m for m in found if isinstance(m, nn.Module)}.values())


class Arguments:
    """What a call is differentiated by: ``leaves``, flat; ``pack`` gives them their shape back.

    Parameters
    ----------
    owner
        The public function that asks; its name begins every message.
    fn
        A function, a module or a method.
    inputs
        What ``fn`` is called with.
    wrt
        Number of the input to differentiate by, or several numbers.
    twice
        Whether second derivatives will be asked for.
    """

    def __init__(
        self,
        owner: str,
        fn: Callable[..., Any],
        inputs: Sequence[Any],
        wrt: int | Sequence[int] = 0,
        *,
        twice: bool = False,
    ) -> None:
        self.owner, self.fn, self.inputs, self.twice = owner, fn, inputs, twice
        if not callable(fn):
            raise InvalidParameter(
                f"{owner}: `fn` must be a function or a module; got {type(fn).__name__}."
            )
        self.single = isinstance(wrt, int)
        self.wrt = [self._position(i) for i in ([wrt] if isinstance(wrt, int) else wrt)]
        if len(set(self.wrt)) < len(self.wrt):
            raise InvalidParameter(f"{owner}: `wrt` must name each input once; got {wrt!r}.")
        self.scene = _Scene(held_modules(fn, inputs))
        groups = [self._tensors(i) for i in self.wrt]
        self.keys = [list(group) for group in groups]  # names inside each input
        self.names = [
            self._name(i, key) for i, group in zip(self.wrt, groups, strict=True) for key in group
        ]
        self.leaves = [self._leaf(*item) for group in groups for item in group.items()]

    # ---- reading what was asked ----

    def _position(self, i: Any) -> int:
        count = len(self.inputs)
        if not isinstance(i, int) or not -count <= i < count:
            raise InvalidParameter(
                f"{self.owner}: `wrt` must number one of the {count} inputs of `fn`; got {i!r}. "
                "Inputs are numbered from 0."
            )
        return i % count

    def _tensors(self, i: int) -> dict[str, Any]:
        """Return the tensors of an input by name; a lone tensor has the empty name."""
        value = self.inputs[i]
        if isinstance(value, nn.Module):
            found = {k: p for k, p in value.named_parameters() if p.requires_grad}
            if not found:
                raise InvalidData(
                    f"{self.owner}: the module at input {i} must have trainable parameters; got "
                    f"{type(value).__name__} with none. Set `requires_grad_(True)` on floating "
                    "point parameters, or differentiate by another input."
                )
            return found
        return dict(value) if isinstance(value, Mapping) else {"": value}

    def _name(self, i: int, key: str) -> str:
        return key or f"input {i}"

    def _leaf(self, key: str, value: Any) -> Tensor:
        name = f"`{key}`" if key else "what `wrt` names"
        if isinstance(value, float):
            value = torch.tensor(value, dtype=torch.float64)
        if not isinstance(value, Tensor):
            got = type(value).__name__
            remedy = "Write a number with a decimal point" if isinstance(value, int) else ""
            raise InvalidData(
                f"{self.owner}: {name} must be a floating point tensor, a mapping of tensors or "
                f"a module; got {got}. {remedy or 'Convert it with torch.as_tensor(…)'}."
            )
        if not value.is_floating_point():
            raise InvalidData(
                f"{self.owner}: {name} must be of a floating point type; got {value.dtype}. "
                "Convert it with `.double()`, or differentiate by another input."
            )
        return value.detach().clone().requires_grad_()

    # ---- calling ----

    def output(self, leaves: Sequence[Tensor]) -> Tensor:
        """Call the function on other values of the leaves; it must return one real tensor."""
        inputs, lent, at = list(self.inputs), self._buffers(), 0
        for i, keys in zip(self.wrt, self.keys, strict=True):
            values = dict(zip(keys, leaves[at : at + len(keys)], strict=True))
            at += len(keys)
            if isinstance(inputs[i], nn.Module):
                lent |= {f"{self._home(inputs[i])}{key}": value for key, value in values.items()}
            else:
                inputs[i] = values[""] if keys == [""] else values
        # fused attention has no second derivative, the plain one has
        with sdpa_kernel(SDPBackend.MATH) if self.twice else nullcontext():
            value = call_with(self.scene, lent, (self.fn, inputs))
        if not isinstance(value, Tensor) or not value.is_floating_point():
            got = value.dtype if isinstance(value, Tensor) else type(value).__name__
            hint = " Is a `return` missing?" if value is None else ""
            raise InvalidData(
                f"{self.owner}: `fn` must return a tensor of a floating point type; got {got}."
                f"{hint or ' Return the one tensor to differentiate.'}"
            )
        return value

    def scalar(self, leaves: Sequence[Tensor]) -> Tensor:
        """Call the function, which must return a single number."""
        value = self.output(leaves)
        if value.numel() != 1:
            raise ShapeMismatch(
                f"{self.owner}: `fn` must return one number; got shape {tuple(value.shape)}. Sum "
                "it, give `vjp` a seed `v` of that shape, or ask for the `jacobian`."
            )
        return value.reshape(())

    def _home(self, module: nn.Module) -> str:
        (at,) = [i for i, held in enumerate(self.scene.held) if held is module]
        return f"held.{at}."

    def _buffers(self) -> dict[str, Tensor]:
        """Copy the buffers, so that running statistics do not move."""
        return {name: b.clone() for name, b in self.scene.named_buffers()}

    # ---- differentiating ----

    def reverse(
        self,
        value: Tensor,
        seed: Tensor | None = None,
        *,
        create_graph: bool = False,
        allow_unused: bool = False,
    ) -> list[Tensor]:
        """Return the derivative of <seed, value> by every leaf; what is not used is an error."""
        found: Sequence[Tensor | None] = [None] * len(self.leaves)
        if value.requires_grad:
            found = torch.autograd.grad(
                value, self.leaves, seed, create_graph=create_graph, allow_unused=True
            )
        return self.complete(found, allow_unused)

    def complete(self, found: Sequence[Tensor | None], allow_unused: bool) -> list[Tensor]:
        """Refuse leaves that do not reach the output, or write their derivative as zeros."""
        unused = [name for name, g in zip(self.names, found, strict=True) if g is None]
        if unused and not allow_unused:
            raise InvalidData(
                f"{self.owner}: the output of `fn` must depend on everything it is differentiated "
                f"by; got no path to {listing(unused, last='and')}. Look for a `.detach()` or a "
                "branch that leaves it out, or pass allow_unused=True to count it as zero."
            )
        return filled(found, self.leaves)

    # ---- structure ----

    def pack(self, values: Sequence[Any]) -> Any:
        """Give flat values, one a leaf, the structure of what was differentiated by."""
        found, at = [], 0
        for i, keys in zip(self.wrt, self.keys, strict=True):
            part = values[at : at + len(keys)]
            at += len(keys)
            lone = not isinstance(self.inputs[i], Mapping | nn.Module)
            found.append(part[0] if lone else dict(zip(keys, part, strict=True)))
        return found[0] if self.single else tuple(found)

    def unpack(self, v: Any) -> list[Tensor]:
        """Flatten a direction that has the structure of what is differentiated by."""
        parts = [v] if self.single else list(v)
        if len(parts) != len(self.wrt):
            raise ShapeMismatch(
                f"{self.owner}: `v` must have one part for each input in `wrt`; got {len(parts)} "
                f"for {len(self.wrt)}."
            )
        flat = [
            self._part(part, key)
            for part, keys in zip(parts, self.keys, strict=True)
            for key in keys
        ]
        return [self._fits(*item) for item in zip(self.names, flat, self.leaves, strict=True)]

    def _part(self, part: Any, key: str) -> Any:
        if not key or not isinstance(part, Mapping):
            return part
        if key not in part:
            raise InvalidData(
                f"{self.owner}: `v` must have an entry for `{key}`; got "
                f"{listing(part, last='and')}.{did_you_mean(key, map(str, part))}"
            )
        return part[key]

    def _fits(self, name: str, value: Any, leaf: Tensor) -> Tensor:
        if not isinstance(value, Tensor | float | int | Sequence | np.ndarray):
            raise InvalidData(
                f"{self.owner}: `v` must be a tensor of the shape {tuple(leaf.shape)} of `{name}`; "
                f"got {type(value).__name__}."
            )
        value = torch.as_tensor(value).detach().to(leaf)
        if value.shape != leaf.shape:
            raise ShapeMismatch(
                f"{self.owner}: `v` must have the shape {tuple(leaf.shape)} of `{name}`; got "
                f"{tuple(value.shape)}."
            )
        return value


def duals(leaves: Sequence[Tensor], direction: Sequence[Tensor]) -> list[Tensor]:
    """Pair values with their tangents, inside a dual level."""
    with warnings.catch_warnings():  # torch's first use of forward mode warns of its own code
        warnings.simplefilter("ignore", DeprecationWarning)
        return [forward_ad.make_dual(x, d) for x, d in zip(leaves, direction, strict=True)]


def filled(found: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor]:
    """Write a missing derivative as zeros."""
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, like, strict=True)]
