"""The fused Adam step without its per-step bookkeeping.

``Optimizer.step`` gathers parameters and states at every call, which on a small network costs
more than the update itself. Here they are gathered once; the update is the same kernel on the same
state, so ``state_dict`` stays torch's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer

__all__ = ["fused_step"]


def fused_step(optimizer: Optimizer) -> Callable[[], None] | None:
    """Return a quick equivalent of ``optimizer.step``, or None where there is none.

    Serves plain fused Adam and AdamW (no AMSGrad) on one device. Call it again after loading a
    state.
    """
    if not isinstance(optimizer, Adam) or any(map(_unusual, optimizer.param_groups)):
        return None
    updates = [_group_update(optimizer, group) for group in optimizer.param_groups]
    if len(updates) == 1:
        return updates[0]

    def every() -> None:
        for update in updates:
            update()

    return every


def _unusual(group: dict[str, Any]) -> bool:
    params = group["params"]
    return (
        not group["fused"]
        or group["amsgrad"]
        or len({(p.device, p.dtype) for p in params}) > 1
        or any(type(p) is not torch.nn.Parameter for p in params)  # sharded ones go torch's way
        or not all(p.is_contiguous() for p in params)
    )


def _pieces(tensor: Tensor, size: int) -> list[Tensor]:
    """Cut a tensor into pieces, all of them views of it."""
    if tensor.numel() <= size:
        return [tensor.detach()]
    return list(tensor.detach().contiguous().view(-1).split(size))


def _piece_size(params: list[Tensor]) -> int:
    """Size of the pieces the kernel is given.

    On CUDA one block works through each 65,536 numbers, so a small network would keep a handful of
    blocks busy and the rest of the chip idle; some hundred pieces fill it. Elsewhere, and for large
    networks, every tensor is one piece.
    """
    total = sum(p.numel() for p in params)
    if params[0].device.type != "cuda" or total > 2**23:
        return max(total, 1)
    return max(2048, -(-total // 512) * 4)


def _group_update(optimizer: Optimizer, group: dict[str, Any]) -> Callable[[], None]:
    params: list[Tensor] = group["params"]
    for p in params:
        if not optimizer.state[p]:
            optimizer.state[p].update(
                exp_avg=torch.zeros_like(p),
                exp_avg_sq=torch.zeros_like(p),
                step=torch.zeros((), dtype=torch.float32, device=p.device),
            )
    size = _piece_size(params)
    states = [optimizer.state[p] for p in params]
    weights = [_pieces(p, size) for p in params]
    means = [_pieces(s["exp_avg"], size) for s in states]
    squares = [_pieces(s["exp_avg_sq"], size) for s in states]
    # One tensor counts the steps of all pieces; each state sees the counter of its first piece.
    counters = torch.stack([s["step"] for s, ps in zip(states, weights, strict=True) for _ in ps])
    counts = [list(c) for c in counters.split([len(pieces) for pieces in weights])]
    for state, count in zip(states, counts, strict=True):
        state["step"] = count[0]
    whole = all(p.numel() <= size for p in params)
    decoupled = group.get("decoupled_weight_decay", False) or isinstance(
        optimizer, torch.optim.AdamW
    )
    kernel = torch._fused_adamw_ if decoupled else torch._fused_adam_
    everything = [[x for xs in pieces for x in xs] for pieces in (weights, means, squares, counts)]

    @torch.no_grad()
    def update() -> None:
        gradients = [p.grad for p in params if p.grad is not None]
        if len(gradients) == len(params):
            live = everything
            counters.add_(1)
        else:  # some parameters sat this step out
            chosen = [i for i, p in enumerate(params) if p.grad is not None]
            if not chosen:
                return
            live = [[x for i in chosen for x in xs[i]] for xs in (weights, means, squares, counts)]
            for count in live[3]:
                count.add_(1)
        beta1, beta2 = group["betas"]
        kernel(
            live[0],
            gradients if whole else [piece for g in gradients for piece in _pieces(g, size)],
            live[1],
            live[2],
            [],
            live[3],
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=group["maximize"],
        )

    return update
