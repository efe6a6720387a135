"""Layer by layer: each layer is trained with all readout weights, then frozen before the next.

Reference: 2009, Micheli, Neural network for graphs: a contextual constructive approach, IEEE
TNN 20. Departs from it: the number of layers is given, and a layer has several units.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from castalia.objectives.objective import Objective, Wrapped
from castalia.protocols import Batch, Phase, Stage

__all__ = ["GreedyLayer", "greedy_stages"]


class GreedyLayer(Wrapped):
    """An objective of a network that has grown to some of its layers; the last of them learns.

    Parameters
    ----------
    objective
        What is minimised.
    layers
        How many layers there are by now.
    """

    def __init__(self, objective: Objective, layers: int) -> None:
        super().__init__(objective)
        self.layers = layers

    def phases(self, net: nn.Module) -> list[Phase]:
        """Those of the inner objective without the layers before, and after, the last."""
        body: Any = net.body
        others = [*body.layers[: self.layers - 1], *body.layers[self.layers :]]
        frozen = {id(p) for layer in others for p in layer.parameters()}
        return [
            replace(phase, parameters=[p for p in phase.parameters if id(p) not in frozen])
            for phase in super().phases(net)
        ]

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Those of the inner objective for the grown part."""
        net.body.grown = self.layers  # type: ignore[union-attr, assignment]
        return super().terms(net, batch, phase)


def greedy_stages(objective: Objective, depth: int) -> list[Stage]:
    """Return one stage a layer."""
    grown = range(1, depth + 1)
    return [Stage(f"layer {n}", GreedyLayer(objective, n)) for n in grown]
