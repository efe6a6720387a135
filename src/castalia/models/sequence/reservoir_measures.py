"""What a reservoir can do before anything is trained: remember, and forget where it began."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from castalia.models.sequence.reservoir import Reservoir, spectral_radius

__all__ = ["EchoStateReport", "MemoryCapacity", "echo_state_property", "memory_capacity"]


@dataclass(frozen=True)
class MemoryCapacity:
    """How much of each past input can be read from the state.

    Attributes
    ----------
    total
        Sum over the delays; a linear reservoir of N units reaches N at most.
    by_delay
        Squared correlation of the readout with the input k = 1, 2 … steps before, (K,).
    """

    total: float
    by_delay: np.ndarray


def memory_capacity(
    reservoir: Reservoir,
    *,
    delays: int | None = None,
    steps: int | None = None,
    alpha: float = 1e-12,
    random_state: int = 0,
) -> MemoryCapacity:
    """Drive a reservoir with noise and read the past from its states, on steps not fitted.

    Parameters
    ----------
    reservoir
        With one input.
    delays
        Most steps back; None: twice the units.
    steps
        Length of the noise; None: 60 for each unit, at least 2,000.
    alpha
        Penalty of the readout, relative to the mean square of the states.
    random_state
        Seed of the noise.

    References
    ----------
    2002, Jaeger, Short term memory in echo state networks.

    Examples
    --------
    >>> from castalia.models.sequence.reservoir import random_reservoir
    >>> line = random_reservoir(20, 1, activation="identity", topology="ring", radius=0.9)
    >>> 18 < memory_capacity(line).total <= 20
    True
    """
    n = reservoir.units
    delays, steps = delays or 2 * n, steps or max(2_000, 60 * n)
    u = np.random.default_rng(random_state).uniform(-0.5, 0.5, steps + delays)
    states = reservoir.run(torch.from_numpy(u)[None, :, None])[0, delays:].numpy()
    past = np.stack([u[delays - k : delays - k + steps] for k in range(1, delays + 1)], axis=1)
    half = steps // 2
    z = np.hstack([states, np.ones((steps, 1))])
    gram = z[:half].T @ z[:half]
    gram += alpha * np.trace(gram) / len(gram) * np.eye(len(gram))
    read = z[half:] @ np.linalg.lstsq(gram, z[:half].T @ past[:half], rcond=1e-15)[0]
    true = past[half:]
    read, true = read - read.mean(axis=0), true - true.mean(axis=0)
    shared = np.square((read * true).mean(axis=0))
    by_delay = shared / np.maximum(read.var(axis=0) * true.var(axis=0), 1e-300)
    return MemoryCapacity(float(by_delay.sum()), by_delay)


@dataclass(frozen=True)
class EchoStateReport:
    """Whether a reservoir forgets where it began.

    Attributes
    ----------
    holds
        Whether states that began apart are one at the end, to a millionth of where they began.
    spectral_radius, norm
        Largest modulus of an eigenvalue of W, and its largest singular value. Without leak, a norm
        below 1 is enough; a radius below 1 is neither enough nor needed.
    rate
        Growth of the distance for each step, as a logarithm, while it is above rounding: the
        largest Lyapunov exponent under this input, where that is negative.
    distances
        Largest distance between states that began apart, step by step, (T,).
    """

    holds: bool
    spectral_radius: float
    norm: float
    rate: float
    distances: np.ndarray

    @property
    def contractive(self) -> bool:
        """Whether every step brings all states nearer to each other, whatever the input."""
        return self.norm < 1

    def __str__(self) -> str:
        """Say it in a sentence."""
        verdict = "forgets where it began" if self.holds else "remembers where it began"
        return (
            f"The reservoir {verdict}: distances change by a factor {np.exp(self.rate):.3g} a step "
            f"(spectral radius {self.spectral_radius:.3g}, norm {self.norm:.3g})."
        )


def echo_state_property(
    reservoir: Reservoir,
    x: np.ndarray | None = None,
    *,
    steps: int = 500,
    starts: int = 4,
    random_state: int = 0,
) -> EchoStateReport:
    """Drive copies of a reservoir from several states with one input, and watch their distance.

    Parameters
    ----------
    reservoir
        Without feedback.
    x
        Input, (T, D); None: zero, the hardest case for saturating units.
    steps
        Length of the zero input.
    starts
        Number of random first states.
    random_state
        Their seed.

    References
    ----------
    2012, Yildiz, Jaeger, Kiebel, Re-visiting the echo state property.

    Examples
    --------
    >>> from castalia.models.sequence.reservoir import random_reservoir
    >>> [echo_state_property(random_reservoir(50, 1, radius=r)).holds for r in (0.9, 2.0)]
    [True, False]
    """
    d = reservoir.inputs.shape[1]
    given = np.zeros((steps, d)) if x is None else np.asarray(x, dtype=np.float64).reshape(-1, d)
    drawn = np.random.default_rng(random_state).uniform(-1, 1, (starts, reservoir.units))
    driven = torch.from_numpy(np.broadcast_to(given, (starts, *given.shape)).copy())
    states = reservoir.run(driven, state=torch.from_numpy(drawn)).numpy()
    apart = np.linalg.norm(states - states[:1], axis=2).max(axis=0)
    begin = np.linalg.norm(drawn - drawn[:1], axis=1).max()
    above = np.flatnonzero(apart > 1e-10 * begin)
    last = int(above[-1]) if len(above) else 0
    rate = float(np.log(max(apart[last], 1e-300) / begin) / (last + 1))
    norm = float(np.linalg.norm(reservoir.weights.toarray(), 2))
    return EchoStateReport(
        bool(apart[-1] <= 1e-6 * begin), spectral_radius(reservoir.weights), norm, rate, apart
    )
