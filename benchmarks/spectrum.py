"""The five largest eigenvalues of a Hessian: Lanczos against power iteration with deflation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor, nn

from benchmarks.harness import Bar, Contender, Report, main, race, ratio, table

TOP = 5
ACCURACY = 1e-3  # both must have every eigenvalue to this relative error


@dataclass(frozen=True)
class Size:
    hidden: tuple[int, int]
    rows: int
    warm_up: int  # gradient steps before the Hessian is looked at
    rounds: int
    steps: int = 2_000  # of power iteration, at most, for one eigenvector


SIZES = {
    "full": Size((4_000, 185), 256, 100, 3),  # 1,002,045 parameters
    "quick": Size((500, 100), 256, 50, 3),
    "tiny": Size((8, 4), 32, 5, 1, steps=50),
}


def problem(size: Size) -> tuple[Callable[[nn.Module], Tensor], nn.Module]:
    """The cross-entropy of a network on the digits, some steps into its training."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    x, target = torch.as_tensor(X[: size.rows] / 16).float(), torch.as_tensor(y[: size.rows])
    first, second = size.hidden
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = (nn.Linear(64, first), nn.Tanh(), nn.Linear(first, second), nn.Tanh())
        net = nn.Sequential(*layers, nn.Linear(second, 10))

    def loss(net: nn.Module) -> Tensor:
        return nn.functional.cross_entropy(net(x), target)

    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(size.warm_up):
        optimizer.zero_grad()
        loss(net).backward()
        optimizer.step()
    return loss, net


def products(
    loss: Callable[[nn.Module], Tensor], net: nn.Module
) -> tuple[int, Callable[[Tensor], Tensor]]:
    """The number of parameters n, and v -> H v; the gradient's graph is built once."""
    parameters = list(net.parameters())
    gradients = torch.autograd.grad(loss(net), parameters, create_graph=True)
    sizes = [p.numel() for p in parameters]

    def product(v: Tensor) -> Tensor:
        pieces = [s.view_as(p) for s, p in zip(v.split(sizes), parameters, strict=True)]
        parts = torch.autograd.grad(gradients, parameters, pieces, retain_graph=True)
        return torch.cat([part.reshape(-1) for part in parts])

    return sum(sizes), product


def power_iteration(
    loss: Callable[[nn.Module], Tensor], net: nn.Module, tol: float, steps: int
) -> Tensor:
    """One eigenvector after the other, each kept orthogonal to those before it.

    As PyHessian does it: an eigenvalue is taken when its relative change in a step is below tol.
    """
    n, product = products(loss, net)
    source = torch.Generator().manual_seed(0)
    values: list[float] = []
    vectors: list[Tensor] = []
    for _ in range(TOP):
        v, value = torch.randn(n, generator=source), float("inf")
        for _ in range(steps):
            for u in vectors:
                v = v - (u @ v) * u
            v = v / v.norm()
            image = product(v)
            value, old = (image @ v).item(), value
            if abs(value - old) < tol * (abs(old) + 1e-6):
                break
            v = image
        values.append(value)
        vectors.append(v / v.norm())
    return torch.tensor(sorted(values, reverse=True), dtype=torch.float64)


def reference(loss: Callable[[nn.Module], Tensor], net: nn.Module) -> Tensor:
    """The values to a high accuracy, from ARPACK."""
    n, product = products(loss, net)
    operator = LinearOperator((n, n), lambda v: product(torch.as_tensor(v).reshape(-1)), "float32")
    values = eigsh(operator, k=TOP, which="LA", tol=1e-6, return_eigenvectors=False)
    return torch.tensor(sorted(values.tolist(), reverse=True), dtype=torch.float64)


def error(found: Tensor, truth: Tensor) -> float:
    """Largest relative error of the five values."""
    return ((found - truth).abs() / truth.abs()).max().item()


def equal_accuracy(run: Callable[[float], Tensor], truth: Tensor) -> tuple[float, float]:
    """The coarsest tolerance of a method that reaches the accuracy, and its error there."""
    for tol in (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6):
        reached = error(run(tol), truth)
        if reached <= ACCURACY:
            break
    return tol, reached


def run(scale: str = "full") -> Report:
    """Time both at the tolerance that gives them the same accuracy."""
    from castalia.autodiff import hessian_spectrum

    size = SIZES[scale]
    loss, net = problem(size)
    truth = reference(loss, net)

    def lanczos(tol: float) -> Tensor:
        return hessian_spectrum(loss, net, k=TOP, tol=tol, which="largest").largest

    def power(tol: float) -> Tensor:
        return power_iteration(loss, net, tol, size.steps)

    ours, theirs = equal_accuracy(lanczos, truth), equal_accuracy(power, truth)

    def contender(name: str, method: Callable[[float], Tensor], tol: float) -> Contender:
        def timed() -> Callable[[], float]:
            values = method(tol)
            return lambda: error(values, truth)

        return Contender(name, timed)

    contenders = [
        contender("castalia", lanczos, ours[0]),
        contender("power iteration", power, theirs[0]),
    ]
    found = race(contenders, size.rounds, warm_up=0)
    gain = ratio(found["power iteration"], found["castalia"], "wall").median
    n = sum(p.numel() for p in net.parameters())
    setting = (
        f"{n:,} parameters, {size.rows} digits, the {TOP} largest eigenvalues "
        f"({', '.join(f'{v:.4g}' for v in truth)}); tolerances {ours[0]:g} and {theirs[0]:g} give "
        f"relative errors {ours[1]:.1e} and {theirs[1]:.1e}; {size.rounds} rounds."
    )
    bars = [
        Bar("times as fast as power iteration (wall)", gain, ">=", 2.0),
        Bar("relative error, castalia", ours[1], "<=", ACCURACY),
        Bar("relative error, power iteration", theirs[1], "<=", ACCURACY),
    ]
    figures = {name: vars(result) for name, result in found.items()}
    return Report("spectrum", setting, table(found, "castalia", "error"), bars, figures)


if __name__ == "__main__":
    main(run)
