"""The doctor beside a training: three lines in any PyTorch loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.finding_record import Finding
from castalia.diagnose.monitor import module_facts as facts
from castalia.diagnose.monitor.evaluation_checks import ask
from castalia.diagnose.monitor.live_findings import LiveFindings
from castalia.diagnose.monitor.observer import Observer
from castalia.diagnose.monitor.step_state import Step
from castalia.diagnose.rules import LASTING, RULES, Rule, judge
from castalia.diagnose.source_lines import class_line, located

__all__ = ["Doctor", "watch"]

NO_PASS = (
    "No backward pass was seen: gradients taken with torch.func or torch.autograd.grad, or losses"
    " that do not depend on the module, pass the doctor by. Tell it losses with doctor.log(loss=…)."
)


def watch(
    module: nn.Module,
    optimizer: Optimizer | Iterable[Optimizer] | None = None,
    loss_fn: Any = None,
    task: str | None = None,
    on_finding: Callable[[Finding], object] | None = None,
) -> Doctor:
    """Watch a training from outside, without changing a bit of it.

    The doctor learns the loss from its backward pass, the steps from the optimizer, inputs and
    modes from the module. Telling it more with ``log`` and ``epoch`` lets it find more.

    Parameters
    ----------
    module
        The network.
    optimizer
        Its optimizer, or several.
    loss_fn
        The loss, if it is a module: then losses of validation are seen as well.
    task
        ``"binary"``, ``"multiclass"``, ``"multilabel"``, ``"regression"``, ``"lm"``, ``"seq"``,
        ``"vae"`` or ``"gan"``; None: recognised from the loss and the targets.
    on_finding
        Called with each error as soon as it is certain, while the training runs. Judging takes at
        most 2 % of its time, so short trainings are judged at their end only.

    Returns
    -------
    Doctor
        Also a context manager.

    Examples
    --------
    >>> torch.manual_seed(0) and None
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> X, y = torch.randn(64, 4), torch.randn(64)
    >>> doctor = watch(net, optimizer)
    >>> for _ in range(20):
    ...     optimizer.zero_grad()
    ...     loss = ((net(X) - y) ** 2).mean()
    ...     loss.backward()
    ...     optimizer.step()
    >>> doctor.diagnosis().findings[0].name
    'output-shape-broadcast'
    """
    return Doctor(module, optimizer, loss_fn, task, on_finding)


class Doctor(Observer):
    """Watches one training and says what is wrong with it; made by ``watch``.

    Attributes
    ----------
    record
        What was seen so far.
    closed
        Whether watching has ended.

    Parameters
    ----------
    module, optimizer, loss_fn, task, on_finding
        As in ``watch``.
    """

    def __init__(
        self,
        module: nn.Module,
        optimizer: Any = None,
        loss_fn: Any = None,
        task: str | None = None,
        on_finding: Callable[[Finding], object] | None = None,
    ) -> None:
        self._live = LiveFindings(on_finding) if on_finding else None
        super().__init__(module, optimizer, loss_fn, task)

    def log(
        self,
        loss: Tensor | float | None = None,
        outputs: Any = None,
        targets: Any = None,
        inputs: Any = None,
    ) -> None:
        """Give the doctor a batch, before or after its step.

        Parameters
        ----------
        loss
            The loss.
        outputs, targets, inputs
            Tensors, where the doctor cannot see them itself. Under ``no_grad`` the batch is one of
            validation.
        """
        self._try(Doctor._log, loss, outputs, targets, inputs)

    def raised(self, outputs: Any, targets: Any) -> None:
        """Give the doctor what a loss function was given that raised an error."""
        self._try(Doctor._raised, outputs, targets)

    def epoch(
        self, validation_loss: float | None = None, validation_score: float | None = None
    ) -> None:
        """Tell the doctor that an epoch has ended."""
        self._try(Doctor._epoch, validation_loss, validation_score)

    def validated(
        self, validation_loss: float | None = None, validation_score: float | None = None
    ) -> None:
        """Tell of a validation that ended before the call of the module that is under way."""
        self._try(Doctor._epoch, validation_loss, validation_score, True)

    def beside(self, others: list[Any], known: set[int]) -> None:
        """Tell who else watches in this process, and the ids of all parameters that are watched.

        Both are kept, so that what is added to them is known as well.
        """
        self._others, self._parameters.elsewhere = others, known

    def diagnosis(self, mute: Iterable[str] = ()) -> Diagnosis:
        """Return what was found so far; watching goes on."""
        self._finish()
        return self._judged(tuple(mute))

    def close(self) -> None:
        """Stop watching and leave no trace in torch, the module or the optimizer."""
        self._finish()
        self.closed = True
        self._farewell()

    def _judged(self, mute: tuple[str, ...] = (), rules: Sequence[Rule] = RULES) -> Diagnosis:
        """Judge the record as it is, and say which lines cause what was found."""
        found = judge(self.record, mute=mute, rules=rules)
        if not found.findings:
            return found
        module = class_line(type(self.module))
        lines = {**({} if module is None else {"module": module}), **self.lines}
        return replace(found, findings=tuple(located(one, lines) for one in found.findings))

    def _looked(self) -> None:
        live = self._live
        if live is not None and live.fault is None:
            self._arrive()
            live.look(partial(self._judged, rules=LASTING), self._broken)
            if live.fault is not None:
                fault = f"{type(live.fault).__name__}: {live.fault}"
                facts.note(self.record, f"`on_finding` raised and is not called again ({fault}).")

    def _finish(self) -> None:
        self._try(Doctor._conclude)
        self._try(Doctor._ask)

    def __enter__(self) -> Doctor:
        """Return the doctor; leaving the block stops watching."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        self.close()

    # ---------------------------------------------------------------- what the user logs

    def reads(self, again: bool) -> None:
        """Hear that data are read from now on: those that are trained on again, or others."""
        self._try(Doctor._reads, again)

    def _reads(self, again: bool) -> None:
        self._no_pass()
        self._validating.again = again
        if not again:
            self._rouse()

    def _log(self, loss: Any, outputs: Any, targets: Any, inputs: Any) -> None:
        self._rouse()
        if not torch.is_grad_enabled() or (
            not self.module.training and not facts.needs_gradient(loss, outputs)
        ):
            self._validating.batch(loss, outputs, targets, inputs)
            return
        self._step.plain = False
        if loss is None and outputs is not None and targets is not None:
            self._keeper.attempt(outputs, targets)  # in case the loss function raises
        logged = {"outputs": outputs, "targets": targets, "inputs": inputs}
        logged = {name: value for name, value in logged.items() if value is not None}
        step = self._step
        if step.untouched and self._last.number >= 0 and self._passes:  # after the step
            self._losses.complete(loss)
            self._add(self._last, logged)
            return
        if not self._passes and step.loss is not None and loss is not None:
            self._end_of_step()  # a training of which nothing else is seen
        elif step.passes:
            self._add(step, logged)
        self._step.logged = {**self._step.logged, **logged}
        if loss is not None and self._step.loss is None:
            self._step.loss = loss.detach() if isinstance(loss, Tensor) else float(loss)

    def _raised(self, outputs: Any, targets: Any) -> None:
        self._rouse()
        self._keeper.attempt(outputs, targets)

    def _add(self, step: Step, logged: dict[str, Any]) -> None:
        """Add what is logged after the backward pass to the rows kept then."""
        wanted = step.look is not None or self._sampling.glance(step.number)
        if logged and (wanted or step.number == self._keeper.last):
            self._keeper.complete(step.number, logged)

    def _epoch(self, loss: Any, score: Any, before: bool = False) -> None:
        self._rouse()
        self._losses.read()
        self._forgotten()
        step = self._step
        # Neither eval() nor no_grad(), unless the module has been called for a new step.
        if step.entered and not step.passes and step.training and not before:
            self._validating.forward(True, step.inputs)
            step.entered = False
        self._validating.end(facts.number(loss), facts.number(score), True)

    # ---------------------------------------------------------------- the end

    def _conclude(self) -> None:
        """Bring the record up to date."""
        step = self._step
        self._losses.read()
        if step.look is not None and step.seen and step.look.gradients:
            self.record.looks.append(step.look)  # the optimizer was never called
            step.look = None
        self._looks.numbers.send()
        self._arrive()
        if not self._passes and (step.entered or self.record.losses or step.loss is not None):
            facts.note(self.record, NO_PASS)
        self._forgotten()
        self._no_pass()
        self._validating.end_phase()
        self._keeper.conclude()
        self.record.restored = 0 < step.number == self._put_back
        self.record.optimizers = facts.optimizers_of(self.optimizers, self.record.optimizers)
        self._parameters.conclude()

    def _ask(self) -> None:
        """Ask the network what only it can tell."""
        self.closed = True  # our own hooks must not see this
        try:
            ask(self.module, self.record)
        finally:
            self.closed = False
