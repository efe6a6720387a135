"""Random numbers that stay inside a scope.

``random_state`` in Castalia is local: inside ``seed_scope`` torch draws from our seed, and on
leaving it the caller's generators are as they were.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.utils.process_lock import exclusive

if TYPE_CHECKING:
    import torch

_MASK = 2**64 - 1

__all__ = ["derive", "generator", "seed_from", "seed_scope"]


def seed_from(random_state: Any) -> int:
    """Turn a ``random_state`` into an integer seed; None asks the operating system.

    >>> seed_from(7)
    7
    """
    if random_state is None:
        return secrets.randbits(31)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**31 - 1))
    try:
        return int(random_state)
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"seed_from: `random_state` must be a whole number, a generator of numpy or None; got "
            f"{random_state!r}."
        ) from None


def derive(seed: int, *path: int) -> int:
    """Derive an independent seed for a numbered part, such as an epoch.

    >>> derive(0, 1) != derive(0, 2)
    True
    """
    state = seed if path else _mix(seed)
    for part in path:
        state = _mix(state ^ _mix(part + 1))
    return state >> 1


def _mix(z: int) -> int:
    """Scramble 64 bits (the finaliser of SplitMix64: Steele, Lea, Flood 2014)."""
    z = (z + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def generator(seed: int, *path: int, device: Any = "cpu") -> torch.Generator:
    """Return a generator for a numbered part."""
    import torch

    return torch.Generator(device).manual_seed(derive(seed, *path))


@contextmanager
def seed_scope(seed: int, device: Any = "cpu") -> Iterator[None]:
    """Seed torch inside the scope and put every generator back afterwards; one thread at a time."""
    import torch

    on_cuda = torch.device(device).type == "cuda"
    with exclusive(), torch.random.fork_rng(devices=[]):
        kept = torch.cuda.get_rng_state(device) if on_cuda else None
        torch.default_generator.manual_seed(seed)
        if on_cuda:
            torch.cuda.manual_seed(seed)
        try:
            yield
        finally:
            if kept is not None:
                with suppress(RuntimeError):  # of a GPU that failed: the scope's own error says so
                    torch.cuda.set_rng_state(kept, device)
