"""Receptive fields: what an output can see, and what it does see.

Stacks of 3 x 3 convolutions see 1 + 2L pixels a side; with a stride of 2 at every second layer, or
dilations 1, 2, 4 ..., the field grows exponentially. The derivative by the pixels shows the field
exactly, and that its middle counts far more than its border.

Reference: 2016, Luo, Li, Urtasun, Zemel, Understanding the effective receptive field in deep
convolutional neural networks, NeurIPS, arXiv 1701.04128.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.nn import influence, receptive_field
from castalia.utils.figure_style import COLOURS, INK, caption, heat, whole_ticks
from castalia.utils.seeds import seed_scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["effective", "run", "stacks"]

SHARE = 0.9  # of the influence


def stacks(depth: int) -> dict[str, list[tuple[int, int, int]]]:
    """Return (kernel, stride, dilation) of every layer of three kinds of stacks.

    Every second layer of the strided one has a stride of 2; dilations are 1, 2, 4 and so on.
    """
    return {
        "plain": [(3, 1, 1)] * depth,
        "strided": [(3, 1 + i % 2, 1) for i in range(depth)],
        "dilated": [(3, 1, 2**i) for i in range(depth)],
    }


def effective(layers: list[tuple[int, int, int]], nets: int) -> np.ndarray:
    """Return the influence of every pixel on the middle output, a mean over random networks."""
    side = receptive_field(layers)[-1] + 8
    x = torch.zeros(1, 1, side, side)
    total = torch.zeros(side, side)
    for seed in range(nets):
        with seed_scope(seed):
            widths = [1, *[4] * len(layers)]
            convolutions = [
                nn.Conv2d(a, b, k, s, d * (k // 2), d, bias=False)
                for (k, s, d), a, b in zip(layers, widths, widths[1:], strict=False)
            ]
        total += influence(nn.Sequential(*convolutions), x)
    found: np.ndarray = (total / total.sum()).numpy()
    return found


def support(seen: np.ndarray) -> int:
    """Return the side of the box around the pixels with any influence."""
    rows = np.flatnonzero(seen.sum(axis=1))
    return int(rows[-1] - rows[0] + 1)


def holding(seen: np.ndarray, share: float = SHARE) -> int:
    """Return the side of the smallest box about the middle that holds so much of the influence."""
    middle = len(seen) // 2
    for reach in range(middle + 1):
        box = slice(middle - reach, middle + reach + 1)
        if seen[box, box].sum() >= share:
            return 2 * reach + 1
    return len(seen)


def run(*, quick: bool = False) -> Outcome:
    """Draw how fields grow, and what is seen within two of about the same size."""
    depth, nets = (8, 4) if quick else (20, 30)
    dilated = 3 if quick else 4  # layers with a field about as large
    figure, axes = panels(3, (10.5, 3.5))
    for (name, layers), colour in zip(stacks(10).items(), COLOURS, strict=False):
        axes[0].plot(range(1, 11), receptive_field(layers), "o-", ms=3.5, color=colour, label=name)
    axes[0].set(xlabel="layers", ylabel="pixels seen, a side", yscale="log", ylim=(2, 4000))
    whole_ticks(axes[0].xaxis)
    caption(axes[0])
    both = {"plain": stacks(depth)["plain"], "dilated": stacks(dilated)["dilated"]}
    numbers: dict[str, float] = {}
    for ax, (name, layers) in zip(axes[1:], both.items(), strict=True):
        seen = effective(layers, nets)
        field = receptive_field(layers)[-1]
        _draw(ax, seen, field, f"{len(layers)} {name} layers")
        numbers |= {
            f"{name}: field": float(field),
            f"{name}: support of the gradient": float(support(seen)),
            f"{name}: side with 90 % of the influence": float(holding(seen)),
        }
    for name, layers in stacks(10).items():
        numbers[f"ten layers, {name}"] = float(receptive_field(layers)[-1])
    sees, kept = numbers["plain: field"], numbers["plain: side with 90 % of the influence"]
    said = (
        f"{depth} plain layers see {sees:.0f} x {sees:.0f} pixels, but {SHARE:.0%} of the "
        f"influence comes from the {kept:.0f} x {kept:.0f} in the middle."
    )
    return Outcome(figure, numbers, said)


def _draw(ax: Axes, seen: np.ndarray, field: int, title: str) -> None:
    middle, kept = len(seen) // 2, holding(seen)
    ax.imshow(np.sqrt(seen), cmap=heat())
    for side, look in ((field, "-"), (kept, (0, (3, 2)))):
        corner = middle - side / 2
        xs = np.array([0, 1, 1, 0, 0]) * side + corner
        ys = np.array([0, 0, 1, 1, 0]) * side + corner
        ax.plot(xs, ys, color=INK, lw=1.2, ls=look)
    ax.set(xticks=[], yticks=[], title=title)
    ax.set_xlabel(
        f"field {field} x {field}; dashed, {SHARE:.0%} of\nthe influence: {kept} x {kept}"
    )
    ax.grid(False)
    ax.spines[:].set_visible(False)
