"""Adversarial examples: steps along the gradient's sign undo a classifier, random ones do not.

Every pixel moves by at most eps: by the sign of the loss's gradient (FGSM), by the best of several
projected steps (PGD), or by a random sign. The three changes have equal size in every pixel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from castalia.lab.digits import Digits, digits
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.nets.dense import MLP
from castalia.objectives import CrossEntropy, fgsm, pgd
from castalia.testing import train_tensors
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, caption
from castalia.utils.seeds import generator, seed_scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["answers", "attacked", "run", "trained"]

LIMITS = (0.0, 1.0)
EPS = 0.1  # of the digits drawn
SHOWN = (0, 2, 3, 5)


def trained(data: Digits, epochs: int) -> nn.Module:
    """Train a dense network on the pixels as they are."""
    with seed_scope(0):
        net = MLP(data.x.shape[1], 10, hidden=(128,))
    x, y = torch.from_numpy(data.x).float(), torch.from_numpy(data.y)
    training = Training(validation=0, verbose=False)
    train_tensors(
        net, CrossEntropy(), x, y, training=training, epochs=epochs, batch_size=64, lr=1e-3
    )
    return net.eval()


def attacked(net: nn.Module, x: Tensor, y: Tensor, eps: float) -> dict[str, Tensor]:
    """Return the inputs after each kind of change of size eps."""
    source = generator(0)
    sign = torch.randint(0, 2, x.shape, generator=source) * 2 - 1
    loss = CrossEntropy()
    return {
        "random signs": (x + eps * sign).clamp(*LIMITS),
        "FGSM": fgsm(net, loss, x, y, eps, limits=LIMITS),
        "PGD": pgd(net, loss, x, y, eps, limits=LIMITS, generator=source),
    }


def run(*, quick: bool = False) -> Outcome:
    """Measure the accuracy over eps, and show digits before and after."""
    data = digits(1000 if quick else 10_000, 300 if quick else 1000, small=quick)
    net = trained(data, epochs=30 if quick else 10)
    x, y = torch.from_numpy(data.x_test).float(), torch.from_numpy(data.y_test)
    sizes = np.linspace(0, 0.2, 5 if quick else 11)
    accuracy: dict[str, list[float]] = {}
    for eps in sizes:
        for name, changed in attacked(net, x, y, float(eps)).items():
            accuracy.setdefault(name, []).append(
                float((answers(net, changed) == y).double().mean())
            )
    figure, (left, right) = panels(2, (9.5, 3.6))
    for (name, values), colour in zip(accuracy.items(), COLOURS, strict=False):
        left.plot(sizes, values, "o-", ms=3.5, color=colour, label=name)
    left.set(xlabel="largest change of a pixel", ylabel="share right", ylim=(-0.03, 1.03))
    left.set_xticks(np.linspace(0, 0.2, 5))
    caption(left)
    _before_and_after(right, net, x, y, data.side)
    at = int(np.argmin(np.abs(sizes - EPS)))
    numbers = {
        "untouched": accuracy["FGSM"][0],
        **{f"{name} at {EPS}": values[at] for name, values in accuracy.items()},
    }
    said = (
        f"On {data.name}, {numbers['untouched']:.1%} right; with pixels moved by {EPS}, "
        f"{numbers[f'random signs at {EPS}']:.1%} at random, {numbers[f'FGSM at {EPS}']:.1%} by "
        f"FGSM and {numbers[f'PGD at {EPS}']:.1%} by PGD."
    )
    return Outcome(figure, numbers, said)


@torch.no_grad()
def answers(net: nn.Module, x: Tensor) -> Tensor:
    """Return the class of highest probability, (B,)."""
    found: Tensor = net(x).argmax(dim=1)
    return found


def _before_and_after(ax: Axes, net: nn.Module, x: Tensor, y: Tensor, side: int) -> None:
    """Draw digits that were right, above what FGSM makes of them, with the network's answers."""
    right = answers(net, x) == y
    chosen = torch.stack([(right & (y == digit)).nonzero()[0, 0] for digit in SHOWN])
    before, true = x[chosen], y[chosen]
    after = fgsm(net, CrossEntropy(), before, true, EPS, limits=LIMITS)
    rows = [torch.cat(list(part.view(-1, side, side)), dim=1) for part in (before, after)]
    ax.imshow(torch.cat(rows).numpy(), cmap="gray_r", vmin=0, vmax=1)
    centres = side * (np.arange(len(SHOWN)) + 0.5) - 0.5
    for at, was, now in zip(centres, true.tolist(), answers(net, after).tolist(), strict=True):
        ax.text(at, -0.06 * side, str(was), ha="center", va="bottom", color=COLOURS[0], size=12)
        wrong = COLOURS[4] if now != was else COLOURS[0]
        ax.text(at, 2.06 * side, str(now), ha="center", va="top", color=wrong, size=12)
    ax.set_xticks([])
    ax.set_yticks([side / 2, 1.5 * side], ["before", f"FGSM {EPS}"])
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
