"""Steps of optimizers that evaluate a batch more than once, through a closure.

Every evaluation within a step sees the same random numbers, so dropout masks stay as they are and a
line search compares like with like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.optim import clip_gradients
from castalia.protocols import Batch, Objective, Phase
from castalia.train.step import PlainStep, Terms
from castalia.train.step_parts import StepParts
from castalia.train.steppers.fused_step import FusedStep
from castalia.train.steppers.written_out_step import WrittenOutStep, is_written_out
from castalia.train.window import Draw

__all__ = ["ClosureStep", "Evaluations", "Given", "is_of_outputs"]


class ClosureStep(PlainStep):
    """Gives the optimizer a closure that evaluates the batch again.

    What the closure does is said by the optimizer's class (``castalia.optim.closure_kind``): set
    gradients, return the loss, or return the outputs with the function from them to the loss.
    """

    name = "closures"

    def __init__(self, parts: StepParts) -> None:
        super().__init__(parts)
        self.inner = (WrittenOutStep if is_written_out(parts) else FusedStep)(parts)
        self.kinds = dict(zip((p.name for p in parts.phases), parts.closures, strict=True))
        self.of_outputs: dict[str, bool] = {}  # by phase, once it is known

    def gradients(self, draw: Draw, phase: Phase) -> Terms:
        """Compute gradients in the quickest way."""
        return self.inner.gradients(draw, phase)

    def update(self, draw: Draw, phase: Phase, optimizer: Any) -> Terms:
        """Let the optimizer evaluate the batch as often as it likes; return the first terms."""
        kind, evaluations = self.kinds[phase.name], Evaluations(self.parts.device)
        if kind is None:
            return super().update(draw, phase, optimizer)
        if kind == "gradients":
            optimizer.step(evaluations.of_gradients(lambda: self._clipped(draw, phase)))
            return evaluations.terms
        parts, batch = self.parts, draw.batch()
        by_outputs = kind != "loss" and self._is_of_outputs(batch, phase, kind, optimizer)
        make: Any = evaluations.of_outputs if by_outputs else evaluations.of_loss
        try:
            optimizer.step(make(parts.objective, parts.net, batch, phase.name))
        except torch.OutOfMemoryError as error:
            raise InvalidParameter(
                f"Training: a batch of {len(draw.rows)} rows and its curvature do not fit into "
                f"the memory of {parts.device}. Lower `batch_size`."
            ) from error
        parts.on_gradients()  # those of the step's start
        return evaluations.terms

    def _clipped(self, draw: Draw, phase: Phase) -> Terms:
        terms = self.gradients(draw, phase)
        self.parts.on_gradients()
        clip_gradients(phase.parameters, self.parts.training.clip)
        return terms

    def _is_of_outputs(self, batch: Batch, phase: Phase, kind: str, optimizer: Any) -> bool:
        objective = self.parts.objective
        if phase.name not in self.of_outputs:
            found = is_of_outputs(objective, self.parts.net, batch, phase.name)
            if kind == "outputs" and not found:
                raise InvalidParameter(
                    f"{type(optimizer).__name__}: the objective must be a function of the "
                    f"network's outputs for the batch; got {type(objective).__name__}, which asks "
                    "the network for more. Use optimizer 'hessian_free', which then uses the "
                    "Hessian."
                )
            self.of_outputs[phase.name] = found
        return self.of_outputs[phase.name]


class Given:
    """A network whose outputs for one batch are already known; all else is the network's own."""

    def __init__(self, net: nn.Module, x: Any, outputs: Tensor) -> None:
        self._net, self._x, self._outputs = net, x, outputs
        self._calls = 0

    def __call__(self, x: Any) -> Tensor:
        """Return the known outputs, once and for that batch only."""
        self._calls += 1
        if x is not self._x or self._calls > 1:
            raise _NotOfOutputs
        return self._outputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._net, name)


class _NotOfOutputs(Exception):
    """The objective asks the network for more than its outputs for the batch."""


def is_of_outputs(objective: Objective, net: nn.Module, batch: Batch, phase: str) -> bool:
    """Whether a loss is a function of ``net(batch.x)``, apart from penalties on the weights."""
    training = net.training
    net.eval()  # a look must not move running statistics
    try:
        with torch.no_grad():
            outputs = net(batch.x)
        if not isinstance(outputs, Tensor):
            return False
        stand_in: Any = Given(net, batch.x, outputs.detach().requires_grad_())
        loss = objective.terms(stand_in, batch, phase)["loss"]
    except _NotOfOutputs:
        return False
    finally:
        net.train(training)
    return stand_in._calls == 1 and loss.requires_grad


class Evaluations:
    """Evaluations of one batch for one step; keeps the terms of the first, before any move.

    Parameters
    ----------
    device
        Whose random numbers are rewound.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.random = self._states()
        self.terms: Terms = {}

    def rewind(self) -> None:
        """Put the random states back to where the step found them."""
        torch.set_rng_state(self.random[0])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(self.random[1], self.device)

    def keep(self, terms: Terms) -> Tensor:
        """Keep the first evaluation's terms; return the loss of this one."""
        if not self.terms:
            self.terms = {name: value.detach() for name, value in terms.items()}
        return terms["loss"]

    def of_gradients(self, gradients: Callable[[], Terms]) -> Callable[[], Tensor]:
        """Make the closure that sets gradients and returns the loss."""

        def closure() -> Tensor:
            self.rewind()
            return self.keep(gradients())

        return closure

    def of_loss(
        self, objective: Objective, net: nn.Module, batch: Batch, phase: str
    ) -> Callable[[], Tensor]:
        """Make the closure that returns the loss with its graph."""

        def closure() -> Tensor:
            self.rewind()
            return self.keep(objective.terms(net, batch, phase))

        return closure

    def of_outputs(
        self, objective: Objective, net: nn.Module, batch: Batch, phase: str
    ) -> Callable[[], tuple[Tensor, Callable[[Tensor], Tensor]]]:
        """Make the closure that returns the outputs and the function from them to the loss."""

        def loss_of(outputs: Tensor) -> Tensor:
            stand_in: Any = Given(net, batch.x, outputs)
            return self.keep(objective.terms(stand_in, batch, phase))

        def closure() -> tuple[Tensor, Callable[[Tensor], Tensor]]:
            self.rewind()
            return net(batch.x), loss_of

        return closure

    def _states(self) -> list[Tensor]:
        cuda = [torch.cuda.get_rng_state(self.device)] if self.device.type == "cuda" else []
        return [torch.get_rng_state(), *cuda]
