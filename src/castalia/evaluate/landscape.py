"""The loss at weights moved along random directions, without touching the network's own weights.

Shapes: A steps along a direction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from castalia.autodiff.functional_calls import call_with
from castalia.nn import evaluating
from castalia.protocols import Batch, Objective

__all__ = ["filter_normalised", "losses_around", "random_directions"]

Direction = dict[str, Tensor]


def filter_normalised(net: nn.Module, direction: Direction) -> Direction:
    """Give each filter of a direction the length of the network's filter; spare the rest.

    A filter is what leads into one unit or channel: ``weight[i]`` of a linear or convolutional
    layer. Biases and scales of normalisation layers are not moved.

    Parameters
    ----------
    net
        The network.
    direction
        A tensor for each parameter, by its name.

    Examples
    --------
    >>> net = nn.Linear(2, 1)
    >>> _ = net.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    >>> filter_normalised(net, {"weight": torch.tensor([[0.0, 2.0]]), "bias": torch.ones(1)})
    {'weight': tensor([[0., 5.]]), 'bias': tensor([0.])}
    """
    found = {}
    for name, parameter in net.named_parameters():
        along = direction[name]
        if parameter.ndim < 2:
            found[name] = torch.zeros_like(along)
            continue
        dims = tuple(range(1, parameter.ndim))
        ours = torch.linalg.vector_norm(parameter.detach(), dim=dims, keepdim=True)
        theirs = torch.linalg.vector_norm(along, dim=dims, keepdim=True)
        found[name] = along * (ours / theirs.clamp_min(torch.finfo(along.dtype).tiny))
    return found


def random_directions(
    net: nn.Module, count: int, random_state: int, *, normalise: bool = True
) -> list[Direction]:
    """Draw directions in the space of the parameters.

    They are drawn on the CPU, so that every device has the same ones.
    """
    source = torch.Generator().manual_seed(random_state)
    drawn = []
    for _ in range(count):
        direction = {
            name: torch.randn(p.shape, generator=source, dtype=p.dtype).to(p.device)
            for name, p in net.named_parameters()
        }
        drawn.append(filter_normalised(net, direction) if normalise else direction)
    return drawn


def losses_around(
    net: nn.Module,
    objective: Objective,
    batch: Batch,
    directions: Sequence[Direction],
    steps: np.ndarray,
    batch_size: int = 4096,
) -> np.ndarray:
    """Return the loss at theta + sum_k a_k direction_k for every combination of steps, (A, …).

    Parameters
    ----------
    net, objective
        Measured in evaluation mode; the network's own weights are never written to.
    batch
        Rows, targets and weights, on the network's device.
    directions
        A tensor for each parameter, by its name.
    steps
        Values of every a_k, (A,).
    batch_size
        Rows at a time.
    """
    probe = _Probe(net, objective, batch, batch_size)
    grid = np.stack(np.meshgrid(*[steps] * len(directions), indexing="ij"), axis=-1)
    with torch.no_grad(), evaluating(net):
        found = [probe.loss_at(directions, a) for a in grid.reshape(-1, len(directions)).tolist()]
    return np.reshape(found, grid.shape[:-1])


class _Probe(nn.Module):
    """The objective as a function of the parameters."""

    def __init__(self, net: nn.Module, objective: Objective, batch: Batch, batch_size: int) -> None:
        super().__init__()
        self.net, self.objective = net, objective
        self.phase = objective.phases(net)[0].name
        cuts = [slice(i, i + batch_size) for i in range(0, len(batch.x), batch_size)]
        self.batches = [Batch(*(v if v is None else v[rows] for v in batch)) for rows in cuts]

    def loss_at(self, directions: Sequence[Direction], place: Sequence[float]) -> float:
        """Return the loss at theta + sum_k place_k direction_k."""
        moved = {}
        for name, parameter in self.net.named_parameters():
            value = parameter.detach().clone()
            for step, direction in zip(place, directions, strict=True):
                value.add_(direction[name], alpha=step)
            # Penalties read trainable weights only.
            moved[f"net.{name}"] = value.requires_grad_(parameter.requires_grad)
        found: float = call_with(self, moved, ())
        return found

    def forward(self) -> float:
        """Return the mean over batches, each counting by its rows or their weights."""
        total = count = 0.0
        for batch in self.batches:
            share = float(len(batch.x) if batch.weight is None else batch.weight.sum())
            loss = float(self.objective.terms(self.net, batch, self.phase)["loss"])
            total, count = total + loss * share, count + share
        return total / count
