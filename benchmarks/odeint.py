"""odeint: Lorenz systems with gradients against torchdiffeq, stiff equations against scipy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.integrate import solve_ivp
from torch import Tensor, nn

from benchmarks.harness import Bar, Contender, Report, installed, main, race, ratio, table


@dataclass(frozen=True)
class Size:
    batch: int
    end: float
    rounds: int
    stiff: float = 1.0  # share of the span of the stiff equations


SIZES = {"full": Size(256, 1.0, 15), "quick": Size(256, 0.5, 3), "tiny": Size(4, 0.1, 1, 1e-3)}
TOLERANCE = 1e-6
OUTPUTS = 5

Solver = Callable[..., Tensor]


class Lorenz(nn.Module):
    """dx = s (y - x), dy = x (r - z) - y, dz = x y - b z, with parameters s, r, b."""

    def __init__(self) -> None:
        super().__init__()
        self.rates = nn.Parameter(torch.tensor([10.0, 28.0, 8 / 3], dtype=torch.float64))

    def forward(self, t: Tensor, state: Tensor) -> Tensor:  # (B, 3)
        s, r, b = self.rates.unbind()
        x, y, z = state.unbind(-1)
        return torch.stack([s * (y - x), x * (r - z) - y, x * y - b * z], dim=-1)


@dataclass(frozen=True)
class Found:
    """The states and the gradients by the start and by the parameters."""

    parts: tuple[Tensor, ...]

    def error(self, exact: Found) -> float:
        """Largest error of a part relative to the part's largest entry."""
        pairs = zip(self.parts, exact.parts, strict=True)
        return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


def solved(solver: Solver, y0: Tensor, t: Tensor, tolerance: float) -> Found:
    """Integrate, and differentiate the mean square at the end."""
    field, y0 = Lorenz(), y0.clone().requires_grad_()
    y = solver(field, y0, t, method="dopri5", rtol=tolerance, atol=tolerance)
    gradients = torch.autograd.grad(y[-1].square().mean(), [y0, field.rates])
    return Found((y.detach(), *gradients))


def solvers() -> dict[str, Solver]:
    """The contenders that can be imported here, all with the adjoint's gradient."""
    from castalia.autodiff import odeint

    found: dict[str, Solver] = {"castalia": odeint}
    if installed("torchdiffeq"):
        import torchdiffeq

        theirs = torchdiffeq.odeint_adjoint
        found["torchdiffeq"] = theirs
        found["torchdiffeq, seminorm"] = partial(theirs, adjoint_options={"norm": "seminorm"})
    return found


def van_der_pol(stack: Callable[..., Any], y: Any) -> Any:
    """x' = v, v' = 1000 (1 - x^2) v - x, in numpy or torch."""
    return stack([y[1], 1000 * (1 - y[0] ** 2) * y[1] - y[0]])


def robertson(stack: Callable[..., Any], y: Any) -> Any:
    """Three substances that react at rates from 0.04 to 3e7."""
    a, b, c = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return stack([-a + b, a - b - c, c])


STIFF: dict[str, tuple[Callable[..., Any], list[float], float]] = {
    "van der Pol, mu = 1000": (van_der_pol, [2.0, 0.0], 3000.0),
    "Robertson": (robertson, [1.0, 0.0, 0.0], 1e5),
}


def stiff(name: str, size: Size) -> dict[str, Any]:
    """Race the implicit methods from start to end, without gradients."""
    from castalia.autodiff import odeint

    f, start, end = STIFF[name]
    span = (0.0, size.stiff * end)
    numbers = partial(solve_ivp, lambda t, y: f(np.array, y), span, start, method="Radau")
    exact = numbers(rtol=1e-11, atol=1e-14).y[:, -1]

    def digits(y: Any) -> float:
        return float(-np.log10(np.abs((np.asarray(y) - exact) / exact).max() + 1e-16))

    def ours() -> Callable[[], float]:
        y0 = torch.tensor(start, dtype=torch.float64)
        with torch.no_grad():
            y = odeint(lambda t, y: f(torch.stack, y), y0, span, "radau", rtol=1e-6, atol=1e-10)
        return lambda: digits(y[-1])

    def theirs() -> Callable[[], float]:
        y = numbers(rtol=1e-6, atol=1e-10).y[:, -1]
        return lambda: digits(y)

    rounds = min(size.rounds, 5)
    return race([Contender("castalia", ours), Contender("scipy's Radau", theirs)], rounds)


def run(scale: str = "full") -> Report:
    """Time forward and adjoint together; compare both with a solution to 1e-12."""
    from castalia.autodiff import odeint

    size = SIZES[scale]
    noise = torch.randn(size.batch, 3, generator=torch.Generator().manual_seed(0))
    y0 = noise.double() + torch.tensor([0.0, 0.0, 25.0], dtype=torch.float64)
    t = torch.linspace(0, size.end, OUTPUTS, dtype=torch.float64)
    exact = solved(lambda *a, **k: odeint(*a, adjoint=False, **k), y0, t, 1e-12)

    def contender(solver: Solver) -> Callable[[], Callable[[], float]]:
        def once() -> Callable[[], float]:
            found = solved(solver, y0, t, TOLERANCE)
            return lambda: -torch.tensor(found.error(exact)).log10().item()

        return once

    found = race([Contender(n, contender(s)) for n, s in solvers().items()], size.rounds)
    ours, bars = found["castalia"], []
    for name, theirs in list(found.items())[1:]:
        bars.append(Bar(f"times as fast as {name}", ratio(theirs, ours).median, ">=", 1.0))
        lost = (theirs.score or 0.0) - (ours.score or 0.0)
        bars.append(Bar(f"digits of accuracy less than {name}", lost, "<=", 0.05))
    setting = (
        f"Lorenz, batch {size.batch}, t = 0 to {size.end:g}, {OUTPUTS} output times, dopri5, "
        f"tolerance {TOLERANCE:g}, float64, forward and adjoint, one thread, {size.rounds} rounds. "
        "Digits: -log10 of the largest relative error of states and gradients."
    )
    figures = {name: vars(result) for name, result in found.items()}
    tables = [table(found, "castalia", score="digits")]
    for name in STIFF:
        raced = stiff(name, size)
        tables.append(f"{name}, implicit:\n\n{table(raced, 'castalia', score='digits')}")
        lost = raced["scipy's Radau"].score - raced["castalia"].score
        bars.append(Bar(f"digits less than scipy's Radau, {name}", lost, "<=", 1.0))
        figures |= {f"{name}, {who}": vars(result) for who, result in raced.items()}
    return Report("odeint", setting, "\n\n".join(tables), bars, figures)


if __name__ == "__main__":
    main(run)
