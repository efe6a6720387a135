"""Keys and values of the tokens seen so far, so that a new token costs one token's work.

Everything has its final size from the start and the position is a tensor on the device: a decode
step has the same shapes every time and reads nothing back, so it can be recorded as a CUDA graph.
Shapes: B batch, H heads, T slots, D width of a head.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from castalia.errors import InvalidData
from castalia.nn.attention.attention_masks import Mask, additive, causal

__all__ = ["Cache", "LayerCache"]

ALIGNED = 16  # fused attention copies masks whose rows do not begin at such multiples


class LayerCache:
    """Keys and values of one attention, (B, H, T, D), and those of a memory it attends to."""

    def __init__(
        self, batch: int, heads: int, length: int, head_dim: int, device: Any, dtype: torch.dtype
    ) -> None:
        shape = (batch, heads, length, head_dim)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.memory: tuple[Tensor, Tensor] | None = None

    def reorder(self, rows: Tensor) -> None:
        """Let row b go on from what was row ``rows[b]``."""
        self.keys.copy_(self.keys.index_select(0, rows))
        self.values.copy_(self.values.index_select(0, rows))
        if self.memory is not None:
            for kept in self.memory:
                kept.copy_(kept.index_select(0, rows))


class Cache:
    """What a decoder keeps of the tokens it has seen.

    Parameters
    ----------
    depth
        Number of attentions.
    batch
        Rows.
    heads, head_dim
        Of each attention.
    length
        Slots; the most tokens a row can have.
    keep
        Which of the first tokens are real, (B, P); None: all. Prompts of several lengths are padded
        on the left.
    device, dtype
        Of the keys and values.

    Attributes
    ----------
    position
        Slots in use, a tensor without dimensions on the device.
    slots, keys_at, mask
        Of the tokens between ``begin`` and ``advance``: where they go, (Q,); where their keys
        stand, (K,); and which they see, a rule or what is added to the scores.

    Examples
    --------
    >>> cache = Cache(2, batch=1, heads=4, head_dim=8, length=16)
    >>> cache.begin(3)
    >>> cache.slots
    tensor([0, 1, 2])
    >>> cache.advance()
    >>> cache.begin(1)
    >>> cache.slots
    tensor([3])
    """

    def __init__(
        self,
        depth: int,
        *,
        batch: int,
        heads: int,
        head_dim: int,
        length: int,
        keep: Tensor | None = None,
        device: Any = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.length = length
        slots = -(-length // ALIGNED) * ALIGNED
        self.layers = [
            LayerCache(batch, heads, slots, head_dim, device, dtype) for _ in range(depth)
        ]
        self.position = torch.zeros((), dtype=torch.long, device=device)
        self.seen = 0  # what the host knows; a replayed graph moves `position` only
        self.all_slots = torch.arange(slots, device=device)
        self.slots = self.keys_at = self.all_slots  # of the new tokens, and of their keys
        self.mask: Any = causal()  # a rule, or what is added to the scores
        self.keep: Tensor | None = None  # (B, T): slots that hold, or will hold, a real token
        self.skipped: Tensor | None = None  # (B, 1): padding before the first real token
        if keep is not None:
            rest = keep.new_ones(batch, slots - keep.shape[1])
            self.keep = torch.cat([keep.bool(), rest.bool()], dim=1)
            self.skipped = (~keep.bool()).sum(dim=1, keepdim=True)

    @property
    def empty(self) -> bool:
        """Whether nothing has been seen yet."""
        return self.seen == 0

    def begin(self, count: int, rule: Mask | None = None) -> None:
        """Find the slots of the next tokens, and which keys they see, once for all layers.

        At the first call the keys are the tokens themselves, so that a long prompt takes the fast
        way; later they are all slots, and those not yet filled are masked.

        Parameters
        ----------
        count
            Number of new tokens.
        rule
            Which slots a slot sees; None: the causal rule.
        """
        if self.seen + count > self.length:
            raise InvalidData(
                f"Cache: must have room for {self.seen + count} tokens; got length={self.length}. "
                "Make a longer one."
            )
        self.slots = self.position + self.all_slots[:count]
        self.keys_at = self.all_slots[:count] if self.empty else self.all_slots
        self.mask = causal() if rule is None else rule
        if not self.empty or self.keep is not None:
            seen = self.mask.at(self.slots, self.keys_at)  # (Q, K) or (B, 1, Q, K)
            if rule is not None:
                seen = seen & (self.keys_at <= self.slots[-1])
            if self.keep is not None:
                seen = seen & self.keep[:, None, None, : len(self.keys_at)]  # (B, 1, Q, K)
            self.mask = additive(seen, self.layers[0].keys.dtype)

    def positions(self) -> Tensor:
        """Return the positions of the new tokens, (Q,) or (B, Q), padding not counted."""
        return self.slots if self.skipped is None else (self.slots - self.skipped).clamp(min=0)

    def remember(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keep (B, H, Q, D) of the new tokens; return all keys and values they attend to."""
        kept = self.layers[layer]
        kept.keys.index_copy_(2, self.slots, keys.to(kept.keys.dtype))
        kept.values.index_copy_(2, self.slots, values.to(kept.values.dtype))
        return (keys, values) if self.empty else (kept.keys, kept.values)

    def advance(self) -> None:
        """Count the new tokens as seen, after all layers have kept theirs."""
        self.position.add_(len(self.slots))
        self.seen += len(self.slots)

    def rewind(self, position: int) -> None:
        """Forget everything from a slot on; later tokens overwrite it."""
        self.position.fill_(position)
        self.seen = position

    def restart(self, keep: Tensor | None) -> None:
        """Forget everything; ``keep``, of the same shape as before, says which tokens are real."""
        self.rewind(0)
        if keep is not None and self.keep is not None and self.skipped is not None:
            self.keep[:, : keep.shape[1]] = keep
            self.skipped.copy_((~keep).sum(dim=1, keepdim=True))

    def reorder(self, rows: Tensor) -> None:
        """Let row b go on from what was row ``rows[b]``, as beam search needs."""
        for layer in self.layers:
            layer.reorder(rows)
        if self.keep is not None and self.skipped is not None:
            self.keep.copy_(self.keep.index_select(0, rows))
            self.skipped.copy_(self.skipped.index_select(0, rows))
