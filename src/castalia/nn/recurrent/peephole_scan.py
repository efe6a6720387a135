"""The peephole LSTM along time with its gradient written out: the plain cell's answers, faster.

Autograd would keep some twenty small operations a step. Here a step keeps its gates and its cell;
gradients of all weights are taken once, over all steps together. On CUDA one kernel takes all
steps, or one each. Where gradients of gradients are asked for, the steps are taken again, plainly.
Shapes: T time, B batch, H hidden.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from castalia.nn.recurrent.peephole_kernels import walk_backwards, walk_forwards
from castalia.utils.devices import has_triton

__all__ = ["peephole_scan"]

TILES = ((16, 16), (32, 16), (64, 16), (64, 32))  # rows and units that a program of a kernel has
PART = 64  # numbers of a product that it reads at once
LAUNCH = {"num_warps": 4, "num_stages": 4}


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, lifted: Tensor, h: Tensor, c: Tensor, weight: Tensor, peephole: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return outputs (T, B, H) and the last cell; lifted is U x + b, (T, B, 4 H)."""
        steps, batch, width = lifted.shape[0], *h.shape
        gates = torch.empty_like(lifted)
        hidden, cells = h.new_empty(2, steps + 1, batch, width)
        hidden[0], cells[0] = h, c
        peephole = peephole.contiguous()
        if _walks(h):
            _walk_forwards(lifted, gates, hidden, cells, weight.contiguous(), peephole)
        else:
            rows = (part.unbind() for part in (lifted, gates, hidden[:-1], hidden[1:], cells[:-1]))
            for now, z, before, after, old, new in zip(*rows, cells[1:].unbind(), strict=True):
                torch.addmm(now, before, weight.t(), out=z)
                _forwards(z, old, new, after, peephole)
        ctx.save_for_backward(gates, hidden, cells, lifted, h, c, weight, peephole)
        return hidden[1:].clone(), cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        """Return the gradients, from the last step to the first."""
        gates, hidden, cells, *given = ctx.saved_tensors
        if torch.is_grad_enabled():  # they are to be differentiated in turn
            return _again(given, gradients)
        *_, weight, peephole = given
        of_out, dc = gradients[0].contiguous(), gradients[1].clone()
        width, dh, peephole = cells.shape[-1], torch.zeros_like(dc), peephole.contiguous()
        dz = gates.new_empty(len(gates) + 1, *gates.shape[1:])
        if _walks(dc):
            dz[-1] = 0
            _walk_backwards(gates, cells, of_out, dc, dz, weight.contiguous(), peephole)
            torch.mm(dz[0], weight, out=dh)
        else:
            for t in range(len(gates) - 1, -1, -1):
                _backwards(gates[t], cells[t], cells[t + 1], of_out[t], dh, dc, dz[t], peephole)
                torch.mm(dz[t], weight, out=dh)
        dz = dz[:-1]
        of_weight = dz.flatten(0, 1).t() @ hidden[:-1].flatten(0, 1)
        di, df, _, do = dz.split(width, dim=2)
        pairs = ((di, cells[:-1]), (df, cells[:-1]), (do, cells[1:]))
        of_peephole = torch.stack([(a * b).sum(dim=(0, 1)) for a, b in pairs])
        return dz, dh, dc, of_weight, of_peephole


def _forwards(z: Tensor, c_before: Tensor, c: Tensor, h: Tensor, peephole: Tensor) -> None:
    """Turn sums of gates z, (B, 4 H), into gates; write c and h."""
    (i, f, g, o), (of_i, of_f, of_o) = z.chunk(4, dim=1), peephole
    i.addcmul_(c_before, of_i).sigmoid_()
    f.addcmul_(c_before, of_f).sigmoid_()
    g.tanh_()
    torch.mul(f, c_before, out=c)
    c.addcmul_(i, g)
    o.addcmul_(c, of_o).sigmoid_()
    torch.tanh(c, out=h)
    h.mul_(o)


