"""Triton kernels of one step of a peephole LSTM: what follows, or precedes, the matrix product.

Shapes: B batch, H hidden; a program takes BLOCK units of one row.
"""

from __future__ import annotations

from castalia.utils.triton_language import tl, triton

__all__ = ["step_backwards", "step_forwards"]


@triton.jit
def step_forwards(z, c_before, c, h, peephole, H: tl.constexpr, BLOCK: tl.constexpr):
    """Turn sums of gates z, (B, 4 H), into gates where they lie; write c and h, (B, H)."""
    row = tl.program_id(0)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real = unit < H
    here, at = row * H + unit, row * 4 * H + unit
    before = tl.load(c_before + here, mask=real, other=0.0)
    of_i = tl.load(peephole + unit, mask=real, other=0.0)
    of_f = tl.load(peephole + H + unit, mask=real, other=0.0)
    of_o = tl.load(peephole + 2 * H + unit, mask=real, other=0.0)
    i = tl.sigmoid(tl.load(z + at, mask=real, other=0.0) + before * of_i)
    f = tl.sigmoid(tl.load(z + at + H, mask=real, other=0.0) + before * of_f)
    g = 2 * tl.sigmoid(2 * tl.load(z + at + 2 * H, mask=real, other=0.0)) - 1  # tanh
    now = f * before + i * g
    o = tl.sigmoid(tl.load(z + at + 3 * H, mask=real, other=0.0) + now * of_o)
    tl.store(z + at, i, mask=real)
    tl.store(z + at + H, f, mask=real)
    tl.store(z + at + 2 * H, g, mask=real)
    tl.store(z + at + 3 * H, o, mask=real)
    tl.store(c + here, now, mask=real)
    tl.store(h + here, o * (2 * tl.sigmoid(2 * now) - 1), mask=real)


@triton.jit
def step_backwards(
    gates, c_before, c, of_out, dh, dc, dz, peephole, H: tl.constexpr, BLOCK: tl.constexpr
):
    """Write the gradient by the sums of gates to dz, and that by the cell before over dc."""
    row = tl.program_id(0)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real = unit < H
    here, at = row * H + unit, row * 4 * H + unit
    of_i = tl.load(peephole + unit, mask=real, other=0.0)
    of_f = tl.load(peephole + H + unit, mask=real, other=0.0)
    of_o = tl.load(peephole + 2 * H + unit, mask=real, other=0.0)
    i = tl.load(gates + at, mask=real, other=0.0)
    f = tl.load(gates + at + H, mask=real, other=0.0)
    g = tl.load(gates + at + 2 * H, mask=real, other=0.0)
    o = tl.load(gates + at + 3 * H, mask=real, other=0.0)
    shown = 2 * tl.sigmoid(2 * tl.load(c + here, mask=real, other=0.0)) - 1
    total = tl.load(dh + here, mask=real, other=0.0) + tl.load(of_out + here, mask=real, other=0.0)
    do = total * shown * o * (1 - o)
    cell = tl.load(dc + here, mask=real, other=0.0) + total * o * (1 - shown * shown) + do * of_o
    di = cell * g * i * (1 - i)
    df = cell * tl.load(c_before + here, mask=real, other=0.0) * f * (1 - f)
    tl.store(dz + at, di, mask=real)
    tl.store(dz + at + H, df, mask=real)
    tl.store(dz + at + 2 * H, cell * i * (1 - g * g), mask=real)
    tl.store(dz + at + 3 * H, do, mask=real)
    tl.store(dc + here, cell * f + di * of_i + df * of_f, mask=real)
