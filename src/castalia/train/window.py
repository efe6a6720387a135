"""Where the batches of a step come from: a window of samples, and the rows drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor

from castalia.data.batches import Samples
from castalia.protocols import Batch
from castalia.train.strategy import Single

__all__ = ["Draw", "Window"]


class Window:
    """Samples in the order of an epoch, cut into batches.

    Parameters
    ----------
    samples, order, cuts
        What ``Samples.batches`` yields: positions of rows, and where they are cut into batches.
    device
        Where the batches go.
    strategy
        Which of the rows of a batch this process takes.
    """

    def __init__(
        self,
        samples: Samples,
        order: Tensor,
        cuts: Sequence[int],
        device: torch.device,
        strategy: Single,
    ) -> None:
        self.samples, self.order, self.cuts, self.device = samples, order, cuts, device
        # A graph is recorded for every width: on CUDA there must be few.
        self.widths = samples.widths(order, cuts, few=device.type == "cuda")
        samples.x.plan(strategy.share(order[a:b]) for a, b in pairwise(cuts))

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def draw(self, i: int) -> Draw:
        """Return the rows of the i-th batch."""
        width = None if self.widths is None else self.widths[i]
        return Draw(self, i, self.order[self.cuts[i] : self.cuts[i + 1]], width)


@dataclass(slots=True)
class Draw:
    """The rows of one step, not yet a batch: they can still be divided.

    Attributes
    ----------
    window, number
        Where they come from, and which of its batches they are.
    rows
        Their positions among the samples.
    width
        How wide padded rows must be; None where rows are not padded.
    """

    window: Window
    number: int
    rows: Tensor
    width: tuple[int, ...] | None
    _batch: Batch | None = field(default=None, init=False, repr=False)

    def batch(self) -> Batch:
        """Return them as a batch on the device, the same one for every phase of the step."""
        if self._batch is None:
            batch, device = self.window.samples.batch(self.rows, self.width), self.window.device
            self._batch = batch if self.rows.device == device else batch.to(device)
        return self._batch

    def part(self, rows: Tensor) -> Draw:
        """Return some of the rows."""
        return Draw(self.window, self.number, rows, self.width)

    def weight(self) -> Tensor | int:
        """Return how much the rows count together."""
        weight = self.window.samples.weight
        return len(self.rows) if weight is None else weight.index_select(0, self.rows).sum()
