"""Networks of saved models: outlined without memory, compared with the file, then built.

A file of a few kilobytes can ask for any size and any depth. So the network is built on torch's
``meta`` device first, with no more parts than the tensors of the file can fill, and only a network
whose shapes are those of the file is given memory.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

from castalia.errors import CheckpointMismatch
from castalia.utils.seeds import seed_scope

__all__ = ["rebuilt"]

FEW, EACH = 2_000, 50  # parts that any network may have, and more for each tensor of its file
SPARE = 2**26  # bytes of tensors that are computed, not saved, such as positions


def rebuilt(build: Callable[[], nn.Module], weights: Mapping[str, Tensor], owner: str) -> nn.Module:
    """Return the network that ``build`` makes, with these tensors, in their dtypes.

    Raises
    ------
    CheckpointMismatch
        When the network asks for other tensors, or for far more parts or memory, than the file
        has; nothing of its size was allocated then.
    """
    with seed_scope(0):  # initialisation draws random numbers; the caller's stay as they were
        with (
            torch.device("meta"),
            _at_most(FEW + EACH * len(weights), owner),
            warnings.catch_warnings(),
        ):
            # A network that begins with the weights of another has no place for them yet.
            warnings.filterwarnings("ignore", ".*copying from a non-meta parameter")
            outline = build()
        _check(outline, weights, owner)
        module = build()
    _fill(module, weights)
    return module


@contextmanager
def _at_most(parts: int, owner: str) -> Iterator[None]:
    """Refuse to put more modules and parameters than that into networks, in this thread."""
    thread, count = threading.get_ident(), 0

    def added(*_: Any) -> None:
        nonlocal count
        count += threading.get_ident() == thread
        if count > parts:
            raise CheckpointMismatch(
                f"castalia.load: the network of `{owner}` must have no more layers than the file "
                f"has tensors for; got more than {parts:,} parts."
            )

    hooks = [
        register_module_module_registration_hook(added),
        register_module_parameter_registration_hook(added),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _check(outline: nn.Module, weights: Mapping[str, Tensor], owner: str) -> None:
    """Compare names, shapes and memory of a network with the tensors of a file."""
    wanted = outline.state_dict()
    wrong = [f"`{name}` is missing" for name in wanted if name not in weights]
    wrong += [f"`{name}` is unknown to it" for name in weights if name not in wanted]
    for name in [name for name in wanted if name in weights]:
        ours, theirs = wanted[name], weights[name]
        if isinstance(ours, Tensor) and getattr(theirs, "shape", None) != ours.shape:
            shape = tuple(getattr(theirs, "shape", ()))
            wrong.append(f"`{name}` must have shape {tuple(ours.shape)}; got {shape}")
    if not wrong and _bytes(outline) > 4 * sum(t.nbytes for t in weights.values()) + SPARE:
        wrong.append(f"{_bytes(outline):,} bytes of it are not in the file")
    if wrong:
        raise CheckpointMismatch(
            f"castalia.load: the weights do not fit the network of `{owner}`: "
            f"{'; '.join(wrong[:3])}"
            f"{f'; and {len(wrong) - 3} more' if len(wrong) > 3 else ''}."
        )


def _bytes(module: nn.Module) -> int:
    return sum(t.nbytes for t in [*module.parameters(), *module.buffers()])


def _fill(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy the saved tensors into a network, in the dtypes they were saved in."""
    for name, slot in [*module.named_parameters(), *module.named_buffers()]:
        if name in weights and slot.dtype != weights[name].dtype:
            slot.data = slot.data.to(weights[name].dtype)
    kind = next((v.dtype for v in weights.values() if v.is_floating_point()), None)
    for name, buffer in module.named_buffers():  # what is not saved gets the same format
        if name not in weights and kind is not None and buffer.is_floating_point():
            buffer.data = buffer.data.to(kind)
    module.load_state_dict(weights, strict=True)
