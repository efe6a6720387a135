"""Steps whose back-propagation the network writes out.

Autograd costs a small step on a CPU as much as its arithmetic. A network that knows its gradients
(``Backprops``) and an objective that knows its loss's (``LossGradients``) need none.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.modules.module import _has_any_global_hook

from castalia.protocols import Backprops, LossGradients, Phase
from castalia.train.step import Terms
from castalia.train.step_parts import StepParts
from castalia.train.steppers.fused_step import FusedStep
from castalia.train.window import Draw
from castalia.utils.overrides import is_current

__all__ = ["WrittenOutStep", "is_written_out"]

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def is_written_out(parts: StepParts) -> bool:
    """Whether network and objective write out their gradients, and nobody needs autograd's."""
    return (
        parts.device.type == "cpu"
        and parts.precision.name != "bf16"
        and isinstance(parts.net, Backprops)
        and parts.net.can_backprop()
        and is_current(parts.net, "backprop", "forward")
        and isinstance(parts.objective, LossGradients)
        and is_current(parts.objective, "loss_gradient", "terms", "rows")
        and len(parts.phases) == 1
        and len(parts.phases[0].parameters) == len(parts.parameters)
        and not parts.training.recompute
        and not _hooked(parts.net, parts.parameters)
    )


class WrittenOutStep(FusedStep):
    """Takes gradients from the network's own back-propagation."""

    name = "written-out gradients"

    def undivided(self, draw: Draw, phase: Phase) -> Terms:
        """Compute the gradients of a batch without a graph."""
        net: Any = self.parts.net
        objective: Any = self.parts.objective
        batch = draw.batch()
        return {"loss": net.backprop(batch.x, lambda out: objective.loss_gradient(out, batch))}


def _hooked(net: nn.Module, parameters: list[nn.Parameter]) -> bool:
    """Whether a hook anywhere in the network waits for autograd."""
    return (
        _has_any_global_hook()
        or any(getattr(module, name) for module in net.modules() for name in HOOKS)
        or any(p._backward_hooks or p._post_accumulate_grad_hooks for p in parameters)
    )
