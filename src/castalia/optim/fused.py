"""The fused Adam step without its per-step bookkeeping.

``Optimizer.step`` gathers parameters and states anew each time, which on a small network costs more
than the update itself. Here they are gathered once; the update is the same kernel on the same
state, so ``state_dict`` stays torch's own.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer

__all__ = ["fused_step"]


def fused_step(optimizer: Optimizer) -> Callable[[], None] | None:
    """Return a quick equivalent of ``optimizer.step``, or None where there is none.

    Serves plain fused Adam and AdamW (no AMSGrad, rate a number) on one device. Call it again after
    loading a state.

    Parameters
    ----------
    optimizer
        Whose parameters and state to use.
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


def _unusual(group: dict) -> bool:
    params = group["params"]
    return (
        not group["fused"]
        or group["amsgrad"]
        or isinstance(group["lr"], Tensor)
        or type(group["betas"][0]) is not float
        or len({(p.device, p.dtype) for p in params}) > 1
        or any(type(p) is not torch.nn.Parameter for p in params)  # sharded tensors go torch's way
    )


def _group_update(optimizer: Optimizer, group: dict) -> Callable[[], None]:
    params: list[Tensor] = group["params"]
    for p in params:
        if not optimizer.state[p]:
            optimizer.state[p].update(
                exp_avg=torch.zeros_like(p, memory_format=torch.preserve_format),
                exp_avg_sq=torch.zeros_like(p, memory_format=torch.preserve_format),
                step=torch.zeros((), dtype=torch.float32, device=p.device),
            )
    states = [optimizer.state[p] for p in params]
    counters = torch.stack(
        [state["step"] for state in states]
    )  # one tensor to count up, a view for each parameter
    for state, counter in zip(states, counters, strict=True):
        state["step"] = counter
    means, squares = [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states]
    steps = list(counters)
    decoupled = group.get("decoupled_weight_decay", False) or isinstance(
        optimizer, torch.optim.AdamW
    )
    kernel = torch._fused_adamw_ if decoupled else torch._fused_adam_

    @torch.no_grad()
    def update() -> None:
        live = [i for i, p in enumerate(params) if p.grad is not None]  # others sat this step out
        if len(live) == len(params):
            counters.add_(1)
        else:
            counters[live] += 1
        beta1, beta2 = group["betas"]
        kernel(
            [params[i] for i in live],
            [g for p in params if (g := p.grad) is not None],
            [means[i] for i in live],
            [squares[i] for i in live],
            [],
            [steps[i] for i in live],
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=group["maximize"],
        )

    return update
