"""Residual block as a step of an ordinary differential equation, dX/dt = F(X).

Euler           X_{t+1} = X_t + h F(X_t), a residual block; error O(h)
backward Euler  X_{t+1} = X_t + h F(X_{t+1}); error O(h)
Runge-Kutta     four evaluations a step; error O(h^4)

Where steps must be chosen by their error or memory must not grow with them, solve the equation with
``castalia.autodiff.odeint`` instead.
Reference: 2017, E, A proposal on machine learning via dynamical systems, Communications in
Mathematics and Statistics 5.
"""

from collections.abc import Callable

from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["ODEBlock"]

Field = Callable[[Tensor], Tensor]


def _euler(fn: Field, x: Tensor, h: float, iterations: int) -> Tensor:
    return x + h * fn(x)


def _backward_euler(fn: Field, x: Tensor, h: float, iterations: int) -> Tensor:
    """Solve z = x + h F(z) by repeating it, which converges where h times F's slope is below 1."""
    z = x
    for _ in range(iterations):
        z = x + h * fn(z)
    return z


def _rk4(fn: Field, x: Tensor, h: float, iterations: int) -> Tensor:
    k1 = fn(x)
    k2 = fn(x + h / 2 * k1)
    k3 = fn(x + h / 2 * k2)
    k4 = fn(x + h * k3)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


METHODS = {"euler": _euler, "backward_euler": _backward_euler, "rk4": _rk4}


class ODEBlock(nn.Module):
    """Several steps of one field, with the same weights in each.

    Parameters
    ----------
    fn
        The module F; its output has the shape of its input.
    steps
        Equal steps from 0 to ``time``; more are nearer to the equation's solution.
    time
        Where the solution is asked for.
    method
        ``"euler"``, ``"backward_euler"`` or ``"rk4"``.
    iterations
        How often backward Euler repeats its equation to solve it; what is left falls as that power
        of the step times F's slope, which must be below 1.

    Notes
    -----
    Gradients go through every step and repetition, so memory grows with their number.

    Examples
    --------
    One step of Euler is a residual block; many steps of dX/dt = X tend to e.

    >>> import torch
    >>> one = torch.ones(1, dtype=torch.float64)
    >>> ODEBlock(nn.Identity())(one), ODEBlock(nn.Identity(), steps=10, method="rk4")(one)
    (tensor([2.], dtype=torch.float64), tensor([2.7183], dtype=torch.float64))
    """

    def __init__(
        self,
        fn: nn.Module,
        *,
        steps: int = 1,
        time: float = 1.0,
        method: str = "euler",
        iterations: int = 10,
    ) -> None:
        super().__init__()
        if method not in METHODS:
            raise InvalidParameter(
                f"ODEBlock: `method` must be {listing(METHODS)}; got {method!r}."
                f"{did_you_mean(method, METHODS)}"
            )
        if steps < 1 or iterations < 1:
            raise InvalidParameter(
                f"ODEBlock: `steps` and `iterations` must be at least 1; got {steps} and "
                f"{iterations}."
            )
        self.fn, self.steps, self.time = fn, steps, time
        self.method, self.iterations = method, iterations

    def forward(self, x: Tensor) -> Tensor:
        """Return X(time) for X(0) = x."""
        step = METHODS[self.method]
        for _ in range(self.steps):
            x = step(self.fn, x, self.time / self.steps, self.iterations)
        return x

    def extra_repr(self) -> str:
        """Say how the equation is solved."""
        return f"steps={self.steps}, time={self.time}, method={self.method!r}"
