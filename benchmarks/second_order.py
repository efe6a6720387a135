"""Gradient evaluations to the loss that tuned SGD with momentum reaches: the library's optimizers.

All take the gradient of the whole data; a loss without its gradient and a product with curvature
count as one evaluation each. Times are not measured, so the figures do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness import Bar, Report, main
from castalia.optim import ConjugateGradient, HessianFree, closure_kind

WIDTHS = (64, 32, 16, 8, 16, 32, 64)
RATES = (0.3, 1.0, 2.0)

Curve = list[tuple[int, float]]  # evaluations so far, loss
Make = Callable[[list[Tensor]], torch.optim.Optimizer]


@dataclass(frozen=True)
class Size:
    rows: int
    evaluations: int


SIZES = {"full": Size(400, 600), "quick": Size(100, 200), "tiny": Size(20, 30)}


@dataclass(frozen=True)
class Problem:
    """Parameters, their outputs and the loss of those, made anew for every contender."""

    name: str
    make: Callable[[], tuple[list[Tensor], Callable[[], Tensor], Callable[[Tensor], Tensor]]]
    momenta: tuple[float, ...] = (0.9,)
    rates: tuple[float, ...] = RATES
    bar: bool = True


def quadratic(dimensions: int = 50, condition: float = 1e4) -> Problem:
    """f(w) = sum h_i w_i^2 / 2 with h from 1 down to 1/condition, from w = 1."""
    curvatures = torch.logspace(0, -torch.tensor(condition).log10().item(), dimensions)

    def make():
        w = torch.ones(dimensions, requires_grad=True)
        return [w], lambda: w * 1.0, lambda z: 0.5 * (curvatures * z * z).sum()

    title = f"quadratic, {dimensions} dimensions, condition {condition:,.0f}"
    return Problem(title, make, momenta=(0.9, 0.98), rates=(0.1, 0.3, 1.0, 3.0))


def autoencoder(activation: type[nn.Module], rows: int) -> Problem:
    """Digits through 64-32-16-8-16-32-64, squared error."""
    from sklearn.datasets import load_digits

    x = torch.tensor(load_digits().data[:rows] / 16, dtype=torch.float32)

    def make():
        torch.manual_seed(0)
        layers: list[nn.Module] = []
        for fan_in, fan_out in zip(WIDTHS, WIDTHS[1:], strict=False):
            layers += [nn.Linear(fan_in, fan_out), activation()]
            nn.init.xavier_normal_(layers[-2].weight)
            nn.init.zeros_(layers[-2].bias)
        net = nn.Sequential(*layers[:-1])
        return list(net.parameters()), lambda: net(x), lambda z: (z - x).square().mean()

    # With tanh nothing saturates, and a well-tuned momentum is hard to beat: shown, no bar.
    title = f"deep {activation.__name__.lower()} autoencoder of digits"
    return Problem(title, make, bar=activation is nn.Sigmoid)


def descend(problem: Problem, make: Make, evaluations: int) -> Curve:
    """Run one optimizer; return the lowest loss so far after every step."""
    parameters, outputs, loss_of = problem.make()
    optimizer = make(parameters)
    by_gradient = closure_kind(type(optimizer)) in (None, "gradients")
    calls = 0

    def closure() -> Any:
        nonlocal calls
        calls += 1
        if not by_gradient:
            return outputs(), loss_of
        optimizer.zero_grad()
        loss = loss_of(outputs())
        loss.backward()
        return loss.detach()

    def loss() -> float:
        with torch.no_grad():
            return float(loss_of(outputs()))

    curve = [(0, loss())]
    while curve[-1][0] < evaluations:
        optimizer.step(closure)
        used = getattr(optimizer, "evaluations", calls)
        if used == curve[-1][0]:  # it has found its minimum
            break
        curve.append((used, min(loss(), curve[-1][1])))
    return [(used, value) for used, value in curve if used <= evaluations]


def momentum(rate: float, share: float) -> Make:
    return lambda parameters: torch.optim.SGD(parameters, lr=rate, momentum=share)


CONTENDERS: dict[str, Make] = {
    "ConjugateGradient": lambda parameters: ConjugateGradient(parameters, iterations=20),
    "HessianFree": lambda parameters: HessianFree(parameters),
    "torch's LBFGS": lambda parameters: torch.optim.LBFGS(
        parameters, line_search_fn="strong_wolfe"
    ),
}


def curves(problem: Problem, evaluations: int) -> dict[str, Curve]:
    """The best of several settings of SGD with momentum, and one run of every other."""
    tried = {
        f"SGD, momentum {share:g}, rate {rate:g}": descend(
            problem, momentum(rate, share), evaluations
        )
        for share in problem.momenta
        for rate in problem.rates
    }
    best = min(tried, key=lambda name: tried[name][-1][1])
    found = {best: tried[best]}
    return found | {name: descend(problem, make, evaluations) for name, make in CONTENDERS.items()}


def needed(curve: Curve, loss: float) -> int | None:
    """Evaluations to reach a loss, or None."""
    return next((used for used, value in curve if value <= loss), None)


def problems(size: Size) -> list[Problem]:
    nets = [autoencoder(activation, size.rows) for activation in (nn.Sigmoid, nn.Tanh)]
    return [quadratic(), *nets]


def run(scale: str = "full") -> Report:
    """Count evaluations on a quadratic and on two deep autoencoders."""
    size = SIZES[scale]
    lines = [
        "| problem | optimizer | lowest loss | evaluations to SGD's loss |",
        "|---|---|---|---|",
    ]
    bars, figures = [], {}
    for problem in problems(size):
        found = curves(problem, size.evaluations)
        base = next(iter(found))
        goal = found[base][-1][1] * (1 + 1e-6)  # rounding
        own = needed(found[base], goal)
        for name, curve in found.items():
            used = needed(curve, goal)
            said = f"not in {size.evaluations:,}" if used is None else f"{used:,}"
            lines.append(f"| {problem.name} | {name} | {curve[-1][1]:.3g} | {said} |")
            if problem.bar and name in ("ConjugateGradient", "HessianFree"):
                share = float("inf") if used is None else used / own
                what = f"{name} on the {problem.name}: evaluations over SGD's"
                bars.append(Bar(what, share, "<=", 1.0))
        figures[problem.name] = found
    setting = (
        f"Whole-batch gradients, at most {size.evaluations:,} evaluations, {size.rows} digits; SGD "
        "with momentum at the best of several rates."
    )
    return Report("second_order", setting, "\n".join(lines), bars, figures)


if __name__ == "__main__":
    main(run)
