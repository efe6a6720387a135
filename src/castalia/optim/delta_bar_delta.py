"""Delta-bar-delta: every parameter has its own rate, which grows while the gradient keeps its sign.

With the running average bar(t) = (1 - theta) g(t) + theta bar(t-1):
rate += kappa           where g(t) bar(t-1) > 0
rate *= 1 - phi         where g(t) bar(t-1) < 0
w -= rate g(t).
Reference: 1988, Jacobs, Increased rates of convergence through learning rate adaptation, Neural
Networks 1.
Departs from it: rates are kept as multiples of ``lr``, so kappa is a share of ``lr`` and a schedule
scales all rates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from castalia.optim.vector import check_least

__all__ = ["DeltaBarDelta"]


class DeltaBarDelta(Optimizer):
    """Gradient descent with a rate for every parameter, grown by sums and cut by factors.

    For the gradient of the whole data: the noise of mini-batches flips signs and shrinks every
    rate, which is why AdaGrad, RMSProp and Adam replaced it. Several parameter groups are fine.

    Parameters
    ----------
    params
        What it updates.
    lr
        Rate at the start.
    kappa
        Added to a rate on agreement, as a share of ``lr``.
    phi
        Share taken off a rate on disagreement.
    theta
        Memory of the running average of gradients.
    weight_decay
        Adds ``weight_decay`` times the parameter to its gradient.

    Examples
    --------
    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer = DeltaBarDelta([w], lr=0.1, kappa=0.5)
    >>> for _ in range(3):
    ...     w.grad = torch.tensor([1.0, 0.0])
    ...     optimizer.step()
    >>> optimizer.state[w]["gain"]  # the first rate grew twice
    tensor([2., 1.])
    """

    closure: ClassVar[None] = None
    finds_length: ClassVar[bool] = False

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        *,
        kappa: float = 0.05,
        phi: float = 0.1,
        theta: float = 0.7,
        weight_decay: float = 0.0,
    ) -> None:
        check_least(self, "lr", float(lr) if isinstance(lr, Tensor) else lr, 0.0)
        check_least(self, "kappa", kappa, 0.0)
        check_least(self, "phi", phi, 0.0, below=1.0)
        check_least(self, "theta", theta, 0.0, below=1.0)
        check_least(self, "weight_decay", weight_decay, 0.0)
        defaults = {
            "lr": lr,
            "kappa": kappa,
            "phi": phi,
            "theta": theta,
            "weight_decay": weight_decay,
        }
        super().__init__(params, defaults)

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
            self._update(group)
        return loss

    def _update(self, group: dict[str, Any]) -> None:
        params = [p for p in group["params"] if p.grad is not None]
        if not params:
            return
        states = [self._state(p) for p in params]
        gains, bars = [s["gain"] for s in states], [s["bar"] for s in states]
        gradients = [p.grad for p in params]
        if group["weight_decay"]:
            gradients = list(torch._foreach_add(gradients, params, alpha=group["weight_decay"]))
        agreement = torch._foreach_mul(gradients, bars)
        torch._foreach_sign_(agreement)  # 1 agrees, -1 disagrees
        torch._foreach_add_(gains, torch._foreach_clamp_min(agreement, 0.0), alpha=group["kappa"])
        factor = torch._foreach_clamp_max(agreement, 0.0)
        torch._foreach_mul_(factor, group["phi"])
        torch._foreach_add_(factor, 1.0)  # 1 - phi where they disagree, 1 elsewhere
        torch._foreach_mul_(gains, factor)
        torch._foreach_lerp_(bars, gradients, 1 - group["theta"])
        moves = torch._foreach_mul(gains, gradients)
        torch._foreach_mul_(moves, group["lr"])
        torch._foreach_sub_(params, moves)

    def _state(self, parameter: Tensor) -> dict[str, Any]:
        state = self.state[parameter]
        if not state:
            state["gain"] = torch.ones_like(parameter)  # rate over lr
            state["bar"] = torch.zeros_like(parameter)
        return state
