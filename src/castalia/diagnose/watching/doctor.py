"""The doctor beside a training: three lines in any PyTorch loop."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.record import Look, Record
from castalia.diagnose.rules import judge
from castalia.diagnose.rules.case import Case
from castalia.diagnose.watching import facts
from castalia.diagnose.watching.backward import listen, unlisten
from castalia.diagnose.watching.causality import future_change
from castalia.diagnose.watching.keeping import Keeper
from castalia.diagnose.watching.reading import Reading, quick_ending, read
from castalia.diagnose.watching.sampling import Sampling
from castalia.diagnose.watching.validating import Validating
from castalia.diagnose.watching.weights import (
    gradient_norms,
    gradient_sample,
    sample,
    update_ratios,
)

__all__ = ["TASKS", "Doctor", "watch"]

TASKS = ("binary", "multiclass", "multilabel", "regression", "lm", "seq", "vae", "gan")
MOST_TROUBLES = 5

F = TypeVar("F", bound=Callable[..., Any])


def watch(
    module: nn.Module,
    optimizer: Optimizer | Iterable[Optimizer] | None = None,
    loss_fn: Any = None,
    task: str | None = None,
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
    return Doctor(module, optimizer, loss_fn, task)


def guarded(method: F) -> F:
    """Keep the doctor's own mistakes out of the user's training."""

    @functools.wraps(method)
    def careful(self: Doctor, *args: Any, **kwargs: Any) -> Any:
        if self.closed:
            return None
        try:
            return method(self, *args, **kwargs)
        except Exception as error:  # whatever it is, the training must go on
            self._trouble(method.__name__, error)
            return None

    return careful  # type: ignore[return-value]


class Doctor:
    """Watches one training; made by ``watch``.

    Attributes
    ----------
    record
        What was seen so far.

    Parameters
    ----------
    module, optimizer, loss_fn, task
        As in ``watch``.
    """

    def __init__(
        self, module: nn.Module, optimizer: Any = None, loss_fn: Any = None, task: str | None = None
    ) -> None:
        self.closed = False
        self.module, self.loss_fn = module, loss_fn
        self.optimizers: list[Any] = facts.listed(optimizer)
        self.record = Record(task=task if task in TASKS else None, module=type(module).__name__)
        self.parameters = facts.named_parameters(module)
        self.names = {id(p): name for name, p in self.parameters.items()}
        self.sampling, self.keeper = Sampling(), Keeper(self.record)
        self.validating = Validating(self.record, self.keeper)
        self.look: Look | None = None
        self.reading: Reading | None = None
        self._inputs: Any = None
        self._output: Any = None
        self._evaluating: Any = None  # inputs of a call in evaluation mode, with gradients on
        self._told: dict[str, Any] = {}
        self._loss: Any = None  # of the step under way
        self._waiting: list[Tensor] = []  # losses on a device, read now and then
        self._entered = False
        self._backwards = 0
        self._mode = True
        self._before: dict[str, Tensor] = {}
        self._troubles = 0
        self._emergency = False
        self._looked = False  # whether the step before this one was looked at
        self._handles: list[Any] = []
        self._started = False
        if task is not None and task not in TASKS:
            self.record.notes.append(f"task={task!r} is not one of {', '.join(TASKS)}; ignored.")
        self._attach()

    # ---------------------------------------------------------------- what the user calls

    @guarded
    def log(
        self,
        loss: Tensor | float | None = None,
        outputs: Any = None,
        targets: Any = None,
        inputs: Any = None,
    ) -> None:
        """Tell the doctor about a batch, before or after its step.

        Parameters
        ----------
        loss
            The loss.
        outputs, targets, inputs
            Tensors, where the doctor cannot see them itself. Under ``no_grad`` the batch is one of
            validation.
        """
        if not torch.is_grad_enabled() or (
            not self.module.training and not facts.needs_gradient(loss, outputs)
        ):
            self.validating.batch(loss, outputs, targets, inputs)
            return
        told = {"outputs": outputs, "targets": targets, "inputs": inputs}
        told = {name: value for name, value in told.items() if value is not None}
        if self._backwards == 0 and self.record.losses and not self._entered:
            self._add_to_last(loss, told)
        else:
            self._told = told
            if loss is not None and self._loss is None:
                self._loss = loss.detach() if isinstance(loss, Tensor) else float(loss)

    @guarded
    def epoch(
        self, validation_loss: float | None = None, validation_score: float | None = None
    ) -> None:
        """Tell the doctor that an epoch has ended.

        Parameters
        ----------
        validation_loss, validation_score
            How validation went, where known; a score is better the higher it is.
        """
        self._read_waiting()
        self._forgotten()
        if self._entered and not self._backwards and self._mode:  # neither eval() nor no_grad()
            self.validating.forward(True, self._inputs)
            self._entered = False
        self.validating.end(facts.number(validation_loss), facts.number(validation_score), True)

    def diagnosis(self, mute: Iterable[str] = ()) -> Diagnosis:
        """Return what was found so far; watching goes on.

        Parameters
        ----------
        mute
            Codes not wanted.
        """
        self._finish()
        self._look_ahead()
        return judge(self.record, mute=tuple(mute))

    def _look_ahead(self) -> None:
        """Ask a language model whether it sees the future."""
        rows = self.record.train.inputs
        tokens = next((x for x in reversed(rows) if x is not None and x.dtype.kind in "iu"), None)
        if (
            tokens is None
            or tokens.ndim != 2
            or tokens.shape[1] < 4
            or not Case(self.record).shifted
        ):
            return
        try:
            self.closed, was = True, self.closed  # our own hooks must not see this
            change = future_change(self.module, tokens)
        except Exception:  # a module that wants other arguments cannot be asked
            change = None
        finally:
            self.closed = was
        if change is not None:
            self.record.final["future"] = change

    def close(self) -> None:
        """Stop watching and leave no trace in torch, the module or the optimizer."""
        if not self.closed:
            self._finish()
            self.closed = True
            unlisten(self)
            for handle in self._handles:
                handle.remove()

    def __enter__(self) -> Doctor:
        """Return the doctor; leaving the block stops watching."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        self.close()

    # ---------------------------------------------------------------- attaching

    def _attach(self) -> None:
        try:
            facts.describe(self.record, self.module, self.parameters, self.optimizers)
            self._start = sample(self.parameters, facts.STARTED)
            listen(self)
            add = self._handles.append
            add(self.module.register_forward_pre_hook(self._enter, with_kwargs=True))
            for optimizer in self.optimizers:
                add(optimizer.register_step_pre_hook(self._before_step))
                add(optimizer.register_step_post_hook(self._after_step))
            if isinstance(self.loss_fn, nn.Module):
                add(self.loss_fn.register_forward_pre_hook(self._before_loss))
                add(self.loss_fn.register_forward_hook(self._after_loss))
        except Exception as error:  # a module that cannot be hooked is still trained
            self._trouble("watch", error)

    def _trouble(self, where: str, error: Exception) -> None:
        self._troubles += 1
        note = f"Something could not be watched ({where}): {type(error).__name__}: {error}"
        if note not in self.record.notes:
            self.record.notes.append(note)
        if self._troubles >= MOST_TROUBLES and not self.closed:
            self.closed = True
            self.record.notes.append("Watching was given up after repeated difficulties.")
            unlisten(self)
            for handle in self._handles:
                handle.remove()

    # ---------------------------------------------------------------- events

    @guarded
    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note that the module is about to run."""
        if not torch.is_grad_enabled():
            self.validating.forward(module.training, facts.first_tensor(args, kwargs))
            return
        self._mode = module.training
        self._forgotten()
        step = len(self.record.losses)
        if not self._entered:
            self._entered = True
            if self.look is None and self.sampling.look(step):
                self.look = Look(step)
            if self.look is not None:
                self._leaving = module.register_forward_hook(self._leave)
        if self.look is not None or not self._mode or self.sampling.glance(step):
            self._inputs = facts.first_tensor(args, kwargs)
            self._evaluating = None if self._mode else self._inputs

    def _forgotten(self) -> None:
        """Take a call in evaluation mode that no backward pass followed for one of validation."""
        if self._evaluating is not None:
            self.validating.forward(False, self._evaluating)
            self._evaluating = None

    @guarded
    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        """Keep the outputs, and the latent code of an encoder that returns mean and spread."""
        self._leaving.remove()
        self._output = facts.first_tensor(output)
        self.keeper.latent(output)

    @guarded
    def _before_loss(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if len(args) >= 2:
            self._told.setdefault("outputs", args[0])
            self._told.setdefault("targets", args[1])
            self.keeper.attempt(args[0], args[1])

    @guarded
    def _after_loss(self, module: nn.Module, args: tuple[Any, ...], loss: Any) -> None:
        self.keeper.succeeded()
        if len(args) >= 2 and not torch.is_grad_enabled():
            self.validating.batch(loss, args[0], args[1], None)
            self._told = {}

    @guarded
    def before_backward(self, loss: Tensor) -> None:
        """Read the loss, and at a sampled step the graph below it."""
        if loss.grad_fn is None or loss.numel() != 1:
            if not self._started:
                self.record.notes.append(facts.not_a_scalar(loss))
            return
        if not self._entered and not self._is_ours(loss):
            return
        self._evaluating = None
        self.validating.end_phase()
        step = len(self.record.losses)
        if self.look is None and not self._entered and self.sampling.look(step):
            self.look = Look(step)  # the module was run by another door than its call
        value = self._note_loss(loss)
        if self.look is not None and self.reading is None:
            self._read(loss, value)
        elif self.look is None and self.sampling.glance(step):
            outputs, targets = self._tensors(*quick_ending(loss))
            self.keeper.train(step, self._told.get("inputs", self._inputs), outputs, targets)
        self._backwards += 1

    def _note_loss(self, loss: Tensor) -> float:
        if loss.device.type != "cpu":
            self._loss = loss.detach()
            return math.nan
        value = loss.item()
        self._loss = value
        if not math.isfinite(value) and not self._emergency:
            self._emergency = True  # look at once where it comes from
            if self.look is None:
                self.look = Look(len(self.record.losses))
        return value

    def _is_ours(self, loss: Tensor) -> bool:
        """Whether a loss depends on the module though its call was not seen; looked at seldom."""
        if self.optimizers and any(o.state for o in self.optimizers) and self.record.losses:
            return True
        return bool(read(loss, self.names, math.nan).used) if not self._started else True

    def _read(self, loss: Tensor, value: float) -> None:
        look = self.look
        if look is None:
            return
        reading = read(loss, self.names, value)
        if not reading.used:  # another network's loss, as in an adversarial pair
            if self.parameters and not any(p.requires_grad for p in self.parameters.values()):
                self.reading = reading
            return
        self.reading = reading
        look.training = self._mode
        if reading.opaque:
            facts.note(self.record, "The module is compiled: its activations cannot be seen.")
        look.stale = self._stale(look.stale)
        reading.ending.complete(self._output)
        outputs, targets = self._tensors(reading.ending.outputs, reading.ending.targets)
        inputs = self._told.get("inputs", self._inputs)
        look.size = facts.rows(inputs, outputs, targets)
        look.output_spread = facts.spread(outputs)
        reading.fill(look)
        look.suspects = tuple(f"{words} in `{layer}`" for layer, words in reading.singular)
        self.record.data_normalised |= reading.data_normalised
        self.record.used |= reading.used
        self.keeper.train(look.step, inputs, outputs, targets)

    def _tensors(self, outputs: Any, targets: Any) -> tuple[Any, Any]:
        """Prefer what the loss saw; else what the user told."""
        outputs = outputs if outputs is not None else facts.tensor(self._told.get("outputs"))
        targets = targets if targets is not None else facts.tensor(self._told.get("targets"))
        return outputs, targets

    def _stale(self, before: bool | None) -> bool | None:
        """Whether gradients of an earlier step are still there."""
        if not self.record.losses or before is False or self._backwards:
            return before
        norms = [n for n in gradient_norms(self._optimized()).values() if n is not None]
        return any(n > 0 for n in norms)

    def _optimized(self) -> dict[str, nn.Parameter]:
        held = {id(p) for o in self.optimizers for g in o.param_groups for p in g["params"]}
        return {n: p for n, p in self.parameters.items() if id(p) in held} or self.parameters

    @guarded
    def after_backward(self) -> None:
        """Measure the gradients at a sampled step."""
        if self.look is not None and self.reading is not None:
            self.look.gradients = gradient_norms(self.parameters)
            self.look.gradient = gradient_sample(self.parameters)
        elif self._looked and self.record.looks:
            self.record.looks[-1].next_gradient = gradient_sample(self.parameters)
        if not self.optimizers:
            self._end_of_step()

    @guarded
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self.look is not None and self.reading is not None:
            mine = facts.held_by(optimizer, self.parameters)
            norms = gradient_norms(mine)
            self.look.applied.update({n: v for n, v in norms.items() if v is not None})
            self.look.lr = facts.rate(self.optimizers[0])
            self._before = sample(mine)

    @guarded
    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self._before and self.look is not None:
            ratios, sizes = update_ratios(self._before, facts.held_by(optimizer, self.parameters))
            self.look.updates.update(ratios)
            self.look.weights.update(sizes)
            self._before = {}
        if optimizer is self._pace(optimizer):
            self._end_of_step()

    def _pace(self, optimizer: Optimizer) -> Optimizer:
        """Return the optimizer whose steps are counted: the first one that made one."""
        if not self._started:
            self._pacemaker = optimizer
            self._started = True
        return self._pacemaker

    def _end_of_step(self) -> None:
        self._started = True
        loss, self._loss = self._loss, None
        if self._backwards:
            if self._mode:
                self.record.trained_in_training_mode += 1
            else:
                self.record.trained_in_evaluation_mode += 1
        if isinstance(loss, Tensor):
            self._waiting.append(loss)
            self.record.losses.append(math.nan)
            if self.look is not None or len(self._waiting) >= 256:
                self._read_waiting()
        else:
            self.record.losses.append(math.nan if loss is None else loss)
        self._looked = self.look is not None and self.reading is not None
        if self.look is not None and self.reading is not None:
            self.look.loss = self.record.losses[-1]
            self.record.looks.append(self.look)
            self.look, self.reading = None, None
        self._inputs, self._output, self._told = None, None, {}
        self._entered, self._backwards = False, 0

    def _read_waiting(self) -> None:
        if self._waiting:
            values = torch.stack([w.float().reshape(()) for w in self._waiting]).tolist()
            missing = len(values)
            start = len(self.record.losses) - missing
            self.record.losses[start:] = values
            self._waiting = []

    def _add_to_last(self, loss: Any, told: dict[str, Any]) -> None:
        """Add what the user tells after the step to that step."""
        if loss is not None and not self._waiting and math.isnan(self.record.losses[-1]):
            self.record.losses[-1] = facts.number(loss) or math.nan
        step = len(self.record.losses) - 1
        if told and (self.sampling.glance(step) or step == self.keeper.last):
            self.keeper.complete(step, told)

    @guarded
    def _finish(self) -> None:
        """Bring the record up to date."""
        self._read_waiting()
        if self.look is not None and self.reading is not None and self.look.gradients:
            self.record.looks.append(self.look)  # the optimizer was never called
            self.look, self.reading = None, None
        self._forgotten()
        self.validating.end_phase()
        self.keeper.conclude()
        facts.conclude(self.record, self.parameters, self.optimizers, self._start)
