"""One optimisation step: gradients of every micro-batch, clipping, the optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from castalia.data.batches import Samples
from castalia.errors import InvalidParameter
from castalia.optim import build_optimizer, clip_gradients, closure_kind, fused_step
from castalia.protocols import Backprops, Batch, Objective, Phase
from castalia.train.check import check_closure
from castalia.train.closures import Evaluations, is_of_outputs, refuse_objective
from castalia.train.precision import Precision
from castalia.train.strategy import Single
from castalia.train.training import Training

__all__ = ["Stepper"]

Terms = dict[str, Tensor]

_run_backward = torch.autograd.Variable._execution_engine.run_backward


class Stepper:
    """Takes the steps of one stage: for each batch, every phase of the objective.

    Parameters
    ----------
    net, objective
        What is trained, and by what.
    training
        Settings; ``optimizer``, ``weight_decay``, ``clip`` and ``accumulate`` are used here.
    batch_size
        Rows of a batch, over all processes and micro-batches.
    lr
        Base learning rate.
    device, precision, strategy
        Where, in which format, and with whom.
    on_gradients
        Called when the gradients of a phase are ready.
    """

    graph = False

    def __init__(
        self,
        net: nn.Module,
        objective: Objective,
        training: Training,
        *,
        batch_size: int,
        lr: float,
        device: torch.device,
        precision: Precision,
        strategy: Single,
        on_gradients: Callable[[], None] | None = None,
    ) -> None:
        self.net, self.objective, self.training = net, objective, training
        self.batch_size, self.device, self.precision, self.strategy = (
            batch_size,
            device,
            precision,
            strategy,
        )
        self.on_gradients = on_gradients
        self.micro = training.accumulate
        self.parameters = list(net.parameters())
        self.phases = [phase for phase in objective.phases(net) if phase.parameters]
        if not self.phases:
            raise InvalidParameter(
                f"{type(objective).__name__}: the network has no trainable parameter."
            )
        self.lr = lr
        self.optimizers = [
            build_optimizer(
                training.optimizer,
                phase.parameters,
                lr=lr,
                lr_scale=phase.lr_scale,
                weight_decay=training.weight_decay,
                capture=self.graph,
            )
            for phase in self.phases
        ]
        for optimizer in self.optimizers:  # one made by a function shows its class only now
            check_closure(training, type(optimizer))
        self.closures = [closure_kind(type(optimizer)) for optimizer in self.optimizers]
        if hasattr(objective, "once"):  # curvature needs second derivatives
            objective.once = set(self.closures) <= {None, "gradients"}
        if any(self.closures) and precision.name == "bf16":
            # A line search compares more digits of the loss than bf16 has.
            self.precision = Precision("tf32", precision.dtype)
        self.of_outputs: dict[str, bool] = {}  # by phase, once it is known
        self.prepare()
        self.one = torch.ones((), device=device)  # the gradient of the loss by itself
        self.missing = torch.full(
            (), torch.nan, device=device
        )  # stands for a phase that took no step
        self.record: list[Terms] = []
        self.rows: list[int] = []
        self.upcoming = 0
        self.widths: list[tuple[int, ...]] | None = None  # of the batches of padded rows

    def prepare(self) -> None:
        """Find the quickest way to take each optimizer's step; again after its state was loaded."""
        self.updates: list[Callable[[], Any]] = [
            fused_step(optimizer) or optimizer.step for optimizer in self.optimizers
        ]

    def begin(self, samples: Samples, order: Tensor, cuts: Sequence[int] | None = None) -> None:
        """Take up a window of samples, the order of its rows, and where it is cut into batches."""
        if cuts is None:
            cuts = range(0, len(order) + self.batch_size, self.batch_size)
        self.samples, self.order, self.cuts = samples, order, cuts
        self.widths = samples.widths(order, cuts, few=self.device.type == "cuda")
        self.width: tuple[int, ...] | None = None
        self.by_hand = self._can_go_by_hand()
        samples.x.plan(self.strategy.share(order[a:b]) for a, b in pairwise(cuts))

    @property
    def batches(self) -> int:
        """How many batches the window has."""
        return len(self.cuts) - 1

    def _choose(self, i: int) -> Tensor:
        """Return the rows of the window's i-th batch, and let it be as wide as it must."""
        self.width = None if self.widths is None else self.widths[i]
        return self.order[self.cuts[i] : self.cuts[i + 1]]

    def _can_go_by_hand(self) -> bool:
        """Whether the step is a small one on the CPU whose back-propagation the network knows.

        Autograd costs such a step as much as its arithmetic. Anything that listens inside the
        network (hooks), and any part that is not trained, needs autograd.
        """
        return (
            self.device.type == "cpu"
            and self.precision.name != "bf16"
            and isinstance(self.net, Backprops)
            and self.net.can_backprop()
            and _up_to_date(self.net, "backprop", "forward")
            and hasattr(self.objective, "loss_gradient")
            and _up_to_date(self.objective, "loss_gradient", "terms", "rows")
            and len(self.phases) == 1
            and len(self.phases[0].parameters) == len(self.parameters)
            and not _hooked(self.net, self.parameters)
        )

    def peek(self) -> Batch:
        """Return the batch that the next step takes."""
        return self._batch(self._choose(self.upcoming))

    def set_rate(self, factor: float) -> None:
        """Set every group's rate to ``factor`` times its base."""
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                rate = self.lr * group.get("lr_scale", 1.0) * factor
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(rate)
                else:
                    group["lr"] = rate

    def step(self, i: int, number: int) -> Tensor:
        """Take the step of the window's i-th batch, the epoch's ``number``-th; return its loss."""
        index = self._choose(i)
        terms = self._phases(index, number)
        if not terms:  # no phase was due: nothing to record
            return self.missing
        self.record.append(terms)
        self.rows.append(index.shape[0])
        return terms["loss"]

    def collect(self) -> tuple[dict[str, Tensor], list[int]]:
        """Return the terms of the steps since the last call, each (steps,), and their rows."""
        record, rows = self.record, self.rows
        self.record, self.rows = [], []
        names = dict.fromkeys(name for terms in record for name in terms)  # in order of appearance
        values = {
            name: torch.stack([terms.get(name, self.missing) for terms in record]) for name in names
        }
        return values, rows

    def carried(self) -> dict[str, Tensor]:
        """Return what the objective carries from step to step; few carry anything."""
        found: dict[str, Tensor] = getattr(self.objective, "state_dict", dict)()
        return found

    def carry_on(self, state: dict[str, Tensor]) -> None:
        """Let the objective go on from what it carried."""
        if hasattr(self.objective, "load_state_dict"):
            self.objective.load_state_dict({k: v.to(self.device) for k, v in state.items()})

    def release(self) -> bool:
        """Let go of what only steps need; whether they were recorded as a graph."""
        return False

    def _phases(self, index: Tensor, number: int) -> Terms:
        found: Terms = {}
        for k, phase in enumerate(self.phases):
            if number % phase.every == 0:
                for _ in range(phase.repeat):
                    terms = self._update(index, phase, k)
                    self.objective.after_step(self.net)
                found.update(terms if len(self.phases) == 1 else _named(terms, phase.name))
        if found and "loss" not in found:
            found["loss"] = next(iter(found.values()))
        return found

    def _update(self, index: Tensor, phase: Phase, k: int) -> Terms:
        if self.closures[k] is not None:
            return self._evaluate_often(index, phase, k)
        terms = self._ready_gradients(index, phase)
        self.updates[k]()
        return terms

    def _evaluate_often(self, index: Tensor, phase: Phase, k: int) -> Terms:
        """Step of an optimizer that evaluates the batch again and again through a closure."""
        kind, evaluations = self.closures[k], Evaluations(self.device)
        if kind == "gradients":
            closure: Any = evaluations.of_gradients(lambda: self._ready_gradients(index, phase))
            self.optimizers[k].step(closure)
            return evaluations.terms
        batch = self._batch(index)
        if kind != "loss" and phase.name not in self.of_outputs:
            found = is_of_outputs(self.objective, self.net, batch, phase.name)
            if kind == "outputs" and not found:
                raise refuse_objective(type(self.optimizers[k]).__name__, self.objective)
            self.of_outputs[phase.name] = found
        by_outputs = kind != "loss" and self.of_outputs[phase.name]
        make: Any = evaluations.of_outputs if by_outputs else evaluations.of_loss
        try:
            self.optimizers[k].step(make(self.objective, self.net, batch, phase.name))
        except torch.OutOfMemoryError as error:
            raise InvalidParameter(
                f"Training: a batch of {len(index)} rows and its curvature do not fit into the "
                f"memory of {self.device}. Lower `batch_size`."
            ) from error
        if self.on_gradients is not None:  # those of the step's start
            self.on_gradients()
        return evaluations.terms

    def _ready_gradients(self, index: Tensor, phase: Phase) -> Terms:
        """Gradients of the batch, reported and clipped."""
        terms = self._gradients(index, phase)
        if self.on_gradients is not None:
            self.on_gradients()
        clip_gradients(phase.parameters, self.training.clip)
        return terms

    def _gradients(self, index: Tensor, phase: Phase) -> Terms:
        """Gradients of the batch; when memory runs out, the micro-batches are halved."""
        while True:
            try:
                return self._accumulate(index, phase)
            except torch.OutOfMemoryError as error:
                if self.strategy.name == "fsdp":  # the others already wait in the next exchange
                    raise InvalidParameter(
                        f"Training: a micro-batch does not fit into the memory of {self.device}. "
                        f"Set Training(accumulate={2 * self.micro})."
                    ) from error
                if self.micro >= len(index):
                    raise InvalidParameter(
                        f"Training: one row does not fit into the memory of {self.device}. "
                        "Use a smaller network or another device."
                    ) from error
            self.micro = min(2 * self.micro, len(index))
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def _accumulate(self, index: Tensor, phase: Phase) -> Terms:
        undivided = self.micro == 1 and self.strategy.world == 1
        if undivided and self.by_hand:
            return self._backprop(index)
        for parameter in self.parameters:
            parameter.grad = None
        if undivided:
            terms = self._terms(index, phase)
            self._backward(terms["loss"])
            return {name: value.detach() for name, value in terms.items()}
        whole = self._weight(index)
        mine = self.strategy.share(index)
        # Every process takes as many parts as the largest share has: sharded networks meet in each
        # of them.
        parts = min(self.micro, -(-len(index) // self.strategy.world))
        total: Terms = {}
        for part in mine.tensor_split(parts) if parts > 1 else (mine,):
            idle = len(part) == 0  # fewer rows than processes: join in with weight 0
            terms = self._terms(index[:1] if idle else part, phase)
            scale = self.strategy.scale(0.0 if idle else self._weight(part), whole)
            self._backward(terms["loss"] * scale)
            for name, value in terms.items():
                total[name] = total.get(name, 0.0) + value.detach() * (
                    scale / self.strategy.scale(1.0, 1.0)
                )
        self.strategy.sync(phase.parameters)
        return total

    def _backprop(self, index: Tensor) -> Terms:
        """Gradients by the network's own back-propagation."""
        net: Any = self.net
        objective: Any = self.objective
        batch = self._batch(index)
        return {"loss": net.backprop(batch.x, lambda out: objective.loss_gradient(out, batch))}

    def _backward(self, loss: Tensor) -> None:
        """Do what ``loss.backward()`` does without its checks, a tenth of a small step."""
        if self.one.shape != loss.shape or self.one.dtype != loss.dtype:
            self.one = torch.ones_like(loss)
        _run_backward(
            (loss,), (self.one,), False, False, (), allow_unreachable=True, accumulate_grad=True
        )

    def _terms(self, index: Tensor, phase: Phase) -> Terms:
        batch = self._batch(index)
        with self.precision.autocast(self.device):
            return self.objective.terms(self.net, batch, phase.name)

    def _weight(self, index: Tensor) -> Tensor | int:
        weight = self.samples.weight
        return len(index) if weight is None else weight.index_select(0, index).sum()

    def _batch(self, index: Tensor) -> Batch:
        batch = self.samples.batch(index, self.width)
        if index.device == self.device:
            return batch
        return Batch(
            *(v.to(self.device, non_blocking=True) if isinstance(v, Tensor) else v for v in batch)
        )


def _up_to_date(owner: Any, shortcut: str, *originals: str) -> bool:
    """Whether no subclass or instance changed an original without writing its shortcut anew."""
    order = [vars(owner), *(vars(cls) for cls in type(owner).__mro__)]

    def place(name: str) -> int:
        return next((i for i, names in enumerate(order) if name in names), len(order))

    return all(place(shortcut) <= place(name) for name in originals)


def _hooked(net: nn.Module, parameters: list[nn.Parameter]) -> bool:
    """Whether anybody listens inside the network."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return (
        _has_any_global_hook()
        or any(getattr(module, name) for module in net.modules() for name in hooks)
        or any(p._backward_hooks or p._post_accumulate_grad_hooks for p in parameters)
    )


def _named(terms: Terms, phase: str) -> Terms:
    """Name the terms of one phase among several: its loss carries the phase's name."""
    return {phase if name == "loss" else name: value for name, value in terms.items()}
