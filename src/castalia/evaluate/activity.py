"""What the units of a network do on a batch: their values, and how many pass no gradient on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from castalia.evaluate.network_probe import ACTIVATION_UNITS, LayerCall, layer_calls
from castalia.nn import Maxout
from castalia.nn.inspection.layer_signals import slopes

__all__ = ["Activity", "activity"]

MOST = 1_000_000  # values kept of a layer
NOT_ELEMENTWISE = (Maxout, nn.GLU)


@dataclass(frozen=True)
class Activity:
    """One layer on a batch.

    Attributes
    ----------
    name
        Which.
    values
        Its outputs, flat; evenly thinned out where they are very many.
    mean, std
        Over all outputs.
    flat
        Share of outputs where the activation has no slope; NaN for a layer that is none.
    dead
        Which units or channels pass nothing on, (C,): no slope on any row or, for a layer that is
        no activation, the same output on every row.
    """

    name: str
    values: np.ndarray
    mean: float
    std: float
    flat: float
    dead: np.ndarray


def activity(
    owner: str, net: nn.Module, x: Any, layers: Iterable[str] | None, below: float
) -> list[Activity]:
    """Return what each layer does, in the order of first calls; many calls of one are one.

    Parameters
    ----------
    owner
        Who asks; named in errors.
    net, x
        The network, in the mode to measure it in, and its inputs.
    layers
        Names of modules; None takes the activations.
    below
        Slopes smaller than this count as none.
    """
    calls: dict[str, list[LayerCall]] = {}
    for call in layer_calls(owner, net, x, layers):
        calls.setdefault(call.name, []).append(call)
    return [_summary(name, found, below) for name, found in calls.items()]


def _summary(name: str, calls: list[LayerCall], below: float) -> Activity:
    out = torch.cat([call.units.float() for call in calls], dim=1)  # (C, values of a unit)
    found = out.flatten()
    values = found[:: -(-len(found) // MOST)].cpu().numpy()
    module = calls[0].module
    if isinstance(module, ACTIVATION_UNITS) and not isinstance(module, NOT_ELEMENTWISE):
        flat = torch.cat([_flat(call, below) for call in calls], dim=1)
        share, dead = float(flat.float().mean()), flat.all(dim=1)
    else:
        share, dead = float("nan"), (out == out[:, :1]).all(dim=1)
    std = float(found.std(correction=0))
    return Activity(name, values, float(found.mean()), std, share, dead.cpu().numpy())


def _flat(call: LayerCall, below: float) -> Tensor:
    """Where the activation has no slope, (C, values of a unit)."""
    flat = slopes(call.module, call.z).abs() < below
    return flat.movedim(call.axis, 0).flatten(1)
