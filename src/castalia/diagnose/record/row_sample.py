"""A sample of the inputs, outputs and targets of a training."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

__all__ = ["Rows"]


@dataclass
class Rows:
    """A sample of the batches seen, in the order they came.

    Attributes
    ----------
    steps
        The step of each kept batch.
    inputs
        Of each batch, the first tensor given to the network: at most so many rows; None where it
        was not seen.
    outputs, targets
        What entered the loss; None where not seen.
    """

    steps: list[int] = field(default_factory=list)
    inputs: list[np.ndarray | None] = field(default_factory=list)
    outputs: list[np.ndarray | None] = field(default_factory=list)
    targets: list[np.ndarray | None] = field(default_factory=list)

    def add(
        self,
        step: int,
        inputs: np.ndarray | None,
        outputs: np.ndarray | None,
        targets: np.ndarray | None,
    ) -> None:
        """Keep one batch."""
        self.steps.append(step)
        self.inputs.append(inputs)
        self.outputs.append(outputs)
        self.targets.append(targets)

    def select(self, keep: list[int]) -> None:
        """Keep only these batches."""
        for name in ("steps", "inputs", "outputs", "targets"):
            values = getattr(self, name)
            setattr(self, name, [values[i] for i in keep])

    def __len__(self) -> int:
        """Return how many batches were kept."""
        return len(self.steps)
