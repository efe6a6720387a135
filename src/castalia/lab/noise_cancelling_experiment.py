"""Adaptive noise cancelling: a filter learns the path of the noise and subtracts it.

The primary channel receives s + n0, the reference only the noise n1; n0 is n1 through a path of
taps (0.8, -0.4, 0.2). The filter makes what is left small, and what is left is s. Where the
recording ``foetal-ecg`` is in the cache of ``castalia.data.datasets``, the same filter takes the
mother's heart out of a real abdominal lead and leaves the child's.

Reference: 1975, Widrow et al., Adaptive noise cancelling, Proc. IEEE 63.
"""

from __future__ import annotations

import numpy as np

from castalia.data import datasets
from castalia.errors import InvalidData
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.linear import AdaptiveFilter
from castalia.utils.figure_style import COLOURS, MUTED, caption

__all__ = ["run", "simulated"]

PATH = np.array([0.8, -0.4, 0.2])
HERTZ = 250  # of the recording


def simulated(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the signal, the noise on top of it, and the reference."""
    reference = np.random.default_rng(seed).normal(size=n)
    signal = 0.7 * np.sin(2 * np.pi * np.arange(n) / 50)
    return signal, np.convolve(reference, PATH)[:n], reference


def run(*, quick: bool = False) -> Outcome:
    """Cancel a simulated noise and, where the recording is at hand, a mother's heartbeat."""
    signal, noise, reference = simulated(10_000, 0)
    model = AdaptiveFilter(taps=3, lr=0.001, normalised=False)
    model.fit(reference[:, None], signal + noise)
    left_over = model.residual_ - signal
    settled = slice(len(signal) // 2, None)
    numbers = {
        **{f"tap {i}": float(tap) for i, tap in enumerate(model.coef_[0])},
        "noise power before": float(np.square(noise[settled]).mean()),
        "noise power after": float(np.square(left_over[settled]).mean()),
    }
    recording = None if quick else _recording()
    figure, axes = panels(1, (8.5, 3 if recording is None else 5.2), 1 if recording is None else 2)
    shown = slice(0, 1500)
    axes[0].plot((signal + noise)[shown], color=MUTED, lw=0.5, alpha=0.8, label="received")
    axes[0].plot(model.residual_[shown], color=COLOURS[0], lw=1.1, label="cleaned")
    axes[0].plot(signal[shown], color=COLOURS[1], lw=1.1, ls=(0, (4, 2)), label="signal")
    axes[0].set(xlabel="sample", ylabel="simulated", xlim=(0, 1500))
    if recording is not None:
        lead, cleaned = recording
        seconds = np.arange(len(lead)) / HERTZ
        axes[1].plot(seconds, lead, color=MUTED, lw=0.9, label="mother and child")
        axes[1].plot(seconds, cleaned, color=COLOURS[0], lw=1.2, label="child")
        axes[1].set(xlabel="seconds", ylabel="abdominal lead", xlim=(4, 10))
        numbers["heartbeats, power left"] = float((cleaned**2).mean() / (lead**2).mean())
    for ax in axes:
        caption(ax)
    said = (
        f"Noise power {numbers['noise power before']:.2f} before, "
        f"{numbers['noise power after']:.1e} after; the taps learnt are "
        f"{', '.join(f'{tap:.3f}' for tap in model.coef_[0])}."
    )
    return Outcome(figure, numbers, said)


def _recording() -> tuple[np.ndarray, np.ndarray] | None:
    """Return an abdominal lead before and after cancelling; None without the recording."""
    try:
        data = datasets.load("foetal-ecg")
    except InvalidData:
        return None
    leads = np.column_stack([data.column(name) for name in data.columns if name != "sample"])
    leads = leads - leads.mean(axis=0)
    lead, thorax = leads[:, 1], leads[:, 5:]
    model = AdaptiveFilter(taps=32, delay=16, lr=0.1, floor=1.0, epochs=20).fit(thorax, lead)
    return lead, model.residual_
