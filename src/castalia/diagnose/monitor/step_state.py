"""The step under way."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from torch import Tensor

from castalia.diagnose.monitor.graph_summary import call_behind
from castalia.diagnose.record import Look

__all__ = ["NOTHING", "Step"]

NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Step:
    """What is known of a step until the optimizer has been called.

    Steps are made by the million: what nothing is known of lies in the class.

    Attributes
    ----------
    number
        Steps before this one.
    quiet
        Whether nothing but its loss is wanted, and nothing unusual has happened in it so far.
    plain
        Whether nothing happened in it that the next one should be attended to for.
    look
        Measurements, if this step was sampled.
    seen
        Whether the graph of its loss has been read into them.
    entered, training
        Whether the module has been called, and in which mode.
    inputs, output
        First tensor given to it and returned by it, where wanted.
    returned
        Inputs and first output of each call, by what gave the tensors that it returned.
    sizes
        Numbers in the inputs of each call in training mode, of a sampled step.
    evaluating
        Inputs of a call in evaluation mode with gradients on, until a backward pass follows it.
    logged
        Outputs, targets and inputs as the user or the loss function named them.
    loss
        The latest loss, a tensor while it is on a device.
    passes
        Backward passes so far.
    reset
        Optimizers whose gradients were found empty before a backward pass, by ``id``.
    stepping, stepped
        The thread in which an optimizer makes its step, and those that have made it, by ``id``.
    before
        Samples of the parameters before a step of the optimizer.
    start
        Smaller ones of all parameters with a gradient before the first optimizer's.
    """

    plain: bool = True
    look: Look | None = None
    seen: bool = False
    entered: bool = False
    training: bool = True
    inputs: Any = None
    output: Any = None
    returned: Mapping[Any, tuple[Any, Any]] = NOTHING
    sizes: tuple[int, ...] = ()
    evaluating: Any = None
    logged: Mapping[str, Any] = NOTHING
    loss: Tensor | float | None = None
    passes: int = 0
    reset: tuple[int, ...] = ()
    stepping: int | None = None
    stepped: tuple[int, ...] = ()
    before: Mapping[str, Tensor] = NOTHING
    start: Mapping[str, Tensor] = NOTHING

    def __init__(self, number: int, quiet: bool = False) -> None:
        self.number, self.quiet = number, quiet

    def attend(self, loss: Any) -> None:
        """Of several calls, keep in mind the one whose answer the loss of a node takes."""
        call = call_behind(loss, self.returned) if loss is not None and self.several else None
        if call is not None:
            self.inputs, self.output = call

    @property
    def several(self) -> bool:
        """Whether the module was called on more than one input."""
        return len({id(inputs) for inputs, _ in self.returned.values()}) > 1

    @property
    def untouched(self) -> bool:
        """Whether nothing has happened in it yet."""
        return not self.entered and not self.passes
