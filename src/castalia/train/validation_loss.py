"""The loss on rows that are not trained on."""

from __future__ import annotations

import torch
from torch import Tensor

from castalia.data.batches import Samples
from castalia.nn import uncompiled
from castalia.train.placement import Placement
from castalia.train.step_parts import StepParts

__all__ = ["ValidationLoss"]


class ValidationLoss:
    """Mean loss of the validation samples, each counting by its weight, over all processes.

    Parameters
    ----------
    place
        Where the training runs.
    samples
        What is validated on.
    rows
        How many rows are evaluated at once.

    Attributes
    ----------
    parts : list of float
        The last losses of the parts of the network that learn apart from each other.
    """

    def __init__(self, place: Placement, samples: Samples, rows: int) -> None:
        self.place, self.samples, self.rows = place, samples, rows
        self.parts: list[float] = []

    @torch.no_grad()
    def __call__(self, parts: StepParts) -> float:
        """Return the loss of the network as it is, by the objective of the stage."""
        place = self.place
        place.net.eval()
        total = torch.zeros((), dtype=place.exact, device=place.device)
        with uncompiled(place.net):
            for window, order, _ in self.samples.batches(self.rows, None, 0, place.home):
                for index in order.split(self.rows):
                    total = total + self._batch(parts, window, index)
        weighted, weight = place.strategy.total(total).unbind()  # (P,) each
        self.parts = (weighted / weight).tolist()
        return float(weighted.sum() / weight.sum())

    def _batch(self, parts: StepParts, samples: Samples, index: Tensor) -> Tensor:
        """Return weighted losses and weights of the parts on this process's share of a batch."""
        place = self.place
        mine = place.strategy.share(index)
        batch = samples.batch(mine if len(mine) else index[:1]).to(place.device)
        with place.precision.autocast(place.device):
            loss, weight = parts.objective.judged(place.net, batch, parts.phases[0].name)
        loss = loss.to(place.exact)
        if weight is None or not len(mine):
            weight = torch.full_like(loss, len(mine))
        return torch.stack([loss * weight.to(place.exact), weight.to(place.exact)])
