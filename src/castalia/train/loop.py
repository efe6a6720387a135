"""The one loop. Nothing here is about a particular model.

for stage in stages:
    for epoch in epochs:
        for batch in order(seed, epoch):
            step
        validate, average, stop early
        record, checkpoint
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn

from castalia.data.batches import Samples
from castalia.errors import TrainingWarning
from castalia.nn import running_statistics
from castalia.optim import Average, base_rate, build_average, closure_kind, optimizer_class
from castalia.protocols import Solves, Stage
from castalia.train.best_weights import BestWeights
from castalia.train.callbacks import Callback, Dispatch
from castalia.train.device_faults import faults_explained
from castalia.train.learning_rate import LearningRate
from castalia.train.placement import Placement
from castalia.train.precision import Precision
from castalia.train.progress import build_progress
from castalia.train.rank_check import check_same_rows
from castalia.train.recorder import Recorder
from castalia.train.resume_point import ResumePoint
from castalia.train.state import TrainState
from castalia.train.step_cost import evaluation_rows, step_work
from castalia.train.step_parts import StepParts
from castalia.train.step_terms import StepTerms
from castalia.train.stepper import Stepper
from castalia.train.steppers.captured_step import own_stream
from castalia.train.training import Training
from castalia.train.validation_loss import ValidationLoss
from castalia.train.window import Window
from castalia.utils.devices import cpu_scope
from castalia.utils.preemption import Preempted, SigtermNotice
from castalia.utils.seeds import derive

__all__ = ["train"]

CHECK_EVERY = 50  # steps between checks that the loss is a number
AGREE_EVERY = 10  # steps between two questions whether one of several processes got SIGTERM


def train(
    net: nn.Module,
    stages: Sequence[Stage],
    data: Samples,
    training: Training,
    *,
    epochs: int,
    batch_size: int,
    lr: float,
    seed: int,
    device: torch.device,
    precision: Precision,
    validation: Samples | None = None,
    callbacks: Sequence[Callback] = (),
    recorder: Recorder | None = None,
    work: float | None = None,
    optimizers: Sequence[dict[str, Any]] | None = None,
) -> TrainState:
    """Train a network through stages and return where it ended.

    Parameters
    ----------
    net
        The network; changed in place.
    stages
        Objectives in order, each with its epochs and rate.
    data
        Training samples.
    training
        Settings, already checked.
    epochs, batch_size, lr
        Defaults of the stages.
    seed
        Of the order of the rows. Dropout and the like draw from torch's current generator.
    device, precision
        Where and in which format.
    validation
        Samples to validate on after each epoch.
    callbacks
        Further callbacks.
    recorder
        Run folder to record to and to resume from.
    work
        Multiply-adds of a step, by which CPU threads are chosen; None: estimated by ``step_work``.
    optimizers
        States of optimizers to begin the first stage with, from an earlier training; None: new.
    """
    place = Placement(net, data, training, device, precision, seed)
    check_same_rows(data, place.strategy, device)
    recorder = recorder if recorder is not None else Recorder(None)
    legs = [
        _Leg(stage, stage.epochs or epochs, base_rate(training.optimizer, stage.lr or lr))
        for stage in stages
    ]
    loop = _Loop(place, data, validation, training, batch_size, seed, recorder, callbacks)
    if work is None:
        work = step_work(net, torch.Size(data.x.shape), loop.batch_size)
    return loop.run(legs, work, optimizers)


class _Leg(NamedTuple):
    """A stage, with its epochs and its rate."""

    stage: Stage
    epochs: int
    lr: float


class _Loop:
    def __init__(
        self,
        place: Placement,
        data: Samples,
        validation: Samples | None,
        training: Training,
        batch_size: int,
        seed: int,
        recorder: Recorder,
        callbacks: Sequence[Callback],
    ) -> None:
        self.place, self.training, self.seed, self.recorder = place, training, seed, recorder
        recorder.strategy = place.strategy
        self.batch_size = min(batch_size, len(data))
        self.data = data.to(place.home)
        held = None if validation is None or not len(validation) else validation.to(place.home)
        rows = evaluation_rows(torch.Size(data.x.shape), padded=data.lengths is not None)
        rows = max(self.batch_size, rows)
        self.validation = None if held is None else ValidationLoss(place, held, rows)
        progress = build_progress(training.verbose, quiet=place.strategy.rank > 0)
        self.dispatch = Dispatch([*training.callbacks, *callbacks, *progress])
        self.state = TrainState(place.net, validation=held)
        self.terms = StepTerms(self.state, place.strategy)
        self.best = BestWeights(training.patience)

    def run(
        self, legs: Sequence[_Leg], work: float, optimizers: Sequence[dict[str, Any]] | None
    ) -> TrainState:
        """Run every stage, from wherever a checkpoint left off."""
        place, state = self.place, self.state
        with (
            faults_explained(state, place.device, self.recorder),
            cpu_scope(place.device, work) as cores,
            place.precision.products(place.device),
            own_stream(place.device),
            self.recorder.closing(),
            SigtermNotice(self.recorder.active) as self.notice,
        ):
            state.settings = {**place.settings, **cores}
            saved = self.recorder.resume(place.device)
            if saved is not None:
                self._return_to(saved)
                if saved["finished"]:
                    held = {"net": place.strategy.state_dict(place.net)}
                    return self._end(self.recorder.fetch(saved, held, ("net",))["net"])
            self.dispatch("on_fit_start", state)
            try:
                self._stages(legs, saved, optimizers)
            except BaseException:
                place.release()
                self.dispatch("on_failure", state)
                raise
            place.net._compiled_call_impl = None  # else predictions would compile it once more
            self._end()
            self.dispatch("on_fit_end", state)
            self._checkpoint(finished=True)
            self.recorder.finish()
        return state

    def _stages(
        self,
        legs: Sequence[_Leg],
        saved: dict[str, Any] | None,
        optimizers: Sequence[dict[str, Any]] | None,
    ) -> None:
        state = self.state
        for number in range(state.stage_index, len(legs)):
            self._enter(number, legs[number])
            if saved is not None:
                self.point.load(saved)
                self.rate.forget()
            else:
                state.lr = legs[number].lr
                self.point.load_optimizers(optimizers)
            self._stage()
            saved = optimizers = None
            if number + 1 < len(legs) and state.stopped == self.best.stale:
                state.stopped = None  # patience ends its stage, not the training

    def _enter(self, number: int, leg: _Leg) -> None:
        """Put together what the steps of a stage need."""
        place, state = self.place, self.state
        if number != state.stage_index:
            state.epoch = state.step = 0
        state.stage, state.stage_index, state.epochs = leg.stage.name, number, leg.epochs
        state.steps = self.data.n_batches(self.batch_size)
        self.objective = leg.stage.objective
        self.stepper = state.stepper = Stepper(self._parts(leg))
        self.statistics = running_statistics(place.net)
        trained = [p for p in place.net.parameters() if p.requires_grad]
        self.average = build_average(self.training.average, [*trained, *self.statistics])
        self.order_seed = derive(self.seed, number)
        self.rate = LearningRate(self.stepper.parts, self.training.schedule, state)
        self.point = ResumePoint(
            place, self.stepper, self.average, self.terms, self.best, self.recorder
        )

    def _parts(self, leg: _Leg) -> StepParts:
        place, listeners = self.place, {}
        if self.dispatch.listens("on_gradients"):
            listeners["on_gradients"] = lambda: self.dispatch("on_gradients", self.state)
        capture = (
            self.training.step == "auto"
            and self.training.compile in ("auto", True)
            and place.device.type == "cuda"
            and place.home == place.device
            and place.strategy.world == 1
            and not listeners
            and not self.training.recompute
            and closure_kind(optimizer_class(self.training.optimizer)) is None
        )
        parts = StepParts(
            place.net,
            leg.stage.objective,
            self.training,
            leg.lr,
            place.device,
            place.precision,
            place.strategy,
            capture=capture,
            rows=len(self.data),
            steps=self.state.steps,
            **listeners,
        )
        self.state.settings["precision"] = parts.precision.name
        return parts

    def _stage(self) -> None:
        state = self.state
        try:
            while state.epoch < state.epochs and not state.stopped:
                self._solve() if isinstance(self.objective, Solves) else self._epoch()
        finally:
            state.settings["step"] = self.stepper.name
            state.settings["graph"] = self.stepper.release()
        if self.training.patience is not None and self.best.weights is not None:
            self.place.strategy.load_state_dict(self.place.net, self.best.weights)
        elif self.average is not None:
            self.average.swap()

    def _solve(self) -> None:
        """Let an objective that knows the best weights set them: an epoch without steps."""
        state, started = self.state, time.perf_counter()
        self.dispatch("on_epoch_start", state)
        objective: Any = self.objective
        self.terms.keep(objective.solve(self.place.net, self.data, state.validation))
        self._end_of_epoch(time.perf_counter() - started)

    def _epoch(self) -> None:
        state, started = self.state, time.perf_counter()
        self.dispatch("on_epoch_start", state)
        if not self.place.net.training:
            self.place.net.train()
        skip, done = state.step, 0  # after a resume, the first steps are already taken
        # A single batch has no order worth shuffling; streams have one that must be kept.
        shuffled = state.steps > 1 and not self.data.ordered
        seed = self.order_seed if shuffled else None
        windows = self.data.batches(self.batch_size, seed, state.epoch, self.place.home)
        for samples, order, cuts in windows:
            batches = len(cuts) - 1
            if done + batches > skip:
                window = Window(samples, order, cuts, self.place.device, self.place.strategy)
                self.stepper.begin(window)
                for i in range(max(skip - done, 0), batches):
                    self._step(i, done + i)
            done += batches
        self.terms.read(self.stepper)  # waits for the device: the seconds are those of the steps
        self._end_of_epoch(time.perf_counter() - started)

    def _step(self, i: int, number: int) -> None:
        """Take the step of a window's i-th batch, the epoch's ``number``-th."""
        state = self.state
        self.rate.set(number)
        self.stepper.upcoming = i
        self.dispatch("on_batch_start", state)
        state.loss = self.stepper.step(i, number)
        state.step = number + 1
        state.total += 1
        if self.average is not None:
            self.average.after_step()
        self.dispatch("on_batch_end", state)
        if state.total % CHECK_EVERY == 0:
            self.terms.read(self.stepper)
        if self.recorder.is_due(self.training.checkpoint_every, state.total):
            self._checkpoint()
        if self._preempted():
            self._checkpoint()
            raise Preempted

    def _preempted(self) -> bool:
        """Whether SIGTERM asks to end here; several processes end after the same step."""
        strategy = self.place.strategy
        if strategy.world == 1:
            return self.notice.asked
        if not self.recorder.active or self.state.total % AGREE_EVERY:
            return False
        asked = torch.tensor(float(self.notice.asked), device=self.place.device)
        return bool(strategy.total(asked))

    def _end_of_epoch(self, seconds: float) -> None:
        state = self.state
        line: dict[str, Any] = {"epoch": state.epoch, "stage": state.stage, **self.terms.means()}
        self._share_buffers()
        if self.average is not None:
            self.average.after_epoch(state.epoch, state.epochs)
        if self.validation is not None:
            with _swapped(self.average):
                line["val_loss"] = loss = self.validation(self.stepper.parts)
                parts = self.validation.parts if self.place.strategy.world == 1 else [loss]
                self.best.watch(parts, state, lambda: self.place.strategy.state_dict(state.net))
        line |= {"lr": state.lr, "seconds": seconds}
        state.history.append(line)
        state.epoch, state.step = state.epoch + 1, 0
        self.rate.follow_losses()
        self.recorder.log(state, line)
        self.dispatch("on_epoch_end", state)
        clocked = self.training.checkpoint_every is None
        if state.stopped or (clocked and self.recorder.is_due()):
            self._checkpoint()

    def _share_buffers(self) -> None:
        """Let all processes go on with one set of buffers: each saw other rows; name a slow one."""
        if self.place.strategy.world == 1:
            return
        slow = self.place.strategy.slow()
        if slow and self.place.strategy.rank == 0:
            warnings.warn(
                f"Training: {slow} in epoch {self.state.epoch + 1}, and they wait for it. Look for "
                "other work on its machine, or slower reading.",
                TrainingWarning,
                stacklevel=2,
            )
        self.place.strategy.broadcast(list(self.place.net.buffers()))
        if self.average is not None and self.statistics:
            self.place.strategy.broadcast(self.average.shadow[-len(self.statistics) :])

    def _end(self, weights: dict[str, Any] | None = None) -> TrainState:
        """Leave the network ready to predict, with these weights or with those it has."""
        place = self.place
        if weights is not None:
            place.strategy.load_state_dict(place.net, weights)
        place.net.eval()
        place.release()
        self.state.weights = place.strategy.whole_weights(place.net)
        return self.state

    def _checkpoint(self, finished: bool = False) -> None:
        if self.recorder.active:
            self.terms.read(self.stepper)
            self.recorder.save(self.state, self.point.save(finished))

    def _return_to(self, saved: dict[str, Any]) -> None:
        """Stand where a checkpoint stood."""
        for name, value in saved["position"].items():
            setattr(self.state, name, value)
        self.terms.seen, self.terms.rows = saved["seen"], saved["rows"]


@contextmanager
def _swapped(average: Average | None) -> Iterator[None]:
    """Put the averaged weights in place, where there are any."""
    if average is not None:
        average.swap()
    yield
    if average is not None:
        average.swap()
