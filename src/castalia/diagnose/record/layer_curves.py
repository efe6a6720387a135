"""What was measured of the layers over the steps: gradients, updates, activations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from castalia.diagnose.record.training_record import Look, Record

__all__ = ["LAYERS", "layer_curves", "layer_points"]

LAYERS = "layers.json"  # in a run's folder
MOST_LAYERS = 8  # spread evenly over the network


def layer_points(look: Look) -> Iterator[tuple[str, float]]:
    """Yield name and value of everything measured of single layers at one step.

    Examples
    --------
    >>> look = Look(0, gradients={"0.weight": 0.5, "0.bias": 0.1}, updates={"0.weight": 0.01})
    >>> list(layer_points(look))
    [('gradient_norm/0', 0.5), ('update_over_weight/0', 0.01)]
    """
    names = [name for name in look.gradients if name.endswith("weight")]
    for name in _some(names):
        layer, norm = name.removesuffix(".weight"), look.gradients[name]
        if norm is not None:
            yield f"gradient_norm/{layer}", norm
        if name in look.updates:
            yield f"update_over_weight/{layer}", look.updates[name]
    for units in _some(list({each.layer: each for each in look.units}.values())):
        yield f"activation_std/{units.layer}", units.std
        if units.active.size:
            yield f"active_share/{units.layer}", float(units.active.mean())


def _some(found: list[Any]) -> list[Any]:
    """Return the first, the last, and some between."""
    places = np.linspace(0, len(found) - 1, min(len(found), MOST_LAYERS)).astype(int)
    return [found[place] for place in places]


def layer_curves(record: Record) -> dict[str, dict[str, list[float | None]]]:
    """Return steps and values of each measured layer, by name; None for what is no number."""
    found: dict[str, dict[str, list[float | None]]] = {}
    for look in record.looks:
        for name, value in layer_points(look):
            curve = found.setdefault(name, {"step": [], "value": []})
            curve["step"].append(look.step)
            curve["value"].append(float(value) if math.isfinite(value) else None)
    return found
