"""What real-time recurrent learning costs: the same gradient as through time, at another price.

Networks of more and more units, one sequence: forward sensitivities and back-propagation through
time agree to rounding; the products that one step of the first takes grow with the fourth power of
the units, those of the second with the square.
Reference: 1989, Williams, Zipser, A learning algorithm for continually running fully recurrent
neural networks, Neural Computation 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from castalia.autodiff import real_time_gradient
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels, plain_ticks
from castalia.utils.figure_style import COLOURS, caption

__all__ = ["run"]

STEPS = 4


def _network(units: int) -> tuple[dict[str, Tensor], Tensor]:
    source = torch.Generator().manual_seed(units)
    weights = torch.randn(units, units, generator=source, dtype=torch.float64) / units**0.5
    u = torch.randn(units, 1, generator=source, dtype=torch.float64)
    return {"w": weights, "u": u}, torch.randn(1, STEPS, 1, generator=source, dtype=torch.float64)


def _step(p: Mapping[str, Tensor], h: Tensor, x: Tensor) -> Tensor:
    return torch.tanh(h @ p["w"].T + x @ p["u"].T)


def _loss(p: Mapping[str, Tensor], h: Tensor, t: int) -> Tensor:
    return h.square().sum()


def forward_gradient(units: int) -> Callable[[], Tensor]:
    """Return what computes the gradient by W forwards in time."""
    p, x = _network(units)
    start = torch.zeros(1, units, dtype=torch.float64)
    return lambda: real_time_gradient(_step, _loss, p, x, start).gradients["w"]


def backward_gradient(units: int) -> Callable[[], Tensor]:
    """Return what computes it by back-propagation through time."""
    p, x = _network(units)

    def work() -> Tensor:
        w = p["w"].clone().requires_grad_()
        h, total = torch.zeros(1, units, dtype=torch.float64), torch.zeros(())
        for t in range(STEPS):
            h = _step({"w": w, "u": p["u"]}, h, x[:, t])
            total = total + _loss(p, h, t)
        return torch.autograd.grad(total, w)[0]

    return work


def run(*, quick: bool = False) -> Outcome:
    """Count products and seconds for several widths."""
    widths = (8, 16, 32) if quick else (8, 16, 32, 64, 96)
    ways = {"forwards (RTRL)": forward_gradient, "through time": backward_gradient}
    figure, axes = panels(2, (10, 3.8))
    numbers: dict[str, float] = {}
    gap = max(
        float((forward_gradient(n)() - backward_gradient(n)()).abs().max()) for n in widths[:2]
    )
    numbers["largest difference of the gradients"] = gap
    for (name, way), colour in zip(ways.items(), COLOURS, strict=False):
        found = np.array([_cost(way(n)) for n in widths])  # (widths, 2)
        for ax, column in zip(axes, found.T, strict=True):
            ax.loglog(widths, column, "o-", color=colour, label=name)
        slope = np.polyfit(np.log(widths[-2:]), np.log(found[-2:, 0]), 1)[0]
        numbers[f"exponent, {name}"] = float(slope)
    for ax, words in zip(axes, ("products of a gradient", "seconds of a gradient"), strict=True):
        ax.set(xlabel="units", ylabel=words)
        plain_ticks(ax.xaxis, widths)
        caption(ax, 2)
    said = (
        f"The gradients agree to {gap:.0e}; products grow with the power "
        f"{numbers['exponent, forwards (RTRL)']:.1f} of the units forwards in time, and "
        f"{numbers['exponent, through time']:.1f} through time."
    )
    return Outcome(figure, numbers, said)


def _cost(work: Callable[[], Tensor]) -> tuple[float, float]:
    """Return products and seconds, the best of three."""
    with FlopCounterMode(display=False) as counter:
        work()
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return float(counter.get_total_flops()), min(times)
