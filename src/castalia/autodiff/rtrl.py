"""Real-time recurrent learning: the gradient of a recurrent network, carried forward in time.

S_t = dh_t/dtheta = (df/dh) S_{t-1} + df/dtheta,    dL/dtheta = sum_t (dl_t/dh_t) S_t + dl_t/dtheta

It is the gradient of back-propagation through time, exactly, and needs no past: after each step the
gradient of all losses so far is known. The price is the sensitivity S, of H x P numbers for H units
and P parameters, and H^2 P products a step: of order H^4 where P is of order H^2.
Shapes: B rows, T steps, H units, P parameters.
Reference: 1989, Williams, Zipser, A learning algorithm for continually running fully recurrent
neural networks, Neural Computation 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import grad_and_value, jacrev, vmap

from castalia.errors import ShapeMismatch

__all__ = ["RealTimeGradient", "real_time_gradient"]

Parameters = Mapping[str, Tensor]
Step = Callable[[Parameters, Tensor, Tensor], Tensor]
Loss = Callable[[Parameters, Tensor, int], Tensor]


@dataclass(frozen=True)
class RealTimeGradient:
    """What is known after the last step.

    Attributes
    ----------
    loss
        Sum of the losses of all steps.
    gradients
        Its gradient by each parameter.
    state
        The last state, (B, H).
    sensitivity
        d state / d parameters, (B, H, P); with the state it lets a stream go on.
    """

    loss: Tensor
    gradients: dict[str, Tensor]
    state: Tensor
    sensitivity: Tensor


def real_time_gradient(
    step: Step,
    loss: Loss,
    parameters: Parameters,
    inputs: Tensor,
    state: Tensor,
    *,
    sensitivity: Tensor | None = None,
) -> RealTimeGradient:
    """Return loss and gradient of a recurrent network without looking back.

    Parameters
    ----------
    step
        ``step(parameters, h, x)``: the next state of one row, (H,), from its state and input.
    loss
        ``loss(parameters, h, t)``: the loss of step t from the states of all rows, (B, H).
    parameters
        Tensors by name.
    inputs
        (B, T, D).
    state
        First state, (B, H).
    sensitivity
        d state / d parameters, (B, H, P), where a stream goes on; None: zero.

    Examples
    --------
    >>> x, zero = torch.ones(1, 3, 1), torch.zeros(1, 1)
    >>> found = real_time_gradient(
    ...     lambda p, h, x: p["w"] * h + x,
    ...     lambda p, h, t: h.sum(),
    ...     {"w": torch.tensor(0.5)},
    ...     x,
    ...     zero,
    ... )
    >>> float(found.loss), float(found.gradients["w"])  # 1 + (w + 1) + (w^2 + w + 1)
    (4.25, 3.0)
    """
    if inputs.ndim != 3 or state.ndim != 2 or len(inputs) != len(state):
        raise ShapeMismatch(
            "real_time_gradient: `inputs` must be (B, T, D) and `state` (B, H); got "
            f"{tuple(inputs.shape)} and {tuple(state.shape)}."
        )
    names, shapes = list(parameters), [parameters[name].shape for name in parameters]
    sizes = [shape.numel() for shape in shapes]
    flat = torch.cat([parameters[name].detach().reshape(-1) for name in names])

    def named(vector: Tensor) -> dict[str, Tensor]:
        parts = vector.split(sizes)
        return {n: p.view(s) for n, p, s in zip(names, parts, shapes, strict=True)}

    def one(vector: Tensor, h: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        found = step(named(vector), h, x)
        return found, found

    def cost(vector: Tensor, h: Tensor, t: int) -> Tensor:
        return loss(named(vector), h, t)

    slopes = vmap(jacrev(one, argnums=(0, 1), has_aux=True), in_dims=(None, 0, 0))
    if sensitivity is None:
        sensitivity = flat.new_zeros(*state.shape, len(flat))
    gradient, total = torch.zeros_like(flat), flat.new_zeros(())
    for t in range(inputs.shape[1]):
        (by_parameters, by_state), state = slopes(flat, state, inputs[:, t])
        sensitivity = torch.baddbmm(by_parameters, by_state, sensitivity)
        (direct, by_h), cost_t = grad_and_value(cost, argnums=(0, 1))(flat, state, t)
        gradient = gradient + direct + torch.einsum("bh,bhp->p", by_h, sensitivity)
        total = total + cost_t
    return RealTimeGradient(total, named(gradient), state, sensitivity)
