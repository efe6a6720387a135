"""The last recorded generation of each network, for a call of the same sizes to replay.

Recording costs a few tokens' time at every call otherwise. A recording reads weights where they
lie, so it holds as long as they are changed in place; it is let go when one of them moves, when a
call has other sizes, and with the network. One with a very large cache is not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from castalia.nets.language.decoding.decode_loop import Loop
from castalia.nets.language.decoding.fused_decode import fused_step
from castalia.nets.language.decoding.prompt_tensors import Reader
from castalia.nets.language.decoding.token_picker import Picker

__all__ = ["recorded_loop"]

ROOM = 64  # new tokens are counted in such steps, so that calls of nearly equal sizes share
MOST = 1 << 30  # bytes of keys and values that are kept
_KEPT: WeakKeyDictionary[nn.Module, tuple[Any, Loop]] = WeakKeyDictionary()


@contextmanager
def recorded_loop(read: Reader, pick: Picker, tokens: int, stop: tuple[int, ...]) -> Iterator[Loop]:
    """Lend a loop with a cache; what it records is kept for the next call."""
    net, sizes, fused = read.net, None, tokens >= ROOM  # fewer would not be worth compiling for
    if read.first.ids.is_cuda and read.memory is None:
        tokens = _room(net, read, tokens)
        sizes = (*_sizes(net, read), pick, tokens, stop, fused)
    kept = _KEPT.pop(net, None)  # nobody else replays it meanwhile
    if kept is not None and sizes is not None and kept[0] == sizes:
        loop = kept[1]
        loop.restart(read)
    else:
        del kept  # its memory serves the new one
        cache = read.cache(tokens)
        loop = Loop(read, pick, room=tokens, stop=stop, cache=cache)
        if sizes is not None and fused:
            loop.fused = fused_step(net, cache)
    yield loop
    if sizes is not None and loop.graph is not None and _bytes(loop) <= MOST:
        del loop.read  # it holds the network, which would then live for ever
        _KEPT[net] = (sizes, loop)


def _bytes(loop: Loop) -> int:
    layers = [] if loop.cache is None else loop.cache.layers
    return sum(layer.keys.nbytes + layer.values.nbytes for layer in layers)


def _room(net: nn.Module, read: Reader, tokens: int) -> int:
    context = getattr(net, "context", None)
    room = -(-tokens // ROOM) * ROOM
    return room if context is None else min(room, context + 1 - read.first.ids.shape[1])


def _sizes(net: nn.Module, read: Reader) -> tuple[Any, ...]:
    """Return what a recording depends on besides the settings of a call."""
    first = read.first
    where = tuple((w.data_ptr(), w.dtype) for w in (*net.parameters(), *net.buffers()))
    return tuple(first.ids.shape), first.keep is None, torch.is_autocast_enabled("cuda"), where
