"""What is measured at sampled steps: graph, gradients, what the optimizer did."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.diagnose.monitor import module_facts as facts
from castalia.diagnose.monitor.graph_summary import read
from castalia.diagnose.monitor.host_transfer import PendingNumbers
from castalia.diagnose.monitor.loss_log import LossLog
from castalia.diagnose.monitor.step_state import NOTHING, Step
from castalia.diagnose.monitor.watched_parameters import Parameters
from castalia.diagnose.monitor.weight_measures import (
    COMPARED,
    any_gradient,
    compared_sizes,
    gradient_sample,
    gradient_sizes,
    sample,
    step_sample,
    step_sizes,
    update_ratios,
)
from castalia.diagnose.record import Look, Record

__all__ = ["LookTaker"]


class LookTaker:
    """Measures a step under way into its look; numbers arrive during a later step.

    Parameters
    ----------
    record
        Of the training.
    parameters
        Of the module.
    optimizers
        All of the training; none where steps are made by hand.

    Attributes
    ----------
    numbers
        Those of the last look that are still on their way.
    """

    def __init__(self, record: Record, parameters: Parameters, optimizers: list[Any]) -> None:
        self.record, self.parameters, self.optimizers = record, parameters, optimizers
        self.numbers = PendingNumbers()

    def graph(
        self, step: Step, look: Look, last: Step, root: Tensor
    ) -> tuple[Tensor | None, Tensor | None] | None:
        """Measure everything that a graph shows; return what the loss was given.

        None of a further part of an accumulated batch, which is not read.
        """
        fresh = self._find_reset(step, last)
        if step.seen and not fresh:
            return None
        reading = read(root, self.parameters.names, list(step.returned))
        step.seen = True
        look.training = step.training
        self.record.asides += facts.are_asides(step.sizes)
        ending = reading.ending
        step.attend(ending.node)
        ending.complete(step.output)
        outputs, targets = ending.outputs, ending.targets
        ending.outputs = (
            outputs if outputs is not None else facts.tensor(step.logged.get("outputs"))
        )
        if not self.record.looks:  # the weights are those of the start
            self.parameters.find_recurrent(layer for layer, *_ in reading.structure)
        self.numbers.want(*reading.begin(look))
        look.size = facts.rows(step.inputs, ending.outputs, targets)
        self.record.data_normalised |= reading.data_normalised
        self.record.used |= reading.used
        self.record.dropped |= reading.dropped
        self.parameters.meet(reading.strangers)
        if reading.opaque:
            facts.note(self.record, "The module is compiled: its activations cannot be seen.")
        return outputs, targets

    def _find_reset(self, step: Step, last: Step) -> bool:
        """Find the optimizers whose gradients were reset; return whether any only just were."""
        fresh = False
        for optimizer in self.optimizers:
            if not any_gradient(self.parameters.held_by(optimizer)):
                step.reset += (id(optimizer),)
                fresh = True
        if not self.optimizers and last.seen and step.look is not None:
            went = bool(last.look and any(last.look.updates.values()))
            step.look.stale = any_gradient(self.parameters.named) if went else None
        return fresh

    def gradients(self, step: Step, last: Step) -> None:
        """Measure the gradients of this step, and for the look at the step before."""
        named = self.parameters.named
        looked = step.look is not None and step.seen
        after = last.look if last.seen else None
        gradient = gradient_sample(named) if looked or after is not None else None
        if step.look is not None and looked:
            step.look.gradient = gradient
            self._want_norms(named, step.look.gradients)
        if after is not None:
            after.next_gradient = gradient
        if not self.optimizers and step.seen:
            step.before = sample(named)
            step.start = sample(self.parameters.with_gradient(), COMPARED)

    def by_hand(self, last: Step) -> None:
        """Measure a step that no optimizer made: it lies between two backward passes."""
        if last.look is not None and last.seen and last.before:
            named = self.parameters.named
            last.look.updates, last.look.weights = update_ratios(last.before, named)
            last.look.update = step_sample(last.start, named)
            last.before = last.start = NOTHING

    def before_step(self, step: Step, look: Look, optimizer: Optimizer) -> None:
        """Keep samples of what an optimizer is about to change."""
        held = self.parameters.held_by(optimizer)
        step.before = sample(held)
        if not step.start and step.seen:
            step.start = sample(self.parameters.with_gradient(), COMPARED)
        look.lr = facts.rate(self.optimizers[0])
        if step.seen:
            there = {name: p for name, p in held.items() if p.grad is not None}
            self._want_norms(there, look.applied)

    def after_step(self, step: Step, look: Look, last: Step, optimizer: Optimizer) -> None:
        """Measure what an optimizer has changed, and whether it went by old gradients."""
        counts, sizes = step_sizes(step.before, self.parameters.held_by(optimizer))
        self.numbers.want([sizes], partial(_compare, look, counts))
        look.update = step_sample(step.start, self.parameters.named)
        if id(optimizer) in last.stepped and step is not last:
            never = id(optimizer) not in step.reset
            look.stale = bool(look.stale) or never
        step.before = NOTHING

    def send(self, look: Look, losses: LossLog) -> bool:
        """Let the numbers of a look travel; return whether any is on a device."""
        steps, waiting = losses.send()
        self.numbers.want(waiting, partial(_loss, look, losses, steps))
        self.numbers.send()
        return bool(waiting)

    def _want_norms(self, named: Mapping[str, nn.Parameter], found: dict[str, Any]) -> None:
        """Have the norms of gradients written down; None where there is none."""
        names, norms = gradient_sizes(named)
        found.update(dict.fromkeys(named))
        self.numbers.want([norms], partial(_name, found, names))


def _name(found: dict[str, Any], names: list[str], norms: list[np.ndarray]) -> None:
    found.update(zip(names, norms[0].tolist(), strict=True))


def _loss(look: Look, log: LossLog, steps: list[int], losses: list[np.ndarray]) -> None:
    log.write(steps, losses)
    look.loss = log.values[look.step]


def _compare(look: Look, counts: dict[str, int], sizes: list[np.ndarray]) -> None:
    ratios, weights = compared_sizes(counts, sizes[0])
    look.updates.update(ratios)
    look.weights.update(weights)
