"""Lion: the sign of a momentum, so that every parameter moves by the rate in every step.

u = sign(beta1 m + (1 - beta1) g),  w <- (1 - lr lambda) w - lr u,  m <- beta2 m + (1 - beta2) g.
Reference: 2023, Chen et al., Symbolic discovery of optimization algorithms, arXiv 2302.06675.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from castalia.optim.vector import check_least

__all__ = ["Lion"]


class Lion(Optimizer):
    """Moves every parameter by the rate, in the direction of the sign of its momentum.

    Half the memory of Adam. Its steps do not shrink with the gradient, so its rate is 3 to 10 times
    smaller than Adam's and its weight decay as many times larger; it wants a schedule that ends
    near 0.

    Parameters
    ----------
    params
        What it updates.
    lr
        Length of the step in every coordinate.
    betas
        Memory of the direction, and of the momentum.
    weight_decay
        lambda, decoupled.

    Examples
    --------
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> w.grad = torch.tensor([0.5, -1e-3])
    >>> Lion([w], lr=0.1).step()
    >>> w.detach()
    tensor([ 0.9000, -1.9000])
    """

    closure: ClassVar[None] = None
    finds_length: ClassVar[bool] = False

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-4,
        *,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        check_least(self, "lr", float(lr) if isinstance(lr, Tensor) else lr, 0.0)
        check_least(self, "weight_decay", weight_decay, 0.0)
        for beta in betas:
            check_least(self, "betas", beta, 0.0, below=1.0)
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Take one step; the closure is optional.

        Parameters
        ----------
        closure
            Computes the gradients again and returns the loss.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if params:
                self._update(group, params)
        return loss

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        for p in params:
            if not self.state[p]:
                self.state[p]["momentum_buffer"] = torch.zeros_like(p)
        momenta = [self.state[p]["momentum_buffer"] for p in params]
        gradients: list[Any] = [p.grad for p in params]
        near, far = group["betas"]
        signs = torch._foreach_lerp(gradients, momenta, near)
        torch._foreach_sign_(signs)
        if group["weight_decay"]:
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_mul_(signs, group["lr"])
        torch._foreach_sub_(params, signs)
        torch._foreach_lerp_(momenta, gradients, 1 - far)
