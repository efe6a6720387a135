"""Images as solutions: pixels that bring a function of them to a minimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from castalia.errors import SolverFailed

__all__ = ["synthesise"]

CHUNK = 10  # iterations between two lines of the history
MEMORY = 20  # pairs of steps and gradients that L-BFGS remembers


def synthesise(
    terms: Callable[[Tensor], Mapping[str, Tensor]],
    x: Tensor,
    *,
    steps: int = 200,
    tolerance: float = 0.0,
) -> tuple[Tensor, list[dict[str, float]]]:
    """Change the pixels of an image until a function of them is small.

    An inverse problem: a network is fixed, and its input is found by gradient descent (L-BFGS with
    a line search that never accepts a rise).

    Parameters
    ----------
    terms
        From pixels to ``{"loss": …, named parts}``.
    x
        Where to begin, (B, C, H, W); it is not changed.
    steps
        Iterations at most.
    tolerance
        Loss at which to stop.

    Returns
    -------
    Tensor
        The pixels found.
    list of dict
        Iteration, loss and parts, a line every ten iterations, from before the first to the last.

    Examples
    --------
    >>> x, history = synthesise(lambda x: {"loss": (x - 3).square().sum()}, torch.zeros(1, 1, 2, 2))
    >>> x.round().unique(), history[0]["loss"], history[-1]["loss"] < 1e-6
    (tensor([3.]), 36.0, True)
    """
    x = x.detach().clone(memory_format=torch.contiguous_format).requires_grad_()
    solver = torch.optim.LBFGS(
        [x],
        max_iter=CHUNK,
        max_eval=25 * CHUNK,
        history_size=MEMORY,
        tolerance_grad=0.0,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )
    seen: list[Mapping[str, Tensor]] = []
    history: list[dict[str, float]] = []

    def closure() -> Tensor:
        with torch.enable_grad():
            found = terms(x)
            (x.grad,) = torch.autograd.grad(found["loss"], x)
        loss = found["loss"].detach()
        if not seen and not bool(loss.isfinite()):
            raise SolverFailed(
                f"synthesise: the loss must be finite; got {float(loss)} after "
                f"{CHUNK * len(history)} iterations. Give smaller weights, or begin elsewhere."
            )
        seen.append({name: value.detach() for name, value in found.items()})
        return loss

    for step in [*range(0, steps, CHUNK), steps]:
        seen.clear()
        before = x.detach().clone()
        if step < steps:
            solver.param_groups[0]["max_iter"] = min(CHUNK, steps - step)
            solver.step(closure)  # type: ignore[no-untyped-call]
        else:
            closure()
        looked = {name: float(value) for name, value in seen[0].items()}  # before the step
        history.append({"step": float(step), **looked})
        if history[-1]["loss"] <= tolerance:
            return before, history
    return x.detach(), history
