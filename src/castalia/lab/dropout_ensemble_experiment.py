"""Dropout as an ensemble: all masks at once, some masks at random, one pass with scaled weights.

Softmax regression on 13 inputs has 2^13 = 8192 sub-networks, few enough to compute every one. The
mean over k random masks tends to the mean over all as 1/sqrt(k); the normalised geometric mean over
all is softmax(W x / 2 + b), the pass with halved weights, exactly.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_wine
from torch import Tensor, nn

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.linear import SoftmaxRegression
from castalia.nn import MonteCarloDropout, OriginalDropout, all_masks, geometric_ensemble
from castalia.utils.figure_style import COLOURS, INK, caption
from castalia.utils.seeds import seed_scope

__all__ = ["mean_over_masks", "run"]

KEEP = 0.5


def mean_over_masks(weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    """Return the mean of softmax(W (mu * x) + b) over all masks mu, (B, K)."""
    masks = all_masks(x.shape[1], like=x)
    return torch.stack([((masks * row) @ weight.T + bias).softmax(dim=1).mean(0) for row in x])


def run(*, quick: bool = False) -> Outcome:
    """Compare sampled masks and scaled weights with the means over all masks."""
    rows, y = load_wine(return_X_y=True)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    model = SoftmaxRegression().fit(rows, y)
    x = torch.from_numpy(rows[:: 6 if quick else 1])
    linear = nn.Linear(x.shape[1], len(model.coef_), dtype=torch.float64)
    linear.weight.data, linear.bias.data = map(torch.as_tensor, (model.coef_, model.intercept_))
    net = nn.Sequential(OriginalDropout(KEEP), linear).eval()
    with torch.no_grad(), seed_scope(0):
        exact = mean_over_masks(linear.weight, linear.bias, x)
        geometric = geometric_ensemble(linear.weight, linear.bias, x, keep=KEEP)
        scaled = net(x).softmax(dim=1)
        drawn = MonteCarloDropout(net, 1024, link=lambda out: out.softmax(dim=1)).sample(x)
    k = 2 ** np.arange(11)
    sums = drawn.cumsum(dim=0)[k - 1]  # (11, B, K)
    away = sums / torch.from_numpy(k)[:, None, None] - exact
    error = away.square().mean(dim=(1, 2)).sqrt().numpy()
    slope = float(np.polyfit(np.log(k), np.log(error), 1)[0])
    apart = float((scaled - exact).square().mean().sqrt())
    figure, (left, right) = panels(2, (9, 3.8))
    left.loglog(k, error, "o", color=COLOURS[0], ms=4.5, label="k random masks")
    left.loglog(k, error[0] / np.sqrt(k), color=INK, lw=1, label="1/√k")
    left.axhline(apart, color=COLOURS[1], lw=1.4, ls=(0, (4, 2)), label="one scaled pass")
    left.set(xlabel="masks k", ylabel="distance from the mean over all masks")
    for values, name, colour in (
        (exact, "arithmetic mean", COLOURS[2]),
        (geometric, "geometric mean", COLOURS[1]),
    ):
        right.scatter(
            scaled.numpy().ravel(), values.numpy().ravel(), s=9, lw=0, color=colour, label=name
        )
    right.plot([0, 1], [0, 1], color=INK, lw=0.8, zorder=1)
    right.set(xlabel="probability with halved weights", ylabel="probability over all 8192 masks")
    caption(left)
    caption(right)
    numbers = {
        "exponent of k": slope,
        "gap to the geometric mean": float((scaled - geometric).abs().max()),
        "gap to the arithmetic mean": float((scaled - exact).abs().max()),
        "same answers": float((scaled.argmax(1) == exact.argmax(1)).double().mean()),
    }
    said = (
        f"The error of k masks falls as k^{slope:.2f}; halved weights give the geometric mean over "
        f"all masks to {numbers['gap to the geometric mean']:.0e}."
    )
    return Outcome(figure, numbers, said)
