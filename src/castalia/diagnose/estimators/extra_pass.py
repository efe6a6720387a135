"""One extra pass over a batch, of which the training notices nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from castalia.diagnose.monitor.graph_summary import GraphSummary, read
from castalia.nn import uncompiled

__all__ = ["ExtraPass", "undisturbed"]


class ExtraPass:
    """One extra forward pass; its gradients come when they are asked for.

    Attributes
    ----------
    loss
        Its value.
    reading
        What the graph shows.
    inputs, outputs, targets
        Tensors of the batch, where known.
    """

    def __init__(self, net: nn.Module, batch: Any, terms: Any, names: dict[int, str]) -> None:
        seen: list[Any] = []
        hook = net.register_forward_hook(lambda module, args, output: seen.append(output))
        try:
            loss: Tensor = terms(net, batch)["loss"]
        finally:
            hook.remove()
        self.loss = float(loss.detach())
        self.reading: GraphSummary = read(loss, names)
        output = seen[0] if seen and isinstance(seen[0], Tensor) else None
        self.reading.ending.complete(output)
        self.inputs = batch.x
        self.outputs = self.reading.ending.outputs
        self.targets = self.reading.ending.targets
        if self.targets is None:
            self.targets = batch.y
        elif _is_repeated(self.targets, batch.y):  # once for each of some members
            if self.outputs is not None:
                self.outputs = self.outputs.unflatten(0, (-1, len(batch.y))).mean(dim=0)
            self.targets = batch.y
        self._scalar = loss

    def gradients(self, parameters: Mapping[str, nn.Parameter]) -> None:
        """Put the gradients in their place, for as long as the pass lasts."""
        trained = [p for p in parameters.values() if p.requires_grad]
        found = torch.autograd.grad(self._scalar, trained, allow_unused=True)
        for parameter, gradient in zip(trained, found, strict=True):
            parameter.grad = gradient


def _is_repeated(targets: Tensor, y: Any) -> bool:
    """Whether a loss was given the targets of a batch several times, one after the other."""
    if not isinstance(y, Tensor) or len(targets) in (0, len(y)) or len(targets) % len(y):
        return False
    parts = targets.unflatten(0, (-1, len(y)))
    return parts[0].shape == y.shape and bool((parts == y).all())


@contextmanager
def undisturbed(
    net: nn.Module, parameters: Mapping[str, nn.Parameter], device: torch.device
) -> Iterator[None]:
    """Put random states, buffers and gradients back at the end, whatever happens inside.

    Buffers are written back in place and gradients are the same tensors as before, so that a
    recorded CUDA graph finds everything where it was.
    """
    buffers = [(b, b.clone()) for b in net.buffers()]
    gradients = [(p, p.grad) for p in parameters.values()]
    devices = [device] if device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices=devices), torch.enable_grad(), uncompiled(net):
            for parameter, _ in gradients:
                parameter.grad = None
            yield
    finally:
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
        for parameter, gradient in gradients:
            parameter.grad = gradient
