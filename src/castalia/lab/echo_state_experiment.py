"""Echo states: a random network forgets where it began, or does not, and free runs of one.

Left, copies of a reservoir from different states under one input: their distance for several
spectral radii. Middle, how many past inputs can be read from the states. Right, a network that was
fitted to predict the Mackey-Glass series by one step runs on by itself.
References: 2001, Jaeger, The echo state approach, GMD 148; 2004, Jaeger, Haas, Harnessing
nonlinearity, Science 304.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.sequence import (
    EchoStateNetwork,
    echo_state_property,
    memory_capacity,
    random_reservoir,
)
from castalia.utils.figure_style import COLOURS, caption

__all__ = ["mackey_glass", "run"]

RADII = (0.5, 0.9, 1.0, 1.5)


def mackey_glass(steps: int, *, tau: int = 17, seed: int = 0, fine: int = 10) -> np.ndarray:
    """Return the series x' = 0.2 x(t - tau) / (1 + x(t - tau)^10) - 0.1 x, a value a unit of time.

    Euler's method with ``fine`` steps a unit, after 500 units from a random beginning.
    """
    lag, total = tau * fine, (steps + 500) * fine
    x = np.empty(total + lag)
    x[:lag] = 1.2 + 0.2 * (np.random.default_rng(seed).random(lag) - 0.5)
    for t in range(lag, total + lag):
        late = x[t - lag]
        x[t] = x[t - 1] + (0.2 * late / (1 + late**10) - 0.1 * x[t - 1]) / fine
    return x[lag + 500 * fine :: fine]


def run(*, quick: bool = False) -> Outcome:
    """Measure forgetting, memory, and a free run."""
    units, steps, fit = (60, 200, 800) if quick else (100, 400, 3000)
    figure, (left, middle, right) = panels(3, (13, 3.6))
    numbers: dict[str, float] = {}
    input_ = np.random.default_rng(1).uniform(-0.1, 0.1, (steps, 1))
    for radius, colour in zip(RADII, COLOURS, strict=False):
        reservoir = random_reservoir(units, 1, radius=radius, seed=0)
        report = echo_state_property(reservoir, input_)
        left.semilogy(report.distances.clip(1e-16), color=colour, label=f"radius {radius:g}")
        numbers[f"distance at the end, radius {radius:g}"] = float(report.distances[-1])
    left.set(xlabel="step", ylabel="distance of states")
    caption(left, 2)
    _memory(middle, units, numbers)
    _free_run(right, units, fit, numbers)
    ends = [numbers[f"distance at the end, radius {radius:g}"] for radius in (0.9, 1.5)]
    said = (
        f"With a radius of 0.9 states that began apart end {ends[0]:.0e} apart, with 1.5 "
        f"{ends[1]:.2g}; {units} linear units in a ring remember "
        f"{numbers['memory, linear ring']:.1f} inputs, tanh ones {numbers['memory, tanh']:.1f}."
    )
    return Outcome(figure, numbers, said)


def _memory(ax: Any, units: int, numbers: dict[str, float]) -> None:
    kinds = {
        "linear ring": {"activation": "identity", "topology": "ring", "scale": 0.1},
        "linear": {"activation": "identity", "scale": 0.1},
        "tanh": {"scale": 1.0},
    }
    for (name, settings), colour in zip(kinds.items(), COLOURS, strict=False):
        found = memory_capacity(random_reservoir(units, 1, radius=0.95, seed=0, **settings))  # type: ignore[arg-type]
        shown = np.arange(1, len(found.by_delay) + 1)
        ax.plot(shown, found.by_delay, color=colour, label=f"{name}: {found.total:.1f} in all")
        numbers[f"memory, {name}"] = found.total
    ax.axvline(units, color="k", lw=0.8, ls=":")
    ax.set(xlabel="steps back", ylabel="squared correlation", xlim=(1, 1.5 * units))
    caption(ax, 2)


def _free_run(ax: Any, units: int, fit: int, numbers: dict[str, float]) -> None:
    ahead = 600
    series = np.tanh(mackey_glass(fit + ahead + 1) - 1)
    model = EchoStateNetwork(
        units=5 * units, spectral_radius=0.95, bias_scale=0.2, washout=100, alpha=1e-9,
        random_state=0,
    )  # fmt: skip
    model.fit(series[: fit - 1], series[1:fit])
    made = model.generate(ahead, series[: fit - 1])  # begins at step fit - 1
    true = series[fit - 1 : fit - 1 + ahead]
    apart = np.abs(made - true) > 0.1 * np.ptp(series)
    numbers["free run follows for"] = float(apart.argmax() if apart.any() else ahead)
    numbers["error 84 steps on"] = float(np.abs(made[83] - true[83]) / series.std())
    ax.plot(true, color="k", lw=1, label="Mackey–Glass, τ = 17")
    ax.plot(made, "--", color=COLOURS[1], lw=1, label="the network by itself")
    ax.set(xlabel="steps after the last one seen", ylabel="x")
    caption(ax, 2)