def _backwards(
    gates: Tensor, c_before: Tensor, c: Tensor, of_out: Tensor, dh: Tensor, dc: Tensor, dz: Tensor,
    peephole: Tensor,
) -> None:  # fmt: skip
    """Write the gradient by the sums of gates to dz, and that by the cell before over dc."""
    (i, f, g, o), (of_i, of_f, of_o) = gates.chunk(4, dim=1), peephole
    di, df, dg, do = dz.chunk(4, dim=1)
    total, shown = dh + of_out, torch.tanh(c)
    torch.mul(total * shown, o * (1 - o), out=do)
    cell = dc + total * o * (1 - shown.square()) + do * of_o
    torch.mul(cell * g, i * (1 - i), out=di)
    torch.mul(cell * c_before, f * (1 - f), out=df)
    torch.mul(cell * i, 1 - g.square(), out=dg)
    dc.copy_(cell * f + di * of_i + df * of_f)


def _walks(state: Tensor) -> bool:
    """Say whether kernels take the steps."""
    return state.dtype == torch.float32 and has_triton(state.device)


def _tile(batch: int, width: int, device: torch.device) -> tuple[int, int, bool]:
    """Return rows and units of a program, and whether the device holds all programs at once."""
    room = torch.cuda.get_device_properties(device).multi_processor_count
    for rows, units in TILES:
        if -(-batch // rows) * -(-width // units) <= room:
            return rows, units, True
    return *TILES[0], False


def _walk_forwards(
    lifted: Tensor, gates: Tensor, hidden: Tensor, cells: Tensor, weight: Tensor, peephole: Tensor
) -> None:
    def take(t: int, steps: int, launch: Any) -> None:
        launch(lifted[t:], gates[t:], hidden[t:], cells[t:], weight, peephole, steps)

    _walk(walk_forwards, take, len(gates), hidden[0])


def _walk_backwards(
    gates: Tensor, cells: Tensor, of_out: Tensor, dc: Tensor, dz: Tensor, weight: Tensor,
    peephole: Tensor,
) -> None:  # fmt: skip
    def take(t: int, steps: int, launch: Any) -> None:
        last = len(gates) - 1 - t
        ends = gates[last:], cells[last:], of_out[last:]
        launch(*ends, dc, dz[last:], weight, peephole, steps)

    _walk(walk_backwards, take, len(gates), dc)


def _walk(kernel: Any, take: Any, steps: int, state: Tensor) -> None:
    """Launch a kernel for all steps, or once a step where not all programs fit on the device."""
    batch, width = state.shape
    rows, units, together = _tile(batch, width, state.device)
    grid = -(-width // units), -(-batch // rows)
    counters = torch.zeros(grid[1], dtype=torch.int32, device=state.device)
    sizes = {"H": width, "ROWS": rows, "UNITS": units, "K": PART, **LAUNCH}

    def launch(*parts: Any) -> None:
        kernel[grid](*parts[:-1], counters, parts[-1], batch, **sizes)

    for t in range(0, steps, steps if together else 1):
        take(t, steps if together else 1, launch)


def _again(given: list[Tensor], gradients: tuple[Tensor, ...]) -> tuple[Any, ...]:
    """Return gradients that autograd can differentiate, of plain steps."""
    wanted = [part for part in given if part.requires_grad]
    found = iter(torch.autograd.grad(_plain(*given), wanted, gradients, create_graph=True))
    return tuple(next(found) if part.requires_grad else None for part in given)


def _plain(
    lifted: Tensor, h: Tensor, c: Tensor, weight: Tensor, peephole: Tensor
) -> tuple[Tensor, Tensor]:
    """Take the steps one by one, for autograd."""
    of_i, of_f, of_o = peephole
    out = []
    for now in lifted:
        i, f, g, o = (now + h @ weight.t()).chunk(4, dim=1)
        c = torch.sigmoid(f + of_f * c) * c + torch.sigmoid(i + of_i * c) * torch.tanh(g)
        h = torch.sigmoid(o + of_o * c) * torch.tanh(c)
        out.append(h)
    return torch.stack(out), c


def peephole_scan(
    lifted: Tensor, state: tuple[Tensor, ...], weight: Tensor, bias: Tensor, peephole: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Run a peephole LSTM over all steps.

    Parameters
    ----------
    lifted
        U x + b of every step, (B, T, 4 H).
    state
        h and c to begin with, (B, H) each.
    weight, bias
        W and its bias, (4 H, H) and (4 H,).
    peephole
        Of the input, forget and output gate, (3, H).

    Returns
    -------
    outputs
        (B, T, H).
    state
        h and c after the last step.
    """
    along = (lifted + bias).transpose(0, 1).contiguous()
    out, c = _Scan.apply(along, *state, weight, peephole)
    return out.transpose(0, 1), (out[-1], c)
