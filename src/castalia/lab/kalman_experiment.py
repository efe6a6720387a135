"""A Kalman filter: a moving body, seen through noise and not seen at all for a while.

Position and velocity of a body that is pushed at random; only its position is measured. The filter
knows the past, the smoother also the future. Left, the track with a gap and two deviations either
side; right, mean errors against the noise of the measurements.
Reference: 1960, Kalman, A new approach to linear filtering and prediction problems.
"""

from __future__ import annotations

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels, plain_ticks
from castalia.models.sequence import KalmanFilter
from castalia.utils.figure_style import COLOURS, caption

__all__ = ["run", "track"]

PUSH = 0.05  # deviation of the change of velocity in a step
GAP = slice(40, 55)


def track(steps: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return positions, (T,), and measurements of them."""
    random = np.random.default_rng(seed)
    position = np.cumsum(np.cumsum(PUSH * random.normal(size=steps)))
    return position, position + noise * random.normal(size=steps)


def filter_of(noise: float) -> KalmanFilter:
    """Return the filter of the true system."""
    return KalmanFilter(
        transition=[[1.0, 1.0], [0.0, 1.0]],
        observation=[[1.0, 0.0]],
        process_noise=PUSH**2 * np.array([[1.0, 1.0], [1.0, 1.0]]) + 1e-9 * np.eye(2),
        measurement_noise=[[noise**2]],
        mean=[0.0, 0.0],
        covariance=np.eye(2),
    )


def run(*, quick: bool = False) -> Outcome:
    """Follow one track with a gap, and many in more and more noise."""
    seeds = 3 if quick else 20
    figure, (left, right) = panels(2, (11, 3.8))
    numbers: dict[str, float] = {}
    true, seen = track(100, 1.0, 3)
    holed = seen.copy()
    holed[GAP] = np.nan
    model = filter_of(1.0).fit(holed)
    for (name, (means, covariances)), colour in zip(
        (("filter", model.filter(holed)), ("smoother", model.smooth(holed))), COLOURS, strict=False
    ):
        spread = 2 * np.sqrt(covariances[:, 0, 0])
        left.plot(means[:, 0], color=colour, lw=1.2, label=name)
        left.fill_between(
            np.arange(100),
            means[:, 0] - spread,
            means[:, 0] + spread,
            color=colour,
            alpha=0.2,
            lw=0,
        )
        inside = np.abs(true - means[:, 0]) <= spread
        numbers[f"{name}: truth within two deviations"] = float(inside.mean())
        numbers[f"{name}: deviation in the gap"] = float(spread[GAP].max() / 2)
    left.plot(holed, ".", color="0.5", ms=4, label="measured")
    left.plot(true, "k", lw=1, label="true")
    left.set(xlabel="step", ylabel="position")
    caption(left, 4)
    noises = (0.3, 1.0, 3.0)
    errors = np.array([[_errors(noise, seed) for seed in range(seeds)] for noise in noises])
    means = np.sqrt(np.mean(errors, axis=1))  # (noises, ways)
    for column, name in enumerate(("measured", "filter", "smoother")):
        colour = ("0.5", *COLOURS)[column]
        right.loglog(noises, means[:, column], "o-", color=colour, label=name)
        numbers[f"{name}: error, noise 1"] = float(means[1, column])
    right.set(xlabel="deviation of measurements", ylabel="root mean squared error")
    plain_ticks(right.xaxis, noises)
    plain_ticks(right.yaxis, (0.1, 0.3, 1.0, 3.0))
    caption(right, 3)
    said = (
        f"In noise of 1 the filter is off by {numbers['filter: error, noise 1']:.2f} and the "
        f"smoother by {numbers['smoother: error, noise 1']:.2f}; in a gap of 15 steps the filter's "
        f"deviation grows to {numbers['filter: deviation in the gap']:.1f}, the smoother's to "
        f"{numbers['smoother: deviation in the gap']:.1f}."
    )
    return Outcome(figure, numbers, said)


def _errors(noise: float, seed: int) -> tuple[float, float, float]:
    """Return mean squares of what is measured, filtered and smoothed."""
    true, seen = track(100, noise, 100 + seed)
    model = filter_of(noise).fit(seen)
    guesses = (seen, model.filter(seen)[0][:, 0], model.smooth(seen)[0][:, 0])
    first, second, third = (float(np.mean((guess - true) ** 2)) for guess in guesses)
    return first, second, third
