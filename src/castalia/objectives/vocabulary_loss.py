"""The loss of tokens of a large vocabulary, whose scores are never held all at once.

L = sum over t of  c_t (log sum_v exp(z_tv) - z_{t,y_t}),  z_t = W h_t,
dL/dz_t = c_t (softmax(z_t) - e_{y_t}),  dL/dh = dL/dz W,  dL/dW = dL/dz' h.

Scores are the largest tensor of a language model by far: of 32 rows of 1,024 tokens of GPT-2's
vocabulary they are 1.6 billion numbers. Their gradients are known as soon as they are, so both are
made for some tokens at a time, the latter in place of the former, and the products with them taken
at once; the backward pass has nothing left to do.
Shapes: N tokens, D width, V vocabulary.
Reference: 2024, Hsu et al., Liger Kernel: efficient Triton kernels for LLM training, arXiv
2410.10989 (the same idea).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from castalia.objectives.vocabulary_kernels import scores_to_gradients
from castalia.utils.devices import has_triton

__all__ = ["vocabulary_loss"]

SCORES = 1 << 29  # held at once
ALIGNED = 64  # tensor cores are fastest where rows of scores begin at multiples of so many
BLOCK, WARPS = 8192, 8  # scores that a program of the kernel reads at once, and its warps


def vocabulary_loss(h: Tensor, table: Tensor, targets: Tensor, share: Tensor) -> Tensor:
    """Return the weighted sum of the losses -log softmax(table h_t)_{y_t}.

    It can be differentiated once. Products are in the format of autocast where that is on, or else
    in that of the table.

    Parameters
    ----------
    h
        Vectors of the tokens, (N, D).
    table
        Weights of the output layer, (V, D).
    targets
        Tokens that should have been predicted, (N,), from 0 to V - 1.
    share
        Weight of each token's loss, (N,).

    Examples
    --------
    >>> h, table = torch.zeros(3, 8), torch.ones(7, 8)
    >>> vocabulary_loss(h, table, torch.tensor([0, 4, 6]), torch.full((3,), 1 / 3)).exp()
    tensor(7.0000)
    """
    return _VocabularyLoss.apply(h, table, targets, share)  # type: ignore[no-any-return]


class _VocabularyLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, table: Tensor, targets: Tensor, share: Tensor) -> Tensor:
        kind = h.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else table.dtype
        x, size = h.to(dtype), len(table)
        weight = F.pad(table.to(dtype), (0, 0, 0, -size % ALIGNED))  # (W, D)
        rows = max(1, SCORES // len(weight))
        share = share.to(torch.promote_types(table.dtype, torch.float32))
        losses = torch.empty_like(share)
        dx, dw = torch.empty_like(x), None
        if ctx.needs_input_grad[1]:  # a frozen table needs none
            dw = torch.zeros_like(weight, dtype=table.dtype)
        for start in range(0, len(x), rows):
            some = slice(start, start + rows)
            z = x[some] @ weight.T  # (n, W)
            _to_gradients(z, targets[some], share[some], losses[some], size)
            torch.mm(z, weight, out=dx[some])
            if dw is not None:
                dw += z.T @ x[some]
        ctx.save_for_backward(dx, None if dw is None else dw[:size])
        ctx.wanted = h.dtype
        return losses.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        dx, dw = ctx.saved_tensors
        return (dx * gradient).to(ctx.wanted), None if dw is None else dw * gradient, None, None


def _to_gradients(z: Tensor, targets: Tensor, share: Tensor, losses: Tensor, size: int) -> None:
    """Turn scores, (n, W), into their gradients, and write the losses, (n,)."""
    if has_triton(z.device):
        sizes = {"V": size, "W": z.shape[1], "BLOCK": BLOCK}
        scores_to_gradients[(len(z),)](z, targets, share, losses, **sizes, num_warps=WARPS)
        return
    logs = z[:, :size].to(share.dtype).log_softmax(dim=1)
    losses.copy_(-share * logs.gather(1, targets[:, None])[:, 0])
    shares = logs.exp_()
    shares[torch.arange(len(z), device=z.device), targets] -= 1
    z[:, :size] = shares * share[:, None]
    z[:, size:] = 0
