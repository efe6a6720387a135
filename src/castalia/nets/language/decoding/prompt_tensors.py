"""Prompts as tensors, and networks of one or two parts read in one way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from castalia.errors import InvalidData, InvalidParameter
from castalia.nn.attention import Cache

__all__ = ["Prompt", "Reader", "as_prompt"]


@dataclass(frozen=True)
class Prompt:
    """Tokens, (B, P), and which of them are real; None: all."""

    ids: Tensor
    keep: Tensor | None = None


def as_prompt(ids: Any, keep: Tensor | None, device: torch.device) -> Prompt:
    """Return prompts as one tensor on the device, padded on the left where lengths differ.

    Parameters
    ----------
    ids
        A tensor (B, P), or one list of tokens a row.
    keep
        Which tokens of a tensor are real.
    device
        Where the network is.
    """
    if not isinstance(ids, Tensor):
        return _from_lists(ids, device)
    if ids.ndim != 2 or ids.is_floating_point():
        raise InvalidData(
            "generate: `ids` must be whole numbers (B, P), or a list of tokens a row; got a tensor "
            f"of shape {tuple(ids.shape)} and type {ids.dtype}."
        )
    if ids.numel() == 0:
        raise _empty()
    if keep is None:
        return Prompt(ids.to(device))
    keep = keep.bool().to(device)
    if keep.shape != ids.shape:
        raise InvalidData(
            f"generate: `keep` must have the shape of `ids`, {tuple(ids.shape)}; got "
            f"{tuple(keep.shape)}."
        )
    if not keep.any(dim=1).all():
        raise _empty()
    return _to_the_left(ids.to(device), keep)


def _from_lists(rows: Sequence[Sequence[int]], device: torch.device) -> Prompt:
    if not len(rows) or any(not len(row) for row in rows):
        raise _empty()
    longest = max(len(row) for row in rows)
    table = [[0] * (longest - len(row)) + list(row) for row in rows]  # 0 is never seen
    lengths = torch.tensor([len(row) for row in rows], device=device)
    ids = torch.tensor(table, dtype=torch.long, device=device)
    if (lengths == longest).all():
        return Prompt(ids)
    return Prompt(ids, torch.arange(longest, device=device) >= longest - lengths[:, None])


def _to_the_left(ids: Tensor, keep: Tensor) -> Prompt:
    """Move padding to the left; the order of real tokens stays."""
    if keep.all():
        return Prompt(ids)
    order = keep.long().argsort(dim=1, stable=True)
    return Prompt(ids.gather(1, order), keep.gather(1, order))


def _empty() -> InvalidData:
    return InvalidData(
        "generate: every prompt must have at least one token; got an empty one. Begin it with the "
        "token that starts a text."
    )


class Reader:
    """A network as a map from tokens to the scores of the next one.

    A network with ``features`` reads prompt and continuation as one text. One with ``encode`` and
    ``decode`` reads the prompt once and writes an answer that begins with the token ``start``.
    """

    def __init__(self, net: Any, prompt: Prompt, start: int | None) -> None:
        self.net = net
        self.memory: Tensor | None = None
        self.first = prompt
        if not hasattr(net, "encode"):
            return
        if start is None:
            raise InvalidParameter(
                f"generate: `start` must be the token an answer of {type(net).__name__} begins "
                "with; got None."
            )
        self.memory, self.memory_keep = self.net.encode(prompt.ids, keep=prompt.keep), prompt.keep
        self.first = Prompt(torch.full_like(prompt.ids[:, :1], start))

    def repeat(self, times: int) -> None:
        """Let each row stand ``times`` times, one after the other, as beams need."""
        keep = self.first.keep
        self.first = Prompt(
            self.first.ids.repeat_interleave(times, dim=0),
            None if keep is None else keep.repeat_interleave(times, dim=0),
        )
        if self.memory is not None:
            self.memory = self.memory.repeat_interleave(times, dim=0)
            if self.memory_keep is not None:
                self.memory_keep = self.memory_keep.repeat_interleave(times, dim=0)

    def cache(self, tokens: int) -> Cache:
        """Return a cache with room for the first tokens and so many more."""
        rows, length = self.first.ids.shape
        return self.net.cache(rows, length + tokens, keep=self.first.keep)

    def __call__(self, ids: Tensor, keep: Tensor | None, cache: Cache | None) -> Tensor:
        """Return the scores of the token after the last, (B, V), in single or double precision."""
        if self.memory is None:
            seen = {"keep": keep} if cache is None else {"cache": cache}
            h = self.net.features(ids, **seen)
        else:
            h = self.net.decode(ids, self.memory, memory_keep=self.memory_keep, cache=cache)
        logits: Tensor = self.net.head(h[:, -1])
        return logits if logits.dtype == torch.float64 else logits.float()
