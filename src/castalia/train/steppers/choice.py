"""Which way the steps of a stage are taken."""

from __future__ import annotations

from castalia.train.step import PlainStep
from castalia.train.step_parts import StepParts
from castalia.train.steppers.captured_step import CapturedStep
from castalia.train.steppers.closure_step import ClosureStep
from castalia.train.steppers.fused_step import FusedStep
from castalia.train.steppers.written_out_step import WrittenOutStep, is_written_out

__all__ = ["WAYS", "step_class"]

# The first way whose condition holds. All end at the weights of the plain one.
WAYS = (
    (PlainStep, lambda parts: parts.training.step == "plain"),
    (ClosureStep, lambda parts: any(parts.closures)),  # the optimizer evaluates a batch repeatedly
    (CapturedStep, lambda parts: parts.capture),  # on CUDA, samples on the device, one process
    (WrittenOutStep, is_written_out),  # small networks on a CPU
    (FusedStep, lambda parts: True),  # also divides batches: accumulation, processes, memory
)


def step_class(parts: StepParts) -> type[PlainStep]:
    """Return the way in which the steps of these parts are taken."""
    return next(way for way, serves in WAYS if serves(parts))
