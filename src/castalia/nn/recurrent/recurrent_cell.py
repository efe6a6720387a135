"""What every recurrent cell owes: one step from an input and a state to an output and a state.

Weights that act on the input can be applied to all steps at once (``lift``); what depends on the
state is done step by step (``step``).
Shapes: B batch, I inputs, G lifted width, H hidden.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

__all__ = ["Cell", "State"]

State = tuple[Tensor, ...]


class Cell(nn.Module, ABC):
    """One step of a recurrent network.

    Attributes
    ----------
    inputs, outputs
        Widths of an input and of an output.
    widths
        Widths of the parts of the state.
    """

    inputs: int
    outputs: int
    widths: tuple[int, ...]

    @abstractmethod
    def lift(self, x: Tensor) -> Tensor:
        """Return what the input gives to a step, (..., G), for (..., I)."""

    @abstractmethod
    def step(self, lifted: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the output, (B, outputs), and the next state, from a lifted input (B, G)."""

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:  # (B, I)
        """Return the output and the next state; None begins at zero."""
        return self.step(self.lift(x), self.zeros(x) if state is None else state)

    def zeros(self, x: Tensor) -> State:
        """Return the state zero for the rows of x."""
        return tuple(x.new_zeros(len(x), width) for width in self.widths)

    def scan(self, lifted: Tensor, state: State) -> tuple[Tensor, State] | None:
        """Return all outputs, (B, T, outputs), and the last state, where that is written out.

        What is lifted is (B, T, G); None: steps are taken one by one.
        """
        return None

    def kernel(self) -> type[nn.RNNBase] | None:
        """Return torch's module that computes the same in one call, where there is one."""
        return None

    def _start(self, hidden: int) -> None:
        """Draw all weights from U(-1/sqrt(H), 1/sqrt(H)), as torch does."""
        bound = 1 / math.sqrt(hidden)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.uniform_(-bound, bound)
