"""Triton kernels that take many steps of a peephole LSTM, forwards and backwards.

A program has some units of some rows and walks along time with them; before each step the programs
of the same rows wait until all have written what the step reads. They must all be on the device at
once where more than one step is taken.
Shapes: B batch, H hidden; tiles of ROWS x UNITS; K numbers of a product at once.
"""

from __future__ import annotations

from castalia.utils.triton_language import tl, triton

__all__ = ["walk_backwards", "walk_forwards"]


@triton.jit
def meet(counter, target):
    """Wait until all programs of these rows are here."""
    tl.debug_barrier()
    tl.atomic_add(counter, 1)
    while tl.atomic_add(counter, 0) < target:
        pass
    tl.debug_barrier()


@triton.jit
def peepholes(peephole, unit, H: tl.constexpr):
    """Return the weights from the cells to the input, forget and output gates, (1, UNITS)."""
    of_i = tl.load(peephole + unit, mask=unit < H, other=0.0)
    of_f = tl.load(peephole + H + unit, mask=unit < H, other=0.0)
    of_o = tl.load(peephole + 2 * H + unit, mask=unit < H, other=0.0)
    return of_i[None, :], of_f[None, :], of_o[None, :]


@triton.jit
def quarters(at, real, H: tl.constexpr):
    """Return a tile of each of the four gates."""
    i, f = tl.load(at, mask=real, other=0.0), tl.load(at + H, mask=real, other=0.0)
    g, o = tl.load(at + 2 * H, mask=real, other=0.0), tl.load(at + 3 * H, mask=real, other=0.0)
    return i, f, g, o


@triton.jit
def keep(at, i, f, g, o, real, H: tl.constexpr):
    """Write a tile of each of the four gates."""
    tl.store(at, i, mask=real)
    tl.store(at + H, f, mask=real)
    tl.store(at + 2 * H, g, mask=real)
    tl.store(at + 3 * H, o, mask=real)


@triton.jit
def tanh(x):
    """Return the hyperbolic tangent."""
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def walk_forwards(
    lifted, gates, hidden, cells, weight, peephole, counters, steps, B,
    H: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """From ``lifted`` (steps, B, 4 H) write gates, and hidden and cells (steps + 1, B, H)."""
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    unit, k = tl.program_id(0) * UNITS + tl.arange(0, UNITS), tl.arange(0, K)
    real = (row < B)[:, None] & (unit < H)[None, :]
    here, at = row[:, None] * H + unit[None, :], row[:, None] * 4 * H + unit[None, :]
    of_i, of_f, of_o = peepholes(peephole, unit, H)
    c = tl.load(cells + here, mask=real, other=0.0)
    for step in range(steps):
        i, f, g, o = quarters(lifted + at, real, H)
        for start in range(0, H, K):
            part = start + k
            there = (row < B)[:, None] & (part < H)[None, :]
            before = hidden + row[:, None] * H + part[None, :]
            h = tl.load(before, mask=there, other=0.0, cache_modifier=".cg")
            w, known = weight + unit[None, :] * H + part[:, None], (part < H)[:, None]
            known = known & (unit < H)[None, :]
            w_i, w_f = tl.load(w, mask=known, other=0.0), tl.load(w + H * H, mask=known, other=0.0)
            w_g = tl.load(w + 2 * H * H, mask=known, other=0.0)
            w_o = tl.load(w + 3 * H * H, mask=known, other=0.0)
            i = tl.dot(h, w_i, i, input_precision="tf32x3")
            f = tl.dot(h, w_f, f, input_precision="tf32x3")
            g = tl.dot(h, w_g, g, input_precision="tf32x3")
            o = tl.dot(h, w_o, o, input_precision="tf32x3")
        i, f, g = tl.sigmoid(i + c * of_i), tl.sigmoid(f + c * of_f), tanh(g)
        c = f * c + i * g
        o = tl.sigmoid(o + c * of_o)
        keep(gates + at, i, f, g, o, real, H)
        lifted, gates = lifted + 4 * B * H, gates + 4 * B * H
        hidden, cells = hidden + B * H, cells + B * H
        tl.store(cells + here, c, mask=real)
        tl.store(hidden + here, o * tanh(c), mask=real)
        if step + 1 < steps:
            meet(counters + tl.program_id(1), (step + 1) * tl.num_programs(0))


@triton.jit
def walk_backwards(
    gates, cells, of_out, dc, dz, weight, peephole, counters, steps, B,
    H: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Write the gradient by the sums of gates to dz, and that by the first cell over dc.

    All but dc begin at the last step; dz has that of the step after it behind it.
    """
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    unit, k = tl.program_id(0) * UNITS + tl.arange(0, UNITS), tl.arange(0, K)
    real = (row < B)[:, None] & (unit < H)[None, :]
    here, at = row[:, None] * H + unit[None, :], row[:, None] * 4 * H + unit[None, :]
    of_i, of_f, of_o = peepholes(peephole, unit, H)
    carried = tl.load(dc + here, mask=real, other=0.0)
    for step in range(steps):
        total = tl.load(of_out + here, mask=real, other=0.0)
        for start in range(0, 4 * H, K):
            part = start + k
            there = (row < B)[:, None] & (part < 4 * H)[None, :]
            after = dz + 4 * B * H + row[:, None] * 4 * H + part[None, :]
            a = tl.load(after, mask=there, other=0.0, cache_modifier=".cg")
            known = (part < 4 * H)[:, None] & (unit < H)[None, :]
            w = tl.load(weight + part[:, None] * H + unit[None, :], mask=known, other=0.0)
            total = tl.dot(a, w, total, input_precision="tf32x3")
        i, f, g, o = quarters(gates + at, real, H)
        before = tl.load(cells + here, mask=real, other=0.0)
        shown = tanh(tl.load(cells + B * H + here, mask=real, other=0.0))
        do = total * shown * o * (1 - o)
        cell = carried + total * o * (1 - shown * shown) + do * of_o
        di, df = cell * g * i * (1 - i), cell * before * f * (1 - f)
        keep(dz + at, di, df, cell * i * (1 - g * g), do, real, H)
        carried = cell * f + di * of_i + df * of_f
        gates, dz = gates - 4 * B * H, dz - 4 * B * H
        cells, of_out = cells - B * H, of_out - B * H
        if step + 1 < steps:
            meet(counters + tl.program_id(1), (step + 1) * tl.num_programs(0))
    tl.store(dc + here, carried, mask=real)
