"""Gradient flow: steepest descent seen as Euler's method on an ordinary differential equation.

dw/dt = -grad l(w). An explicit Euler step of size h is a step of gradient descent with learning
rate h, so the path of descent tends to that of the flow as h -> 0. Near a minimum with Hessian H
the flow is exp(-H t) w_0, which always decays, while descent multiplies by (I - h H) and does so
only for h < 2 / lambda_max.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from castalia.autodiff import odeint
from castalia.autodiff.flat_vector import Packing
from castalia.errors import ShapeMismatch

__all__ = ["GradientFlow", "gradient_flow"]


@dataclass(frozen=True)
class GradientFlow:
    """The path of the flow, and beside it that of descent.

    Attributes
    ----------
    t
        The times (T,).
    flow
        The weights at these times along the flow, each tensor with a leading dimension T.
    descent
        The weights at these times by descent with steps of h, or None.
    """

    t: Tensor
    flow: Any
    descent: Any = None


def gradient_flow(
    loss: Callable[[Any], Tensor],
    w0: Any,
    t: Tensor | Sequence[float],
    h: float | None = None,
    *,
    method: str = "dopri5",
    rtol: float = 1e-6,
    atol: float = 1e-8,
) -> GradientFlow:
    """Follow dw/dt = -grad loss(w) from w0, and compare gradient descent with steps of h.

    Parameters
    ----------
    loss
        The loss of the weights, one number. For a module, use ``torch.func.functional_call`` and
        ``dict(net.named_parameters())``.
    w0
        The weights at ``t[0]``: a tensor, or a tuple, list or dict of tensors.
    t
        Times at which the weights are returned.
    h
        Step of descent, its learning rate; the spans between the times are divided into equal
        steps of at most h.
    method, rtol, atol
        How :func:`castalia.autodiff.odeint` follows the flow.

    Examples
    --------
    >>> path = gradient_flow(lambda w: 2 * w.square().sum(), torch.ones(1), [0.0, 1.0], h=0.25)
    >>> path.flow[-1], path.descent[-1]  # exp(-4), and 0 since 1 - 4 h = 0
    (tensor([0.0183]), tensor([0.]))
    """
    packing = Packing(w0, "gradient_flow", "w0")

    def downhill(_: Tensor, w: Tensor) -> Tensor:  # (N,) -> (N,)
        with torch.enable_grad():
            w = w.detach().requires_grad_()
            value = loss(packing.unpack(w))
            if value.numel() != 1:
                raise ShapeMismatch(
                    f"gradient_flow: `loss(w)` must be one number; got shape {tuple(value.shape)}."
                )
            (slope,) = torch.autograd.grad(value.reshape(()), w)
        return -slope

    with torch.no_grad():
        start = packing.pack(w0).detach()
        flow = odeint(downhill, start, t, method, rtol=rtol, atol=atol)
        path = GradientFlow(torch.as_tensor(t, dtype=start.dtype), packing.unpack(flow))
        if h is None:
            return path
        descent = odeint(downhill, start, t, "euler", step=h)
    return replace(path, descent=packing.unpack(descent))
