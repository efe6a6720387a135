"""Greedy choice on a GPU: the best token of each row, and writing it down, in two kernels.

Torch gives a row to one block of the device, which for a few rows of a large vocabulary takes
longer than the product that made the scores; here every row is cut into parts.
"""

from __future__ import annotations

import torch
from torch import Tensor

from castalia.nets.language.decoding.decode_kernels import best_of_parts, write_best
from castalia.utils.devices import has_triton
from castalia.utils.triton_language import triton

__all__ = ["write_greatest"]

ROWS = 64  # with more of them, torch keeps the whole device busy too
PARTS = 128
NUMBERS = 1 << 14  # that a program holds at once


def write_greatest(
    logits: Tensor, sound: Tensor, written: Tensor, cursor: Tensor, last: Tensor
) -> bool:
    """Write the best tokens where the next ones go; return False where there is no kernel for it.

    Parameters
    ----------
    logits
        Scores, (B, V).
    sound
        Becomes NaN where the best score is not finite, (B,).
    written
        Tokens so far, (N, B).
    cursor
        How many they are, (1,).
    last
        The newest, (B, 1).
    """
    rows, tokens = logits.shape
    if rows > ROWS or logits.dtype == torch.float64 or not has_triton(logits.device):
        return False
    tall = triton.next_power_of_2(rows)
    scores = logits.new_empty(PARTS, rows, dtype=torch.float32)
    places = logits.new_empty(PARTS, rows, dtype=torch.int32)
    span, block = -(-tokens // PARTS), min(NUMBERS // tall, 512)
    steps = logits.stride()
    best_of_parts[(PARTS,)](
        logits, scores, places, rows, tokens, *steps, span, ROWS=tall, BLOCK=block
    )
    given = (scores, places, sound, written, cursor, last, rows)
    write_best[(1,)](*given, PARTS=PARTS, ROWS=tall)
    return True
