"""The peephole LSTM along time with its gradient written out: the plain cell's answers, faster.

Autograd would keep some twenty small operations a step. Here a step keeps its gates and its cell;
gradients of all weights are taken once, over all steps together. Where gradients of gradients are
asked for, the steps are taken again, plainly.
Shapes: T time, B batch, H hidden.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["peephole_scan"]


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
        turned, (of_i, of_f, of_o) = weight.t(), peephole
        for t in range(steps):
            z = torch.addmm(lifted[t], hidden[t], turned, out=gates[t])
            i, f, g, o = z.split(width, dim=1)
            i.addcmul_(cells[t], of_i).sigmoid_()
            f.addcmul_(cells[t], of_f).sigmoid_()
            g.tanh_()
            torch.mul(f, cells[t], out=cells[t + 1])
            cells[t + 1].addcmul_(i, g)
            o.addcmul_(cells[t + 1], of_o).sigmoid_()
            torch.tanh(cells[t + 1], out=hidden[t + 1])
            hidden[t + 1].mul_(o)
        ctx.save_for_backward(gates, hidden, cells, lifted, h, c, weight, peephole)
        return hidden[1:].clone(), cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        """Return the gradients, from the last step to the first."""
        gates, hidden, cells, *given = ctx.saved_tensors
        if torch.is_grad_enabled():  # they are to be differentiated in turn
            return _again(given, gradients)
        *_, weight, peephole = given
        of_out, dc = gradients[0], gradients[1].clone()
        width, dh = cells.shape[-1], torch.zeros_like(dc)
        of_i, of_f, of_o = peephole
        dz = torch.empty_like(gates)
        shown = torch.tanh(cells[1:])
        for t in range(len(gates) - 1, -1, -1):
            i, f, g, o = gates[t].split(width, dim=1)
            di, df, dg, do = dz[t].split(width, dim=1)
            dh = dh + of_out[t]
            torch.mul(dh * shown[t], o * (1 - o), out=do)
            dc = dc + dh * o * (1 - shown[t].square()) + do * of_o
            torch.mul(dc * g, i * (1 - i), out=di)
            torch.mul(dc * cells[t], f * (1 - f), out=df)
            torch.mul(dc * i, 1 - g.square(), out=dg)
            dc = dc * f + di * of_i + df * of_f
            dh = dz[t] @ weight
        of_weight = dz.flatten(0, 1).t() @ hidden[:-1].flatten(0, 1)
        di, df, _, do = dz.split(width, dim=2)
        pairs = ((di, cells[:-1]), (df, cells[:-1]), (do, cells[1:]))
        of_peephole = torch.stack([(a * b).sum(dim=(0, 1)) for a, b in pairs])
        return dz, dh, dc, of_weight, of_peephole


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
