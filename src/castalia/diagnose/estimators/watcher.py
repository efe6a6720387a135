"""The doctor as a callback of our loop.

It puts nothing inside the network, so the loop keeps its shortcuts (back-propagation written out,
recorded CUDA graphs). At sampled steps it passes the batch through the network once more, reads the
graph, and leaves random states, buffers and gradients as they were; the weights before and after
the loop's own step give the update ratios.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from castalia.data.batches import Samples
from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.estimators.estimator_rules import judge_estimator
from castalia.diagnose.estimators.extra_pass import ExtraPass, undisturbed
from castalia.diagnose.estimators.prescription import prescribe
from castalia.diagnose.monitor import module_facts as facts
from castalia.diagnose.monitor.host_transfer import settle
from castalia.diagnose.monitor.row_keeper import MOST_ROWS, RowKeeper, inputs_of
from castalia.diagnose.monitor.step_schedule import StepSchedule
from castalia.diagnose.monitor.validation_log import KEPT, ValidationLog
from castalia.diagnose.monitor.watched_parameters import Parameters
from castalia.diagnose.monitor.weight_measures import (
    gradient_norms,
    gradient_sample,
    sample,
    update_ratios,
)
from castalia.diagnose.record import Look, Record
from castalia.diagnose.record.layer_curves import LAYERS, layer_curves
from castalia.diagnose.rules import judge
from castalia.nn import uncompiled
from castalia.protocols import Batch
from castalia.train import Callback, Run, TrainState
from castalia.utils.atomic_files import atomic_write

__all__ = ["DIAGNOSIS", "Watcher"]

DIAGNOSIS = "diagnosis.json"  # in a run's folder
NUMBERS, IMAGES = 1 << 22, 32  # of a batch that are measured, and rows of it at least
TOKENS, TEXTS = 1 << 13, 4  # the same where inputs are tokens
SHOWN = 16  # batches that are kept of what a discriminator is shown

F = TypeVar("F", bound=Callable[..., Any])


def _guarded(event: F) -> F:
    """Keep the doctor's own mistakes out of the training: after one, it looks no more."""

    @functools.wraps(event)
    def careful(self: Watcher, state: TrainState) -> None:
        if self.given_up:
            return
        try:
            with np.errstate(all="ignore"):  # of a training that overflows
                event(self, state)
        except Exception as error:  # whatever it is, the training must go on
            self.given_up, self.next, self._follow, self._look = True, math.inf, -1, None
            words = f"Watching was given up ({event.__name__}): {type(error).__name__}: {error}"
            self.record.notes.append(words)

    return careful  # type: ignore[return-value]


