"""Drift: how large a change must be before a test sees it, and a stream that changes."""

from __future__ import annotations

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.strategies import AdaptiveWindow, DriftDetector
from castalia.utils.figure_style import COLOURS, INK, caption

__all__ = ["run"]

METHODS = {"columns": "each column", "mmd": "a kernel", "classifier": "a classifier"}


def run(*, quick: bool = False) -> Outcome:
    """Let two columns go together more and more, then let the errors of a stream jump."""
    ties, repeats = ((0.0, 0.9), 2) if quick else ((0.0, 0.2, 0.4, 0.6, 0.8), 25)
    methods = list(METHODS)[: 2 if quick else 3]
    seen = {m: [_seen(m, tie, repeats) for tie in ties] for m in methods}
    figure, (left, right) = panels(2, (9, 3.6))
    for (method, shares), colour in zip(seen.items(), COLOURS, strict=False):
        left.plot(ties, shares, "o-", ms=4, color=colour, label=METHODS[method])
    left.set(xlabel="correlation of two new columns", ylabel="drift found", ylim=(-0.03, 1.03))
    caption(left)
    sizes, means, change, found = _stream(600 if quick else 2000)
    right.plot(sizes, color=COLOURS[0], label="rows in the window")
    right.axvline(change, color=INK, lw=0.8, ls=(0, (4, 2)))
    right.set(xlabel="rows of a stream, whose errors double at the line", ylabel="rows")
    caption(right)
    numbers = {f"found, {METHODS[m]}": float(shares[-1]) for m, shares in seen.items()}
    numbers |= {f"false alarms, {METHODS[m]}": float(shares[0]) for m, shares in seen.items()}
    numbers |= {"rows until the jump was seen": float(found - change), "error after": means[-1]}
    said = (
        f"Two columns that go together ({ties[-1]:g}) are seen by a kernel in "
        f"{100 * seen['mmd'][-1]:.0f} % of the trials, by single columns in "
        f"{100 * seen['columns'][-1]:.0f} %; a doubled error rate is seen after "
        f"{found - change:.0f} rows."
    )
    return Outcome(figure, numbers, said)


def _seen(method: str, tie: float, repeats: int) -> float:
    """Return how often rows whose columns go together are distinguished from others."""
    found = []
    for seed in range(repeats):
        random = np.random.default_rng(seed)
        old = random.normal(size=(300, 4))
        new = random.normal(size=(300, 4))
        new[:, 1] = tie * new[:, 0] + (1 - tie**2) ** 0.5 * new[:, 1]  # its own law stays
        found.append(DriftDetector(method=method, random_state=seed).fit(old).test(new).drifted)
    return float(np.mean(found))


def _stream(n: int) -> tuple[list[int], list[float], int, int]:
    """Return the window's length and mean at each row, where errors double, and where it is cut."""
    random, change = np.random.default_rng(0), n // 2
    errors = random.random(n) < np.where(np.arange(n) < change, 0.3, 0.6)
    window, sizes, means = AdaptiveWindow(), list[int](), list[float]()
    cut = n
    for i, error in enumerate(errors):
        if window.update(float(error)) and i > change:
            cut = min(cut, i)
        sizes.append(len(window.values))
        means.append(window.mean)
    return sizes, means, change, cut
