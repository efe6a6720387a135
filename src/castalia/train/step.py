"""The plain step: for each phase of the objective, gradients and one step of its optimizer.

gradients off -> terms -> backward -> on_gradients -> clip -> optimizer.step -> after_step

The faster ways, in ``castalia.train.steppers``, change one of these methods each and end at the
same weights: a test holds every one of them to this one over the whole catalogue.
``Training(step="plain")`` takes this one.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from castalia.optim import clip_gradients
from castalia.protocols import Phase
from castalia.train.step_parts import StepParts
from castalia.train.window import Draw

__all__ = ["PlainStep", "Terms"]

Terms = dict[str, Tensor]


class PlainStep:
    """Takes the steps of a stage one after the other.

    Parameters
    ----------
    parts
        What the steps work on: network, objective, phases, optimizers.
    """

    name = "plain"

    def __init__(self, parts: StepParts) -> None:
        self.parts = parts
        self.optimizers: list[Any] = list(parts.optimizers)

    def __call__(self, draw: Draw, number: int) -> Terms:
        """Take the epoch's ``number``-th step on the rows drawn for it; return its terms."""
        parts = self.parts
        found: Terms = {}
        for phase, optimizer in zip(parts.phases, self.optimizers, strict=True):
            if number % phase.every == 0:
                for _ in range(phase.repeat):
                    terms = self.update(draw, phase, optimizer)
                    parts.objective.after_step(parts.net)
                found |= parts.named(terms, phase)
        if found:  # among several phases, the first one's loss is that of the step
            found.setdefault("loss", next(iter(found.values())))
        return found

    def update(self, draw: Draw, phase: Phase, optimizer: Any) -> Terms:
        """Take one step of a phase's optimizer."""
        terms = self.gradients(draw, phase)
        self.parts.on_gradients()
        clip_gradients(phase.parameters, self.parts.training.clip)
        optimizer.step()
        return terms

    def gradients(self, draw: Draw, phase: Phase) -> Terms:
        """Compute the gradients of a phase's loss; return its terms."""
        parts = self.parts
        for parameter in parts.parameters:
            parameter.grad = None
        with parts.precision.autocast(parts.device):
            terms = parts.objective.terms(parts.net, draw.batch(), phase.name)
        terms["loss"].backward()
        return {name: value.detach() for name, value in terms.items()}