class Watcher(Callback):
    """Watches one training of our loop at sampled steps, without changing a bit of it.

    Parameters
    ----------
    run
        Where the findings go when the training ends; None keeps them for ``diagnosis`` only.
    estimator
        The estimator that is being fitted: remedies then are settings of it.
    growth, most_apart
        Ratio of one looked-at step to the next, and their largest distance.

    Attributes
    ----------
    record
        What was seen of the last stage.

    Examples
    --------
    >>> import castalia
    >>> from castalia.train import Training
    >>> from sklearn.datasets import load_iris
    >>> watcher = Watcher()
    >>> model = castalia.MLPClassifier(lr=1e-6, epochs=30, training=Training(callbacks=[watcher]))
    >>> X, y = load_iris(return_X_y=True)
    >>> model.fit(X, y) and watcher.diagnosis().findings[0].name
    'learning-rate-too-low'
    """

    def __init__(
        self,
        run: Run | None = None,
        estimator: Any = None,
        growth: float = 1.5,
        most_apart: int = 2000,
    ) -> None:
        self.run, self.estimator = run, estimator
        self.growth, self.most_apart = growth, most_apart
        self.record = Record()
        self.given_up = False
        self.stage = -1
        self.next: float = 0  # total of the next step to sample
        self._follow = -1  # total after the step that follows a look
        self._look: Look | None = None
        self._read: Any = None  # the losses last taken over

    def diagnosis(self, mute: Sequence[str] = ()) -> Diagnosis:
        """Return what was found so far."""
        settle()
        if self.estimator is None:
            return judge(self.record, mute=tuple(mute))
        found = judge_estimator(self.record, self.estimator, mute)
        return prescribe(found, self.estimator)

    # ---------------------------------------------------------------- events

    @_guarded
    def on_epoch_start(self, state: TrainState) -> None:
        """Begin a record when a stage begins."""
        if state.stage_index != self.stage:
            self._begin(state)

    def on_batch_start(self, state: TrainState) -> None:
        """Measure the batch, if it is this step's turn."""
        if state.total >= self.next:
            self._before(state)

    def on_batch_end(self, state: TrainState) -> None:
        """Measure the sampled step, or the gradient of the one after it."""
        if self._look is not None or state.total == self._follow:
            self._after(state)

    @_guarded
    def on_epoch_end(self, state: TrainState) -> None:
        """Take over the losses of the steps, and what validation said."""
        self._take_losses(state)
        if state.validation is None:
            return
        if self.epochs.look(state.epoch):
            self._validate(state)
        self.validating.end(state.history[-1]["val_loss"], None, True)

    @_guarded
    def on_fit_end(self, state: TrainState) -> None:
        """Measure the end state; findings go to the run."""
        self._conclude(state)

    @_guarded
    def on_failure(self, state: TrainState) -> None:
        """Take over the last losses: they tell why the training failed."""
        self._take_losses(state)
        self._conclude(state)

    # ---------------------------------------------------------------- one look

    def _begin(self, state: TrainState) -> None:
        net, optimizers = state.net, state.stepper.parts.optimizers
        self.stage, self.base = state.stage_index, state.total - state.step
        self.record = Record(module=type(net).__name__)
        self.keeper = RowKeeper(self.record)
        self.validating = ValidationLog(self.record, self.keeper)
        self.sampling = StepSchedule(self.growth, self.most_apart)
        self.epochs = StepSchedule(self.growth, 50)
        self.parameters = Parameters(net, optimizers, self.record)
        self.parameters.refresh()
        self.sized = {n for n, p in self.parameters.named.items() if bool(p.any())}
        self.record.layers = facts.layers_of(net)
        self.record.optimizers = facts.optimizers_of(optimizers)
        first = state.epoch * state.steps + state.step
        for step in range(first):  # a resumed training samples the steps it would have sampled
            self.sampling.look(step)
        if first:
            self.record.notes.append(f"Resumed: watched from step {first} on.")
        self.next, self._follow = state.total, -1
        self.first = state.total - first  # number of the stage's first step

    @_guarded
    def _before(self, state: TrainState) -> None:
        step = state.total - self.first
        if not self.sampling.look(step):
            return
        self.next = self.sampling.next + self.first
        stepper, net, named = state.stepper, state.net, self.parameters.named
        parts = stepper.parts
        look = Look(state.total - self.base, lr=state.lr, training=net.training)
        with undisturbed(net, named, parts.device), _uncarried(stepper):
            with parts.precision.autocast(parts.device):
                batch = stepper.next_batch()
                look.size = facts.rows(batch.x)
                seen = ExtraPass(net, _some_rows(batch), self._terms(parts), self.parameters.names)
            self._write(look, seen)
            self._show(net, batch)
            if not _leaves_gradients(parts):
                seen.gradients(named)
                look.gradients = gradient_norms(named)
                look.gradient = gradient_sample(named)
        self._look, self._weights = look, sample(named)

    def _terms(self, parts: Any) -> Callable[[Any, Any], Any]:
        phase = parts.phases[0].name
        return lambda net, batch: parts.objective.terms(net, batch, phase)

    def _write(self, look: Look, seen: ExtraPass) -> None:
        reading = seen.reading
        look.loss, look.stale = seen.loss, False
        reading.fill(look)
        if not self.record.looks:  # the weights are those of the start
            self.parameters.find_recurrent(layer for layer, *_ in look.structure)
        self.record.data_normalised |= reading.data_normalised
        self.record.used |= reading.used
        if reading.opaque:
            facts.note(self.record, "The module is compiled: its activations cannot be seen.")
        self.keeper.train(look.step, _dense(seen.inputs), seen.outputs, seen.targets)

    def _show(self, net: Any, batch: Batch) -> None:
        """Keep what a discriminator is shown: rows, and beside them what the generator makes."""
        if not (hasattr(net, "generator") and hasattr(net, "expand")):
            return
        with torch.no_grad():
            real, generator = net.expand(batch.x), net.generator
            z = torch.randn(len(real), generator.noise, dtype=real.dtype, device=real.device)
            made = generator(z, batch.y if generator.classes else None)
        for rows in (real, made):
            if (kept := inputs_of(rows)) is not None:
                self.record.shown = [*self.record.shown[1 - SHOWN :], (rows is made, kept)]

    @_guarded
    def _after(self, state: TrainState) -> None:
        look, self._look = self._look, None
        named = self.parameters.named
        if look is None:
            follows = gradient_sample(named)
            last = self.record.looks[-1]
            if last.gradient is not None and last.gradient.shape == follows.shape:
                last.next_gradient = follows
            return
        norms = gradient_norms(named)
        look.applied = {name: norm for name, norm in norms.items() if norm is not None}
        if look.gradient is None:
            look.gradients, look.gradient = norms, gradient_sample(named)
        if self.record.looks and self._follow == state.total:
            self.record.looks[-1].next_gradient = look.gradient
        ratios, look.weights = update_ratios(self._weights, named)
        # Weights that begin at zero, as those of a linear model may, have no size to compare with.
        look.updates = {n: r for n, r in ratios.items() if n in self.sized}
        self.record.looks.append(look)
        self._follow = state.total + 1

    # ---------------------------------------------------------------- epochs and the end

    def _take_losses(self, state: TrainState) -> None:
        if state.losses is not self._read:
            self._read = state.losses
            self.record.losses.extend(state.losses)
            self.record.trained_in_training_mode += len(state.losses)

    def _validate(self, state: TrainState) -> None:
        """Keep some of the validation rows with their outputs."""
        net: Any = state.net
        was = net.training
        net.eval()
        with torch.no_grad(), uncompiled(net):
            for batch in _some(state.validation, state.stepper.parts.device):
                # What one member leaves out, others train on: such rows say nothing of leaks, and
                # only of those that left them out how sure the network may be.
                shared = batch.weight is not None and batch.weight.ndim == 2
                outputs = net.held_out_outputs(batch.x, batch.weight) if shared else net(batch.x)
                self.validating.forward(False, None)
                inputs = None if shared else _dense(batch.x)
                self.validating.batch(None, outputs, batch.y, inputs)
        net.train(was)

    def _conclude(self, state: TrainState) -> None:
        if not hasattr(self, "parameters"):
            return
        optimizers = state.stepper.parts.optimizers
        self.record.optimizers = facts.optimizers_of(optimizers, self.record.optimizers)
        self.record.restored = state.stepper.parts.training.patience is not None and bool(
            state.best
        )
        self.keeper.conclude()
        self.parameters.conclude()
        del self.parameters
        self._look, self._weights = None, {}
        if self.run is not None:
            diagnosis = self.diagnosis()
            atomic_write(self.run.folder / DIAGNOSIS, diagnosis.to_json())
            curves = json.dumps(layer_curves(self.record))
            atomic_write(self.run.folder / LAYERS, curves, durable=False)
            for finding in diagnosis:
                self.run.add_finding(finding.to_dict())


