"""Steps without the bookkeeping that costs a small network more than its arithmetic.

Two shortcuts that compute the same bits: an update that gathers its parameters once, and a backward
pass without the checks of ``Tensor.backward``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from castalia.optim import fused_step
from castalia.protocols import Phase
from castalia.train.step import Terms
from castalia.train.step_parts import StepParts
from castalia.train.steppers.micro_batch_step import MicroBatchStep
from castalia.train.window import Draw

__all__ = ["FusedStep"]

_run_backward = torch.autograd.Variable._execution_engine.run_backward


class _Update(NamedTuple):
    """An optimizer's step and nothing else."""

    step: Callable[[], None]


def _quick(optimizer: Optimizer) -> Optimizer | _Update:
    """Return a quick equivalent of an optimizer where there is one."""
    update = fused_step(optimizer)
    return optimizer if update is None else _Update(update)


class FusedStep(MicroBatchStep):
    """Takes fused updates, where the optimizer has them, after a backward pass without checks."""

    name = "fused"

    def __init__(self, parts: StepParts) -> None:
        super().__init__(parts)
        self.optimizers = [_quick(optimizer) for optimizer in parts.optimizers]
        self.one = torch.ones((), device=parts.device)  # the gradient of the loss by itself

    def undivided(self, draw: Draw, phase: Phase) -> Terms:
        """Compute the gradients of a batch in one piece."""
        parts = self.parts
        for parameter in parts.parameters:
            parameter.grad = None
        with parts.precision.autocast(parts.device):
            terms = parts.objective.terms(parts.net, draw.batch(), phase.name)
        self.backward(terms["loss"])
        return {name: value.detach() for name, value in terms.items()}

    def backward(self, loss: Tensor) -> None:
        """Do what ``loss.backward()`` does without its checks, a tenth of a small step."""
        if self.one.shape != loss.shape or self.one.dtype != loss.dtype:
            self.one = torch.ones_like(loss)
        _run_backward(
            (loss,), (self.one,), False, False, (), allow_unreachable=True, accumulate_grad=True
        )
