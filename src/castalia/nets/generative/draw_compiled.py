"""DRAW's steps for ``torch.compile``: few kernels a step, weight gradients once for all steps.

A step is four products with weights, and what stands between them is compiled. Autograd would
take the gradients of the shared weights step by step and add them up; here
dJ/dW = sum_t g_t^T a_t is one product over all steps, with a_t the input of a layer in step t and
g_t the gradient of its output. Layers with the same input are one.  Shapes: B batch, T steps,
K code, C channels, H and W size, N window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from castalia.nets.generative.draw_window import read, write

__all__ = ["Between", "SharedLayers", "paint_together"]

LAYERS = ("encoder", "posterior", "decoder", "heads")


class Between(NamedTuple):
    """What stands between the products of a step."""

    encoder_input: Callable[..., Tensor]
    cell: Callable[..., tuple[Tensor, Tensor]]
    decoder_input: Callable[..., tuple[Tensor, Tensor]]
    canvas: Callable[..., tuple[Tensor, Tensor]]

    @classmethod
    def compiled(cls, **options: Any) -> Between:
        """Compile each; every step uses the same four."""
        parts: tuple[Any, ...] = _encoder_input, _cell, _decoder_input, _canvas
        return cls(*(torch.compile(part, **options) for part in parts))


def _encoder_input(
    x: Tensor, canvas: Tensor, heads: Tensor, d: Tensor, h: Tensor, n: int
) -> Tensor:
    """Return what the window shows and the states of both cells, (B, 2 C N N + 2 hidden)."""
    return torch.cat([read(x, x - canvas.sigmoid(), heads[:, :5], n), d, h], dim=1)


def _cell(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Return state and memory of an LSTM cell, (B, hidden) each, of its gates."""
    i, f, g, o = gates.chunk(4, dim=1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _decoder_input(posterior: Tensor, noise: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    """Return the code, (B, K), and the code with the decoder's state, (B, K + hidden)."""
    mean, log_variance = posterior.chunk(2, dim=1)
    z = mean + (log_variance / 2).exp() * noise
    return z, torch.cat([z, d], dim=1)


def _canvas(canvas: Tensor, heads: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return the canvas with a patch written on it, (B, C, H, W), and its window, (B, 4)."""
    added, place = write(heads[:, 10:], heads[:, 5:10], n, canvas.shape[2:])
    return canvas + added, place


class SharedLayers:
    """Linear layers that keep their inputs and outputs of every step.

    Parameters
    ----------
    weights
        Weight and bias of each layer, in the order of ``LAYERS``.
    """

    def __init__(self, *weights: Tensor) -> None:
        self.weights = dict(zip(LAYERS, zip(weights[::2], weights[1::2], strict=True), strict=True))
        self.inputs: dict[str, list[Tensor]] = {name: [] for name in LAYERS}
        self.outputs: dict[str, list[Tensor]] = {name: [] for name in LAYERS}

    def __call__(self, name: str, x: Tensor) -> Tensor:
        """Return W x + b."""
        found = F.linear(x, *self.weights[name])
        if torch.is_grad_enabled() and not found.requires_grad:
            found.requires_grad_()
        self.inputs[name].append(x.detach())
        self.outputs[name].append(found)
        return found

    def gradients(self, outputs: dict[str, list[Tensor]]) -> list[Tensor]:
        """Return the gradient of each weight and bias, from those of the outputs."""
        found = []
        for name in LAYERS:
            g, a = torch.cat(outputs[name]), torch.cat(self.inputs[name])  # (T B, …)
            found += [g.mT @ a, g.sum(dim=0)]
        return found


def paint_together(between: Between, net: Any, x: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
    """Return canvas, mean codes, log-variances, codes and windows of a ``DRAWNetwork``."""
    cells = [
        (torch.cat([cell.weight_ih, cell.weight_hh], dim=1), cell.bias_ih + cell.bias_hh)
        for cell in (net.encoder, net.decoder)
    ]
    heads = net.reading, net.writing, net.patch
    weights = (
        *cells[0], net.posterior_head.weight, net.posterior_head.bias, *cells[1],
        torch.cat([head.weight for head in heads]), torch.cat([head.bias for head in heads]),
    )  # fmt: skip
    found: tuple[Tensor, ...] = _Steps.apply(between, net.window, x, noise, net.canvas, *weights)
    return found


def _steps(
    between: Between, layers: SharedLayers, n: int, x: Tensor, noise: Tensor, canvas: Tensor
) -> tuple[Tensor, ...]:
    """Take all steps; return canvas, mean codes, log-variances, codes and windows."""
    hidden = layers.weights["heads"][0].shape[1]
    h = enc = d = dec = x.new_zeros(len(x), hidden)  # states and memories
    canvas, heads = canvas.expand(len(x), -1, -1, -1), layers("heads", d)
    kept: list[tuple[Tensor, Tensor]] = []  # code and window of each step
    for draw in noise.unbind(dim=1):
        seen = between.encoder_input(x, canvas, heads, d, h, n)
        h, enc = between.cell(layers("encoder", seen), enc)
        z, code = between.decoder_input(layers("posterior", h), draw, d)
        d, dec = between.cell(layers("decoder", code), dec)
        heads = layers("heads", d)
        canvas, place = between.canvas(canvas, heads, n)
        kept.append((z, place))
    mean, log_variance = torch.stack(layers.outputs["posterior"], dim=1).chunk(2, dim=2)
    codes, windows = (torch.stack(each, dim=1) for each in zip(*kept, strict=True))
    return canvas.flatten(1), mean, log_variance, codes, windows


class _Steps(torch.autograd.Function):
    """All steps, their weights' gradients taken at once."""

    @staticmethod
    def forward(
        ctx: Any, between: Between, n: int, *tensors: Tensor
    ) -> tuple[Tensor, ...]:  # x, noise, canvas, weights
        """Take the steps with weights that ask for no gradient, and keep their graph."""
        leaves = [
            tensor.detach().requires_grad_(needed)
            for tensor, needed in zip(tensors[:3], ctx.needs_input_grad[2:5], strict=True)
        ]
        ctx.set_materialize_grads(False)
        ctx.layers, ctx.leaves = SharedLayers(*(w.detach() for w in tensors[3:])), leaves
        with torch.set_grad_enabled(any(ctx.needs_input_grad)):
            ctx.found = _steps(between, ctx.layers, n, *leaves)
        return tuple(each.detach() for each in ctx.found)

    @staticmethod
    @once_differentiable  # type: ignore[misc]
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        """Pass gradients back through the steps, then multiply them with the layers' inputs."""
        pairs = [pair for pair in zip(ctx.found, gradients, strict=True) if pair[1] is not None]
        outputs, given = zip(*pairs, strict=True)
        leaves = [leaf for leaf in ctx.leaves if leaf.requires_grad]
        inner = [each for name in LAYERS for each in ctx.layers.outputs[name]]
        asked = [*leaves, *inner]
        found = iter(torch.autograd.grad(outputs, asked, given, materialize_grads=True))
        first = [next(found) if leaf.requires_grad else None for leaf in ctx.leaves]
        each = {name: [next(found) for _ in ctx.layers.outputs[name]] for name in LAYERS}
        return None, None, *first, *ctx.layers.gradients(each)