def _some(samples: Samples, device: torch.device) -> list[Any]:
    """Return a few batches spread evenly over the samples."""
    rows = samples.rows
    if rows is None:
        rows = torch.arange(len(samples), device=samples.device)
    chosen = rows[:: max(1, len(rows) // (KEPT * MOST_ROWS))][: KEPT * MOST_ROWS]
    return [samples.batch(index).to(device) for index in chosen.split(MOST_ROWS)]


def _some_rows(batch: Batch) -> Batch:
    """Return what is measured of a batch: all of it, or some large images or long texts."""
    parts = [part for part in batch if part is not None]
    if not all(isinstance(part, Tensor) and part.layout is torch.strided for part in parts):
        return batch
    most, least = (NUMBERS, IMAGES) if batch.x.is_floating_point() else (TOKENS, TEXTS)
    rows = max(least, most * len(batch.x) // max(1, batch.x.numel()))
    return Batch(*(None if part is None else part[:rows] for part in batch))


def _leaves_gradients(parts: Any) -> bool:
    """Say whether the gradients of a step are still as they were when the step is over."""
    return parts.training.clip is None and len(parts.phases) == 1 and not any(parts.closures)


@contextmanager
def _uncarried(stepper: Any) -> Iterator[None]:
    """Let the objective go on from what it carried before, such as a recurrent state."""
    carried = stepper.carried()
    try:
        yield
    finally:
        stepper.carry_on(carried)


def _dense(inputs: Any) -> Any:
    return inputs.to_dense() if isinstance(inputs, Tensor) and inputs.is_sparse_csr else inputs
