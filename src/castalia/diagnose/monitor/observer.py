"""What happens in a training, step after step, as far as torch's hooks show it.

Events come in this order: the module is called (`_enter`, `_leave`), perhaps the loss function
(`_before_loss`, `_after_loss`), the backward pass (`_before_backward`, `_after_backward`), the
optimizer (`_before_step`, `_after_step`). At few steps everything is measured (a look), at some a
few rows are kept (a glance). Between these a training that does one pass a step is quiet: its
losses are kept, each counts as a step, and the optimizer has no hook.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, MutableMapping
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.diagnose.finding_record import SourceLine
from castalia.diagnose.monitor import module_facts as facts
from castalia.diagnose.monitor.autograd_graph import reaches
from castalia.diagnose.monitor.backward_listeners import is_inside, is_transformed, listed, listen
from castalia.diagnose.monitor.call_listeners import listen_to_calls, listen_to_loads
from castalia.diagnose.monitor.graph_summary import quick_ending
from castalia.diagnose.monitor.look_taker import LookTaker
from castalia.diagnose.monitor.loss_log import LossLog, loss_of
from castalia.diagnose.monitor.row_keeper import RowKeeper, inputs_of
from castalia.diagnose.monitor.step_schedule import StepSchedule
from castalia.diagnose.monitor.step_state import NOTHING, Step
from castalia.diagnose.monitor.validation_log import ValidationLog
from castalia.diagnose.monitor.watched_parameters import Parameters
from castalia.diagnose.monitor.weak_hooks import WeakHook, detach
from castalia.diagnose.record import Look, Record
from castalia.diagnose.source_lines import calling_line

__all__ = ["TASKS", "Observer"]

TASKS = ("binary", "multiclass", "multilabel", "regression", "lm", "seq", "vae", "gan")
MOST_TROUBLES = 10
SHOWN = 16  # batches that are kept of what a discriminator was given
ANSWERS = 4  # that are kept until a backward pass: each keeps what it was computed from
UNSURE = 4  # calls that are kept until it is known whether a backward pass follows


class Observer:
    """Receives the events of one training and records them; the base of ``Doctor``."""

    def __init__(
        self, module: nn.Module, optimizer: Any = None, loss_fn: Any = None, task: str | None = None
    ) -> None:
        self.closed = False
        self.module, self.loss_fn = module, loss_fn
        self.optimizers: list[Any] = facts.listed(optimizer)
        self.record = Record(task=task if task in TASKS else None, module=type(module).__name__)
        self.lines: MutableMapping[str, SourceLine] = {}  # of the user's code, by what they do
        self._parameters = Parameters(module, self.optimizers, self.record)
        self._losses, self._sampling = (
            LossLog(self.record.losses, self.record.unknown),
            StepSchedule(),
        )
        self._looks = LookTaker(self.record, self._parameters, self.optimizers)
        self._keeper = RowKeeper(self.record)
        self._validating = ValidationLog(self.record, self._keeper)
        self._step = self._last = Step(-1)  # under way, and the one before
        self._pace: Any = None  # the optimizer whose steps are counted: the first to make one
        self._passes = 0
        self._thread = 0  # who called the module at the last step that was not quiet
        self._calm = False  # whether the steps between samples may be quiet
        self._broken = False  # whether a loss was not finite
        self._put_back = -1  # the step before which weights were loaded
        self._others: list[Observer] = []  # all that watch in this process, this one too
        self._made: Callable[[], Tensor | None] = _nothing  # what the module returned last
        self._unsure: list[Any] = []  # inputs from data that are not trained on, no pass so far
        self._troubles = 0
        self._handles: list[Any] = []
        self._counting: list[Any] = []  # hooks that are not there while it is quiet
        self._measuring: list[Any] = []  # hooks that are there only around a look
        hooks = self._handles, self._counting, self._measuring
        self._farewell = weakref.finalize(self, detach, *hooks)
        self._farewell.atexit = False
        self._try(Observer._describe, task)
        self._try(Observer._attach)

    # ---------------------------------------------------------------- coming and going

    def _try(self, method: Callable[..., None], *args: Any) -> None:
        WeakHook(self, method)(*args)

    def trouble(self, where: str, error: Exception) -> None:
        """Note that something could not be watched; after many such, stop watching."""
        self._troubles += 1
        where = where.strip("_").replace("_", " ")
        facts.note(
            self.record,
            f"Something could not be watched ({where}): {type(error).__name__}: {error}",
        )
        if self._troubles >= MOST_TROUBLES:
            facts.note(self.record, "Watching was given up after repeated difficulties.")
            self.record.given_up = True
            self.closed = True
            self._farewell()

    def _describe(self, task: str | None) -> None:
        """Write down what the training is made of."""
        record = self.record
        if task is not None and task not in TASKS:
            facts.note(record, f"task={task!r} is not one of {', '.join(TASKS)}; ignored.")
        self._parameters.refresh()
        record.layers = facts.layers_of(self.module)
        record.optimizers = facts.optimizers_of(self.optimizers)
        if next(self.module.parameters(), None) is None:
            facts.note(record, "The module has no parameters: there is nothing to train.")
        if not self.optimizers:
            facts.note(record, "No optimizer was given: steps are counted by backward passes.")

    def _attach(self) -> None:
        add, module, loss_fn = self._handles.append, self.module, self.loss_fn
        add(
            listen(
                WeakHook(self, Observer._before_backward), WeakHook(self, Observer._after_backward)
            )
        )
        first, last = getattr(module, "called_parts", (module, module))
        enter, leave = WeakHook(self, Observer._enter), WeakHook(self, Observer._leave)
        if first is last:
            add(listen_to_calls(first, enter, leave))
        else:
            add(listen_to_calls(first, enter, _ignored))
            add(listen_to_calls(last, _ignored, leave))
        add(listen_to_loads(module, WeakHook(self, Observer._loaded)))
        if isinstance(loss_fn, nn.Module):
            before = WeakHook(self, Observer._before_loss)
            add(listen_to_calls(loss_fn, before, WeakHook(self, Observer._after_loss)))
        self._begin(0)

    # ---------------------------------------------------------------- a step begins

    def _begin(self, number: int) -> None:
        """Begin a step, and decide whether it is sampled."""
        self._last = last = self._step
        if number < self._sampling.soon and self._calm and not self._measuring:
            self._step = Step(number, quiet=True)
            return
        self._step = Step(number)
        self._rouse()
        if self._sampling.look(number):
            self._begin_look()
        elif last.look is None:
            detach(self._measuring)

    def _rouse(self) -> None:
        """Attend to the step under way, whatever was planned for it."""
        self._step.quiet = False
        if not self._counting:
            hook = WeakHook(self, Observer._after_step)
            self._counting += [o.register_step_post_hook(hook) for o in self.optimizers]

    def _begin_look(self) -> None:
        """Measure this step; what is not needed at others is attached only now."""
        self._step.look = Look(self._step.number)
        if not self._measuring:
            hook = WeakHook(self, Observer._before_step)
            self._measuring += [o.register_step_pre_hook(hook) for o in self.optimizers]

    # ---------------------------------------------------------------- the module is called

    def _loaded(self) -> None:
        """Note that weights were loaded: after the last step they are the best ones, put back."""
        self._put_back = self._step.number

    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note that the module is about to run."""
        step = self._step
        if step.quiet and module.training and torch.is_grad_enabled():
            step.entered = True
            return
        self._rouse()
        if not torch.is_grad_enabled():
            self._validating.forward(module.training, facts.first_tensor(args, kwargs))
            return
        if step.evaluating is not None or not step.entered:
            if is_inside() or is_transformed():
                step.plain = False  # a checkpoint recomputed, a transformed function
                return
            self._forgotten()
            if not step.entered:
                step.entered, self._thread = True, get_ident()
        step.training = module.training
        if step.look is not None or not step.training or self._sampling.glance(step.number):
            step.inputs = facts.first_tensor(args, kwargs)
            if step.look is not None and step.inputs is not None:
                step.sizes += (step.inputs.numel(),)
                if len(self._others) > 1:
                    self._judges(step.inputs)
            step.evaluating = None if step.training else step.inputs
        if step.training and self._validating.again is False and len(self._unsure) < UNSURE:
            self._unsure.append(facts.first_tensor(args, kwargs))

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        """Keep the outputs, and the latent code of an encoder that returns mean and spread."""
        step = self._step
        if len(self._others) > 1:
            made = facts.first_tensor(output)
            self._made = _nothing if made is None else weakref.ref(made)
        if not torch.is_grad_enabled() or step.quiet:
            return
        if step.look is None and not self._sampling.glance(step.number):
            return
        nodes, made = [one.grad_fn for one in facts.tensors(output)], facts.first_tensor(output)
        before = [*step.returned.items()][-ANSWERS:] if step.training else []  # or it validates
        step.returned = {**dict(before), **dict.fromkeys(nodes, (step.inputs, made))}
        if step.output is None and step.look is not None:
            step.output = made
            self._keeper.latent(output)

    def _judges(self, inputs: Tensor) -> None:
        """Keep what the module is shown, and whether another one that is trained made it."""
        place = facts.place(inputs)
        others = [one for one in self._others if one is not self]
        makers = [one for one in others if facts.place(one._made()) == place != 0]
        if (rows := inputs_of(inputs)) is not None:
            self.record.shown = [*self.record.shown[1 - SHOWN :], (bool(makers), rows)]
        if {made for made, _ in self.record.shown} == {True, False}:
            for one in makers:
                one.record.final["judged"] = 1.0

    def _forgotten(self) -> None:
        """Take a call in evaluation mode that no backward pass followed for one of validation."""
        if self._step.evaluating is not None:
            self._validating.forward(False, self._step.evaluating)
            self._step.evaluating = None

    def _no_pass(self) -> None:
        """Take calls on other data than those trained on, and no pass after them, for validation.

        Such is one without eval() and without no_grad(). A single call may be the first half of a
        step that takes its other rows from another loader.
        """
        unsure, self._unsure, step = self._unsure, [], self._step
        if len(unsure) > 1 and self._passes and not step.passes:
            for inputs in unsure:
                self._validating.aside(inputs)
            step.entered, step.inputs, step.output = False, None, None
            step.returned, step.sizes = NOTHING, ()

    # ---------------------------------------------------------------- the loss function is called

    def _before_loss(self, module: nn.Module, args: tuple[Any, ...], kwargs: Any) -> None:
        if len(args) >= 2:
            self._keeper.attempt(args[0], args[1])

    def _after_loss(self, module: nn.Module, args: tuple[Any, ...], loss: Any) -> None:
        self._keeper.succeeded()
        step = self._step
        if len(args) < 2 or (step.quiet and torch.is_grad_enabled()):
            return
        if torch.is_grad_enabled():
            step.logged = {**step.logged, "outputs": args[0], "targets": args[1]}
        else:
            self._rouse()
            self._validating.batch(loss, args[0], args[1], None)

    # ---------------------------------------------------------------- gradients are computed

    def _before_backward(self, tensors: Any, gradients: Any) -> bool:
        """Read the loss, and at a sampled step the graph below it, while it is still whole."""
        step = self._step
        if step.quiet and type(tensors) is Tensor and tensors.ndim == 0 and self._follows(step):
            loss = tensors.item() if tensors.is_cpu else tensors.detach()
            if type(loss) is Tensor or -math.inf < loss < math.inf:
                if self._counting:
                    detach(self._counting)  # not when it is called: torch is going through them
                self.record.trained_in_training_mode += 1
                self._losses.add(loss)
                self._begin(step.number + 1)
                return False
        if is_inside():
            return False
        self._rouse()
        return self._backward(listed(tensors), listed(gradients))

    def _backward(self, tensors: list[Any], gradients: list[Any]) -> bool:
        step, loss = self._step, loss_of(tensors, gradients)
        self._arrive()  # now that a device has the forward pass to do
        root = tensors[0] if len(tensors) == 1 else _first_with_graph(tensors)
        if root is None or root.grad_fn is None or loss is None:
            if not self.record.losses:
                facts.note(self.record, facts.not_a_loss(tensors))
                alone = all(t.numel() == 1 for t in tensors)
                self.record.final["without_graph"] = float(alone)
            return False
        if step.look is not None:
            self._parameters.refresh()
        if not self.optimizers:
            self._looks.by_hand(self._last)
        if step.stepping == get_ident() and step.passes:  # an optimizer that tries several points
            step.loss, step.passes = loss, step.passes + 1
            return False
        glance = self._sampling.glance(step.number)
        if not self._is_ours(root, step, glance):
            return False
        step.evaluating, self._unsure = None, []
        self._keeper.succeeded()
        self._validating.end_phase()
        if not self._broken and isinstance(loss, float) and not math.isfinite(loss):
            self._broken = True
            if step.look is None:
                self._begin_look()  # at once: where does it come from?
        if step.look is not None:
            self._look(step, step.look, root)
        elif glance:
            outputs, targets, node = quick_ending(root)
            step.attend(node)
            self._keep(outputs, targets)
        step.loss = loss
        step.output, step.returned = None, NOTHING  # nothing large outlives its usual time
        if "outputs" in step.logged:
            step.logged = {
                name: logged for name, logged in step.logged.items() if name != "outputs"
            }
        step.passes += 1
        self._passes += 1
        return step.look is not None or self._last.look is not None or not self.optimizers

    def _is_ours(self, root: Tensor, step: Step, careful: bool) -> bool:
        """Whether a loss depends on the module; one that follows its call is believed to.

        The module may be called by another door, as by module.forward; other networks may have
        losses of their own, in this step or in another thread.
        """
        followed = self._follows(step)
        if followed and not careful and step.look is None:
            return True
        if not step.entered:
            step.training = self.module.training
        return reaches(root, self._parameters.names) or (followed and self._is_frozen())

    def _follows(self, step: Step) -> bool:
        """Whether a backward pass is the first after a call of the module in this thread."""
        return step.entered and not step.passes and get_ident() == self._thread

    def _is_frozen(self) -> bool:
        return not any(p.requires_grad for p in self._parameters.named.values())

    def _look(self, step: Step, look: Look, root: Tensor) -> None:
        """Measure everything that the graph shows, and keep some rows."""
        given = self._looks.graph(step, look, self._last, root)
        if given is not None:
            self._mark("backward")
            self._keep(*given)

    def _mark(self, what: str) -> None:
        """Remember the line of the user's code that is running."""
        if what not in self.lines and (line := calling_line()) is not None:
            self.lines[what] = line

    def _logged(self, name: str) -> Tensor | None:
        return facts.tensor(self._step.logged.get(name))

    def _keep(self, outputs: Tensor | None, targets: Tensor | None) -> None:
        """Keep some rows: what the loss saw, else what the user logged."""
        inputs = self._step.logged.get("inputs", self._step.inputs)
        outputs = outputs if outputs is not None else self._logged("outputs")
        targets = targets if targets is not None else self._logged("targets")
        self._keeper.train(self._step.number, inputs, outputs, targets)

    def _after_backward(self) -> None:
        """Measure the gradients at a sampled step, and at the one that follows it."""
        self._looks.gradients(self._step, self._last)
        if not self.optimizers:
            self._end_of_step()

    # ---------------------------------------------------------------- the optimizer is called

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        step = self._stepping(optimizer)
        step.stepping = get_ident()
        if step.look is None:
            return
        self._mark("step")
        self._looks.before_step(step, step.look, optimizer)

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        step = self._stepping(optimizer)
        if step.look is not None and step.seen:
            self._looks.after_step(step, step.look, self._last, optimizer)
        step.stepped += (id(optimizer),)
        step.stepping = None
        if self._pace is None:
            self._pace = optimizer
        if optimizer is self._pace and step is self._step:
            self._end_of_step()

    def _stepping(self, optimizer: Optimizer) -> Step:
        """Return the step an optimizer belongs to: that just ended if it is a late one."""
        second = self._step.untouched and self._last.number >= 0
        return self._last if second and id(optimizer) not in self._last.stepped else self._step

    def _end_of_step(self) -> None:
        step = self._step
        if step.passes:
            self.record.trained_in_training_mode += step.training
            self.record.trained_in_evaluation_mode += not step.training
        self._losses.add(step.loss)
        if step.look is not None and step.seen:
            step.look.passes = step.passes
            self.record.looks.append(step.look)
            if not self._looks.send(step.look, self._losses):
                self._arrive()
            self._looked()
        elif step.look is not None and self._passes:
            self._sampling.hasten()  # this one gave nothing to see: try the next
        self._calm = step.plain and step.entered and step.passes == len(self.optimizers) == 1
        step.inputs, step.logged = None, NOTHING  # nothing of it is kept alive
        self._begin(step.number + 1)

    def _looked(self) -> None:
        """Act after a sampled step."""

    def _arrive(self) -> None:
        """Take over what the last look measured."""
        read = self._looks.numbers.read()
        if read and not self._broken and not all(map(math.isfinite, self._losses.latest())):
            self._broken = True
            self._sampling.hasten()


def _nothing() -> None:
    """Return what a module that was not called returned."""


def _ignored(*_: Any) -> None:
    """Listen to nothing."""


def _first_with_graph(tensors: list[Tensor]) -> Tensor | None:
    return next((tensor for tensor in tensors if tensor.grad_fn is not None), None)
