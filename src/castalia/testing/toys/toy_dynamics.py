"""Toy series with a hidden state behind them."""

from __future__ import annotations

import numpy as np

__all__ = ["narma", "plant", "regimes", "voices", "wander"]

Data = tuple[np.ndarray, np.ndarray]


def regimes(n: int = 40, steps: int = 60, seed: int = 0) -> tuple[np.ndarray, None]:
    """Two regimes that last ten steps on average, of means 0 and 0.4 and deviation 0.1.

    The chain's own log-likelihood is about 0.53 a step; that of one normal distribution 0.07.

    >>> regimes()[0].shape
    (40, 60, 1)
    """
    random = np.random.default_rng(seed)
    changes = (random.random((n, steps)) < 0.1).cumsum(axis=1)
    states = (random.integers(2, size=(n, 1)) + changes) % 2
    return (0.4 * states + 0.1 * random.normal(size=(n, steps)))[..., None], None


def wander(n: int = 20, steps: int = 60, seed: int = 0) -> tuple[np.ndarray, None]:
    """An oscillation with a drifting phase, measured with noise of deviation 0.1.

    The system's own log-likelihood is about 0.25 a step; that of white noise about -0.49.

    >>> wander()[0].shape
    (20, 60, 1)
    """
    random = np.random.default_rng(seed)
    turn = 0.97 * np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    state, seen = 0.3 * random.normal(size=(n, 2)), []
    for _ in range(steps):
        seen.append(state[:, :1] + 0.1 * random.normal(size=(n, 1)))
        state = state @ turn.T + 0.1 * random.normal(size=(n, 2))
    return np.stack(seen, axis=1), None


def plant(n: int = 20, steps: int = 80, noise: float = 0.02, seed: int = 0) -> Data:
    """A damped oscillator pushed at random, and its position in noise; the best R2 is about 0.999.

    >>> [part.shape for part in plant()]
    [(20, 80, 1), (20, 80, 1)]
    """
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, steps, 1))
    turn = 0.9 * np.array([[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]])
    state, seen = np.zeros((n, 2)), []
    for t in range(steps):
        state = state @ turn.T + X[:, t] * np.array([1.0, 0.5])
        seen.append(state[:, :1] + noise * random.normal(size=(n, 1)))
    return X, np.stack(seen, axis=1)


def narma(n: int = 8, steps: int = 200, order: int = 10, seed: int = 0) -> Data:
    """NARMA: each output depends on its past ten and on inputs now and ten steps ago.

    y_{t+1} = 0.3 y_t + 0.05 y_t sum_{i<10} y_{t-i} + 1.5 x_{t-9} x_t + 0.1, x uniform in (0, 0.5).

    >>> [part.shape for part in narma()]
    [(8, 200, 1), (8, 200, 1)]
    """
    random = np.random.default_rng(seed)
    before = 50
    x, y = random.uniform(0, 0.5, (n, before + steps)), np.zeros((n, before + steps + 1))
    for t in range(order - 1, before + steps):
        past = y[:, t - order + 1 : t + 1].sum(axis=1)
        late = 1.5 * x[:, t - order + 1] * x[:, t]
        y[:, t + 1] = 0.3 * y[:, t] + 0.05 * y[:, t] * past + late + 0.1
    return x[:, before:, None], y[:, before + 1 :, None]


def voices(n: int = 240, steps: int = 32, noise: float = 0.3, seed: int = 0) -> Data:
    """Signals of a low, a middle or a high tone, of any phase and in noise, as sequences.

    >>> X, y = voices()
    >>> X.shape, sorted(set(y.tolist()))
    ((240, 32, 1), [0, 1, 2])
    """
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3
    period = np.array([12.0, 6.0, 3.0])[y, None]
    phase = random.uniform(0, 2 * np.pi, (n, 1))
    wave = np.sin(2 * np.pi * np.arange(steps) / period + phase)
    return (wave + noise * random.normal(size=wave.shape))[..., None], y
