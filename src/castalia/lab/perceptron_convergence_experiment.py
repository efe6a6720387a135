"""The perceptron rule: each mistake turns the line, until there are none; on XOR there always are.

After a mistake, w <- w + y x. Separable rows end it after finitely many corrections; where no line
separates the classes the rule never stops by itself, and a cap on the epochs must stop it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.linear import Perceptron
from castalia.utils.figure_style import COLOURS, INK, MUTED, caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["corners", "run", "sides", "walk"]

CAP = 30  # epochs


def sides(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points on both sides of a line, none within 0.02 of it."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (4 * n, 2))
    away = x @ np.array([0.8, 0.6]) - 0.2
    kept = np.flatnonzero(np.abs(away) > 0.02)[:n]
    return x[kept], np.sign(away[kept])


def corners(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points of exclusive or: the sign of x1 x2."""
    x = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return x, np.sign(x[:, 0] * x[:, 1])


def walk(x: np.ndarray, y: np.ndarray, cap: int = CAP) -> tuple[np.ndarray, np.ndarray]:
    """Return the corrections of each epoch, and (w1, w2, b) after it; stop without a mistake."""
    model = Perceptron()
    total: list[int] = [0]
    lines: list[list[float]] = []
    while len(lines) < cap and (len(total) < 2 or total[-1] > total[-2]):
        model.partial_fit(x, y, classes=[-1, 1])
        total.append(int(model.mistakes_[0]))
        lines.append([*model.coef_[0], model.intercept_[0]])
    return np.diff(total), np.array(lines)


def run(*, quick: bool = False) -> Outcome:
    """Count the corrections of every epoch on rows that a line separates, and on exclusive or."""
    rows, marks = sides(100, 0)
    line, lines = walk(rows, marks)
    xor, _ = walk(*corners(100, 0))
    figure, (left, right) = panels(2, (9, 3.6))
    _draw(left, rows, marks, lines)
    for counts, name, colour in ((line, "separable", COLOURS[0]), (xor, "XOR", COLOURS[1])):
        right.plot(1 + np.arange(len(counts)), counts, "o-", ms=3.5, color=colour, label=name)
    right.axvline(CAP, color=INK, lw=0.9, ls=(0, (3, 3)), label="cap")
    right.set(xlabel="epoch", ylabel="corrections of 100 rows", ylim=(-2, None))
    caption(right)
    fitted = Perceptron(margin="best").fit(rows, marks)
    numbers = {
        "epochs": float(len(line)),
        "corrections": float(line.sum()),
        "Novikoff's bound": float(fitted.novikoff_bound_[0]),
        "XOR epochs": float(len(xor)),
        "fewest XOR corrections": float(xor.min()),
    }
    said = (
        f"{line.sum()} corrections in {len(line)} epochs where a line separates the classes; on "
        f"XOR never fewer than {xor.min()} an epoch, up to the cap of {CAP}."
    )
    return Outcome(figure, numbers, said)


def _draw(ax: Axes, rows: np.ndarray, marks: np.ndarray, lines: np.ndarray) -> None:
    for sign, colour in ((-1, COLOURS[1]), (1, COLOURS[0])):
        x, y = rows[marks == sign].T
        ax.scatter(x, y, s=14, color=colour, alpha=0.75, linewidths=0)
    ends = np.array([-1.0, 1.0])
    for number, (w1, w2, b) in enumerate(lines, start=1):
        last = number == len(lines)
        ax.plot(
            ends,
            -(w1 * ends + b) / w2,
            color="black" if last else MUTED,
            lw=2 if last else 0.9,
            alpha=1 if last else 0.25 + 0.6 * number / len(lines),
            label={1: "after each epoch", len(lines): "at the end"}.get(number),
        )
    ax.set(xlabel="x1", ylabel="x2", xlim=(-1, 1), ylim=(-1, 1))
    caption(ax)
