"""What the units of one activation did on one batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Units"]


@dataclass(frozen=True)
class Units:
    """An activation inside the network, on one batch.

    Attributes
    ----------
    layer
        Name of the layer with weights whose results it takes.
    kind
        "relu", "leaky_relu", "sigmoid", "tanh", "gelu" ….
    mean, std
        Of its results.
    active
        Per unit, the share of the batch (and of the positions) on which it is not zero.
    saturated
        Per unit, the share on which it lies at a limit of its range; empty for unbounded ones.
    gate
        Whether its results multiply others, as in an LSTM: gates may be shut.
    calls
        How often the activation was met on this batch.
    """

    layer: str
    kind: str
    mean: float
    std: float
    active: np.ndarray
    saturated: np.ndarray
    gate: bool = False
    calls: int = 1
