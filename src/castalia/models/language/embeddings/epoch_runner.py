"""Epochs of word vectors, which take steps of their own, with the promises of the one loop.

for epoch in epochs:
    for batch in an order drawn from the generator:
        step
    record, checkpoint

Callbacks get their events and progress is shown; a run that was killed goes on from its last
checkpoint and ends with the bits of one that was not. Only ``on_gradients`` is never called: a
step has gradients of the rows that it names, and none of a whole table.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import torch
from torch import Tensor, nn

from castalia.errors import Diverged
from castalia.train import Recorder, Training, TrainState
from castalia.train.callbacks import Dispatch
from castalia.train.progress import build_progress

__all__ = ["EpochRunner", "Passes", "Tables"]


class Tables(nn.Module):
    """Tables that steps write into, by name: what callbacks read and checkpoints keep.

    Parameters
    ----------
    trained
        Tensors to train; the module shares their memory.
    kept
        Tensors of the optimizer.
    """

    def __init__(
        self, trained: Mapping[str, Tensor], kept: Mapping[str, Tensor] | None = None
    ) -> None:
        super().__init__()
        for name, table in trained.items():
            self.register_parameter(name, nn.Parameter(table, requires_grad=False))
        for name, table in (kept or {}).items():
            self.register_buffer(name, table)


class Passes(Protocol):
    """What is trained, and its steps."""

    tables: Tables

    def batches(self) -> AbstractContextManager[Sequence[Tensor]]:
        """Draw the batches of an epoch and hold what its steps need."""

    def rate(self, progress: float) -> float:
        """Return the learning rate after a share of the training."""

    def step(self, batch: Tensor, number: int, lr: float, seen: Tensor) -> Tensor | None:
        """Take a step; where its loss is computed, return it and add its sum and count to seen."""

    def loss(self, seen: Tensor) -> float:
        """Return the mean loss of an epoch."""


class EpochRunner:
    """Runs the epochs of one fit.

    Parameters
    ----------
    passes
        What is trained.
    generator
        What its draws come from.
    training
        Callbacks, progress and how often there is a checkpoint.
    recorder
        Run folder to record to and to resume from.
    epochs
        How many.
    owner
        Whom errors name.
    """

    def __init__(
        self,
        passes: Passes,
        generator: torch.Generator,
        training: Training,
        recorder: Recorder,
        *,
        epochs: int,
        owner: str,
    ) -> None:
        self.passes, self.random, self.recorder, self.owner = passes, generator, recorder, owner
        self.every = training.checkpoint_every
        self.dispatch = Dispatch([*training.callbacks, *build_progress(training.verbose)])
        self.state = TrainState(passes.tables, epochs=epochs, lr=passes.rate(0.0))
        self.began = generator.get_state()  # of the current epoch
        self.seen = torch.zeros(2, device=generator.device)  # loss and pairs of the epoch so far

    def run(self) -> TrainState:
        """Run every epoch, from wherever a checkpoint left off."""
        with self.recorder.closing():
            if not self._resume():
                self._run()
        return self.state

    def _run(self) -> None:
        state = self.state
        self.dispatch("on_fit_start", state)
        try:
            while state.epoch < state.epochs and not state.stopped:
                self._epoch()
        except BaseException:
            self.dispatch("on_failure", state)
            raise
        self.dispatch("on_fit_end", state)
        self._checkpoint(finished=True)
        self.recorder.finish()

    def _epoch(self) -> None:
        state, started, now = self.state, time.perf_counter(), self.random.get_state()
        self.dispatch("on_epoch_start", state)
        if state.step:  # resumed inside this epoch, whose order is drawn again
            self.random.set_state(self.began)
        else:
            self.began = now
        with self.passes.batches() as batches:
            if state.step:
                self.random.set_state(now)
            state.steps = len(batches)
            for number in range(state.step, state.steps):
                self._step(batches[number], number)
        self._end_of_epoch(started)

    def _step(self, batch: Tensor, number: int) -> None:
        state = self.state
        state.lr = self.passes.rate((state.epoch + number / state.steps) / state.epochs)
        self.dispatch("on_batch_start", state)
        loss = self.passes.step(batch, number, state.lr, self.seen)
        state.loss = state.loss if loss is None else loss
        state.step, state.total = number + 1, state.total + 1
        self.dispatch("on_batch_end", state)
        if self.recorder.is_due(self.every, state.total):
            self._checkpoint()

    def _end_of_epoch(self, started: float) -> None:
        state, loss = self.state, self.passes.loss(self.seen)
        if not math.isfinite(loss):
            self._diverged(loss)
        seconds = time.perf_counter() - started
        line = {"epoch": state.epoch, "stage": state.stage, "loss": loss, "lr": state.lr}
        state.history.append({**line, "seconds": seconds})
        state.epoch, state.step = state.epoch + 1, 0
        self.seen.zero_()
        self.recorder.log(state, state.history[-1])
        self.dispatch("on_epoch_end", state)
        if state.stopped or (self.every is None and self.recorder.is_due()):
            self._checkpoint()

    def _diverged(self, loss: float) -> None:
        state, lr = self.state, self.passes.rate(0.0)
        raise Diverged(
            f"{self.owner}: the loss must stay finite; got {loss:g} in epoch {state.epoch + 1} "
            f"with lr={lr:g}. Lower `lr`.",
            step=state.total,
            epoch=state.epoch + 1,
            term="loss",
            lr=lr,
        )

    def _checkpoint(self, finished: bool = False) -> None:
        if self.recorder.active:
            random = [self.began, self.random.get_state()]
            net = self.state.net.state_dict()
            payload = {"net": net, "random": random, "seen": self.seen, "finished": finished}
            self.recorder.save(self.state, payload)

    def _resume(self) -> bool:
        """Put back what the last checkpoint kept; return whether it was that of a finished run."""
        saved = self.recorder.resume(self.seen.device)
        if saved is None:
            return False
        for name, value in saved["position"].items():
            setattr(self.state, name, value)
        self.state.net.load_state_dict(saved["net"])
        self.began, now = (state.cpu() for state in saved["random"])
        self.random.set_state(now)
        self.seen.copy_(saved["seen"])
        return bool(saved["finished"])
