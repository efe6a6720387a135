"""Vanishing gradients: what a layer's activation leaves for the layers below it.

A gradient passes each layer through its weights and the slope of its activation. A sigmoid's slope
is at most 1/4, so the gradient falls by an order of magnitude every layer or two; tanh has slope 1
in the middle, ReLU where it is not silent; a residual connection has a way past both.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from castalia.lab.digits import Digits, digits
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.nn import Residual, activation, init, layer_gradients
from castalia.objectives import CrossEntropy
from castalia.testing import train_tensors
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, caption, whole_ticks
from castalia.utils.seeds import seed_scope

__all__ = ["build", "gradients", "losses", "run"]

DEPTH, WIDTH = 12, 32
# Activation, scheme of the weights, whether the layers are residual.
STACKS = {
    "sigmoid": ("sigmoid", "glorot", False),
    "tanh": ("tanh", "glorot", False),
    "ReLU": ("relu", "he", False),
    "sigmoid, residual": ("sigmoid", "glorot", True),
}


def build(name: str, inputs: int, seed: int = 0) -> nn.Sequential:
    """Build a deep stack of dense layers."""
    kind, scheme, residual = STACKS[name]
    with seed_scope(seed):
        layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), activation(kind)) for _ in range(DEPTH)]
        hidden = [Residual(layer) if residual else layer for layer in layers]
        net = nn.Sequential(nn.Linear(inputs, WIDTH), *hidden, nn.Linear(WIDTH, 10))
        init(net, scheme)
    return net


def gradients(name: str, x: Tensor, y: Tensor, seeds: int) -> np.ndarray:
    """Return the root mean squared gradient of each hidden layer's weights, before training."""
    found = []
    for seed in range(seeds):
        net = build(name, x.shape[1], seed)
        by_layer = layer_gradients(net, nn.functional.cross_entropy(net(x), y))
        found.append([float(g.square().mean().sqrt()) for g in list(by_layer.values())[1:-1]])
    mean: np.ndarray = np.exp(np.log(found).mean(axis=0))
    return mean


def losses(name: str, x: Tensor, y: Tensor, epochs: int) -> list[float]:
    """Return the training loss of every epoch."""
    net = build(name, x.shape[1])
    training = Training(validation=0, verbose=False)
    state = train_tensors(
        net, CrossEntropy(), x, y, training=training, epochs=epochs, batch_size=64, lr=1e-3
    )
    return [float(line["loss"]) for line in state.history]


def run(*, quick: bool = False) -> Outcome:
    """Compare gradients by layer at the start, and how the stacks learn."""
    data: Digits = digits(500 if quick else 1500, 10, small=True)
    x, y = torch.from_numpy(data.x).float(), torch.from_numpy(data.y)
    figure, (left, right) = panels(2, (9.5, 3.6))
    numbers: dict[str, float] = {}
    for name, colour in zip(STACKS, COLOURS, strict=False):
        by_layer = gradients(name, x[:256], y[:256], 3 if quick else 10)
        left.plot(range(1, DEPTH + 1), by_layer, "o-", ms=3.5, color=colour, label=name)
        curve = losses(name, x, y, epochs=5 if quick else 40)
        right.plot(range(1, len(curve) + 1), curve, color=colour, label=name)
        numbers[f"{name}: first layer over last"] = float(by_layer[0] / by_layer[-1])
        numbers[f"{name}: loss at the end"] = curve[-1]
    left.set(xlabel="hidden layer", ylabel="gradient of its weights", yscale="log")
    right.set(xlabel="epoch", ylabel="training loss", ylim=(0, None))
    for ax in (left, right):
        whole_ticks(ax.xaxis)
        caption(ax)
    ratio = {name: numbers[f"{name}: first layer over last"] for name in STACKS}
    said = (
        f"Over {DEPTH} layers the gradient of the first is {ratio['sigmoid']:.0e} of the last's "
        f"with sigmoids, {ratio['tanh']:.2f} with tanh, {ratio['ReLU']:.2f} with ReLU and "
        f"{ratio['sigmoid, residual']:.2f} with sigmoids in residual blocks."
    )
    return Outcome(figure, numbers, said)
