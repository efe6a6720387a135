"""What a step works on, put together once a stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.errors import InvalidParameter
from castalia.optim import build_optimizer, closure_kind, hidden_matrices
from castalia.protocols import Objective, Phase, StepPlan
from castalia.train.precision import Precision
from castalia.train.strategy import Single
from castalia.train.training import Training
from castalia.train.training_check import check_closure

__all__ = ["StepParts"]


def _ignore() -> None:
    """Do nothing: no callback wants the gradients."""


@dataclass
class StepParts:
    """Network, objective and optimizers of a stage, and how its steps are computed.

    Parameters
    ----------
    net, objective
        What is trained, and by what.
    training
        Settings; ``optimizer``, ``weight_decay``, ``clip``, ``accumulate`` and ``step`` count here.
    lr
        Base learning rate.
    device, precision, strategy
        Where, in which format, and with which other processes.
    on_gradients
        Called when the gradients of a phase are ready.
    capture
        Whether steps may be recorded as a CUDA graph; the optimizers are built for it.
    rows, steps
        Training rows and steps of an epoch; 0 where that is not known.

    Attributes
    ----------
    phases
        Those of the objective that have parameters.
    optimizers, closures
        One a phase, and what its closure must do (``castalia.optim.closure_kind``).
    micro
        Micro-batches that a batch is cut into; doubled when memory runs out.
    """

    net: nn.Module
    objective: Objective
    training: Training
    lr: float
    device: torch.device
    precision: Precision
    strategy: Single
    on_gradients: Callable[[], None] = _ignore
    capture: bool = False
    rows: int = 0
    steps: int = 0
    phases: list[Phase] = field(init=False)
    parameters: list[nn.Parameter] = field(init=False)
    optimizers: list[Optimizer] = field(init=False)
    closures: list[str | None] = field(init=False)
    micro: int = field(init=False)

    def __post_init__(self) -> None:
        self.micro = self.training.accumulate
        self.parameters = list(self.net.parameters())
        self.names = {id(p): name for name, p in self.net.named_parameters()}
        self.phases = [phase for phase in self.objective.phases(self.net) if phase.parameters]
        if not self.phases:
            raise InvalidParameter(
                f"{type(self.objective).__name__}: the network has no trainable parameter."
            )
        self.optimizers = [self._optimizer(phase) for phase in self.phases]
        for optimizer in self.optimizers:  # one made by a function shows its class only now
            check_closure(self.training, type(optimizer))
        self.closures = [closure_kind(type(optimizer)) for optimizer in self.optimizers]
        if any(self.closures) and self.precision.name == "bf16":
            # A line search compares more digits of the loss than bf16 has.
            self.precision = Precision("tf32", self.precision.dtype)
        compiled = self.training.compile
        self.objective.prepare(
            StepPlan(
                second_order=not set(self.closures) <= {None, "gradients"},
                compile=compiled if isinstance(compiled, str) and compiled != "auto" else None,
                rows=self.rows,
                steps=self.steps,
            )
        )

    def _optimizer(self, phase: Phase) -> Optimizer:
        return build_optimizer(
            self.training.optimizer,
            phase.parameters,
            lr=self.lr,
            lr_scale=phase.lr_scale,
            decayed=phase.decayed,
            weight_decay=self.training.weight_decay,
            capture=self.capture,
            hidden=hidden_matrices(self.net),
            names=[self.names.get(id(p), "") for p in phase.parameters],
        )

    def optimizer_states(self) -> list[dict[str, Any]]:
        """Return the whole states of the optimizers."""
        return [self.strategy.optimizer_state(self.net, o) for o in self.optimizers]

    def set_rate(self, factor: float) -> None:
        """Set every group's rate to ``factor`` times its base."""
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                rate = self.lr * group.get("lr_scale", 1.0) * factor
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(rate)
                else:
                    group["lr"] = rate

    def named(self, terms: dict[str, Tensor], phase: Phase) -> dict[str, Tensor]:
        """Name the terms of one phase among several: its loss has the phase's name."""
        if len(self.phases) == 1:
            return terms
        return {phase.name if name == "loss" else name: v for name, v in terms.items()}
