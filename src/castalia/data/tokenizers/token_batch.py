"""Token ids of several texts as one padded array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from castalia.errors import InvalidData, InvalidParameter

__all__ = ["TokenBatch", "pad_batch"]


class TokenBatch(NamedTuple):
    """Padded ids and where they are real.

    Attributes
    ----------
    ids : ndarray of int64, (B, T)
    mask : ndarray of bool, (B, T)
        True where there is a token, False where there is padding.
    """

    ids: np.ndarray
    mask: np.ndarray


def pad_batch(
    rows: Sequence[Sequence[int]],
    pad: int,
    *,
    length: int | None = None,
    side: str = "right",
    longer: str = "error",
) -> TokenBatch:
    """Pad rows of ids to one length.

    Parameters
    ----------
    rows
        Ids, one sequence a text.
    pad
        Id that fills up.
    length
        Length T; that of the longest row when None.
    side
        Where the padding goes: ``"right"`` or, for generation, ``"left"``.
    longer
        What happens to rows longer than ``length``: ``"error"``, or ``"cut"``, which keeps the
        beginning.

    Examples
    --------
    >>> pad_batch([[5, 6, 7], [8]], pad=0).ids.tolist()
    [[5, 6, 7], [8, 0, 0]]
    """
    if side not in ("right", "left"):
        raise InvalidParameter(f"batch: `side` must be `right` or `left`; got {side!r}.")
    if longer not in ("error", "cut"):
        raise InvalidParameter(f"batch: `longer` must be `error` or `cut`; got {longer!r}.")
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    width = int(sizes.max(initial=0)) if length is None else length
    if longer == "error" and (sizes > width).any():
        row = int(np.argmax(sizes > width))
        raise InvalidData(
            f"batch: a text must have at most {width} tokens; got {sizes[row]} in text {row}. Pass "
            'longer="cut" to keep the beginning, or cut the text in windows.'
        )
    sizes = np.minimum(sizes, width)
    mask = np.arange(width) < sizes[:, None]  # (B, T)
    mask = mask if side == "right" else mask[:, ::-1]
    ids = np.full(mask.shape, pad, dtype=np.int64)
    kept = [np.asarray(row[:width], dtype=np.int64) for row in rows]
    ids[mask] = np.concatenate(kept) if kept else []
    return TokenBatch(ids, np.ascontiguousarray(mask))
