"""The one loop. Nothing here is about a particular model.

for stage in stages:
    for epoch in epochs:
        for batch in order(seed, epoch):
            step
        validate, average, stop early
        record, checkpoint
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from castalia.data.batches import Samples
from castalia.errors import Diverged
from castalia.nn import running_statistics, uncompiled
from castalia.optim import (
    Average,
    base_rate,
    build_average,
    build_schedule,
    closure_kind,
    optimizer_class,
)
from castalia.protocols import Stage
from castalia.train.callbacks import Callback, Dispatch
from castalia.train.precision import Precision
from castalia.train.progress import build_progress
from castalia.train.recorder import Recorder
from castalia.train.state import TrainState
from castalia.train.step_parts import StepParts
from castalia.train.stepper import Stepper
from castalia.train.steppers.captured_step import own_stream
from castalia.train.strategy import build_strategy
from castalia.train.training import Training
from castalia.train.window import Window
from castalia.utils.devices import cpu_scope
from castalia.utils.seeds import derive

__all__ = ["evaluation_rows", "step_work", "train"]

CHECK_EVERY = 50  # steps between checks that the loss is a number
EVALUATION_ROWS, EVALUATION_NUMBERS = 4096, 1 << 22  # of a batch without gradients
PADDED_ROWS = 256  # of such a batch, where fewer rows are less padded


def step_work(net: nn.Module, row: torch.Size, batch_size: int) -> float:
    """Estimate the multiply-adds of a step: weights times rows times positions in a row."""
    positions = math.prod(row[1:]) if len(row) > 1 else 1
    return float(sum(p.numel() for p in net.parameters()) * batch_size * positions)


def evaluation_rows(row: torch.Size, most: int = EVALUATION_ROWS) -> int:
    """Return how many rows are evaluated at once: fewer of images than of short rows."""
    return max(1, min(most, EVALUATION_NUMBERS // max(1, row.numel())))


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
    loop = _Loop(
        net, data, validation, training, batch_size, seed, device, precision, recorder, callbacks
    )
    loop.carried = optimizers
    rates = [base_rate(training.optimizer, stage.lr or lr) for stage in stages]
    if work is None:
        work = step_work(net, torch.Size(data.x.shape), loop.batch_size)
    legs = [
        (stage, stage.epochs or epochs, rate) for stage, rate in zip(stages, rates, strict=True)
    ]
    return loop.run(legs, work)


class _Loop:
    def __init__(
        self,
        net: nn.Module,
        data: Samples,
        validation: Samples | None,
        training: Training,
        batch_size: int,
        seed: int,
        device: torch.device,
        precision: Precision,
        recorder: Recorder | None,
        callbacks: Sequence[Callback],
    ) -> None:
        self.net, self.training, self.seed = net.to(device, precision.dtype), training, seed
        self.device, self.precision = device, precision
        self.exact = torch.float32 if device.type == "mps" else torch.float64  # mps has no float64
        self.batch_size = min(batch_size, len(data))
        if device.type == "cuda" and len(data.x.shape) == 3:  # images, (C, H, W)
            net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.strategy = build_strategy(training, device)
        self.strategy.prepare(net)
        if self.strategy.world > 1:  # dropout differs between processes
            torch.default_generator.manual_seed(derive(seed, self.strategy.rank))
        if training.compile not in ("auto", False):
            net.compile(mode=None if training.compile is True else training.compile)
        self.home = device if _fits(data, device) else torch.device("cpu")  # where the samples live
        self.data = data.to(self.home)
        self.validation = (
            None if validation is None or not len(validation) else validation.to(self.home)
        )
        self.recorder = recorder if recorder is not None else Recorder(None)
        self.recorder.strategy = self.strategy
        progress = build_progress(training.verbose, quiet=self.strategy.rank > 0)
        self.dispatch = Dispatch([*training.callbacks, *callbacks, *progress])
        self.state = TrainState(net, validation=self.validation)
        most = EVALUATION_ROWS if data.lengths is None else PADDED_ROWS
        self.evaluated = max(self.batch_size, evaluation_rows(torch.Size(data.x.shape), most))
        self._stale = f"no better validation loss for {training.patience} epochs"
        self.carried: Sequence[dict[str, Any]] | None = None  # states of optimizers
        self.average: Average | None = None
        self.best: dict[str, Tensor] | None = None
        self.seen: dict[str, list[float]] = {}  # terms of the steps of this epoch
        self.rows: list[int] = []

    def run(self, stages: list[tuple[Stage, int, float]], work: float) -> TrainState:
        """Run every stage, from wherever a checkpoint left off."""
        state = self.state
        with (
            cpu_scope(self.device, work) as cores,
            self.precision.products(self.device),
            own_stream(self.device),
            self.recorder.closing(),
        ):
            state.settings = {
                "device": str(self.device),
                "precision": self.precision.name,
                "strategy": self.strategy.name,
                "processes": self.strategy.world,
                **cores,
            }
            saved = self.recorder.resume(self.device)
            if saved is not None:
                self._load_position(saved)
                if saved["finished"]:
                    self.strategy.load_state_dict(self.net, saved["net"])
                    self.net.eval()
                    state.weights = self.strategy.whole_weights(self.net)
                    return state
            self.dispatch("on_fit_start", state)
            try:
                for number, (stage, epochs, lr) in enumerate(stages):
                    if number >= state.stage_index:
                        self._stage(number, stage, epochs, lr, saved)
                        saved = None
                        if number + 1 < len(stages) and state.stopped == self._stale:
                            state.stopped = None  # patience ends its stage, not the training
            except BaseException:
                self.dispatch("on_failure", state)
                raise
            self._finish()
        return state

    def _stage(
        self,
        number: int,
        stage: Stage,
        epochs: int,
        lr: float,
        saved: dict[str, Any] | None,
    ) -> None:
        state = self.state
        if number != state.stage_index:
            state.epoch = state.step = 0
        state.stage, state.stage_index, state.epochs = stage.name, number, epochs
        state.steps = self.data.n_batches(self.batch_size)
        self.stepper = state.stepper = self._build_stepper(stage, lr)
        self.statistics = running_statistics(self.net)
        trained = [p for p in self.net.parameters() if p.requires_grad]
        self.average = build_average(self.training.average, [*trained, *self.statistics])
        self.lr, self.factor = lr, 1.0
        self.order_seed = derive(self.seed, number)
        self.schedule = build_schedule(self.training.schedule)
        self.drop = self._drop()
        if saved is None:
            state.lr = lr
            self._load_optimizers(self.carried)
            self.carried = None
        else:
            self._load_training(saved)
        try:
            while state.epoch < epochs and not state.stopped:
                self._epoch()
        finally:
            state.settings["step"] = self.stepper.name
            state.settings["graph"] = self.stepper.release()
        if self.training.patience is not None and self.best is not None:
            self.strategy.load_state_dict(self.net, self.best)
        elif self.average is not None:
            self.average.swap()

    def _build_stepper(self, stage: Stage, lr: float) -> Stepper:
        state, listeners = self.state, {}
        if self.dispatch.listens("on_gradients"):
            listeners["on_gradients"] = lambda: self.dispatch("on_gradients", state)
        capture = (
            self.training.step == "auto"
            and self.training.compile in ("auto", True)
            and self.device.type == "cuda"
            and self.home == self.device
            and self.strategy.world == 1
            and not listeners
            and closure_kind(optimizer_class(self.training.optimizer)) is None
        )
        parts = StepParts(
            self.net,
            stage.objective,
            self.training,
            lr,
            self.device,
            self.precision,
            self.strategy,
            capture=capture,
            rows=len(self.data),
            **listeners,
        )
        state.settings["precision"] = parts.precision.name
        return Stepper(parts)

    def _epoch(self) -> None:
        state, started = self.state, time.perf_counter()
        self.dispatch("on_epoch_start", state)
        if not self.net.training:
            self.net.train()
        skip, done = state.step, 0  # after a resume, the first steps are already taken
        # A single batch has no order worth shuffling; streams have one that must be kept.
        shuffled = state.steps > 1 and not self.data.ordered
        seed = self.order_seed if shuffled else None
        windows = self.data.batches(self.batch_size, seed, state.epoch, self.home)
        for samples, order, cuts in windows:
            batches = len(cuts) - 1
            if done + batches > skip:
                self.stepper.begin(Window(samples, order, cuts, self.device, self.strategy))
                for i in range(max(skip - done, 0), batches):
                    self._step(i, done + i)
            done += batches
        self._collect()  # waits for the device, so that the seconds are those of the steps
        self._end_of_epoch(time.perf_counter() - started)

    def _step(self, i: int, number: int) -> None:
        state = self.state
        if self.schedule.name != "constant":
            self._set_rate(state.epoch * state.steps + number)
        self.stepper.upcoming = i
        self.dispatch("on_batch_start", state)
        state.loss = self.stepper.step(i, number)
        state.step = number + 1
        state.total += 1
        if self.average is not None:
            self.average.after_step()
        self.dispatch("on_batch_end", state)
        if state.total % CHECK_EVERY == 0:
            self._collect()
        if self.training.checkpoint_every and state.total % self.training.checkpoint_every == 0:
            self._checkpoint()

    def _set_rate(self, step: int) -> None:
        state = self.state
        factor = self.schedule(step, state.epochs * state.steps) * self.drop
        if factor != self.factor:
            self.stepper.parts.set_rate(factor)
            self.factor = factor
            state.lr = self.lr * factor

    def _drop(self) -> float:
        """Return the schedule's factor for the losses of the stage so far, in the history."""
        if not self.schedule.follows_losses:
            return 1.0
        state = self.state
        lines = state.history[len(state.history) - state.epoch :]
        losses = [line.get("val_loss", line.get("loss", math.nan)) for line in lines]
        return self.schedule.drop(losses)

    def _collect(self) -> None:
        """Move the steps' terms to the host, and stop at the first that is not a number."""
        state = self.state
        values, rows = self.stepper.collect()
        for name in dict.fromkeys([*self.seen, *values]):
            found = [math.nan] * len(rows)  # stands for a term that none of these steps computed
            if name in values:
                found = self.strategy.total(values[name]).tolist()
            self.seen.setdefault(name, [math.nan] * len(self.rows)).extend(found)
            if name == "loss":
                state.losses = self.seen[name]
                if not all(map(math.isfinite, found)):
                    self._diverged(name, found)
        self.rows.extend(rows)

    def _diverged(self, term: str, values: list[float]) -> None:
        state = self.state
        first = next(i for i, value in enumerate(values) if not math.isfinite(value))
        step = state.total - len(values) + first + 1
        raise Diverged(
            f"Training: the {term} became {values[first]} in epoch {state.epoch + 1}, at step "
            f"{step}, with lr={state.lr:g}. Lower `lr`, clip gradients with Training(clip=1.0), or "
            "check the data for extreme values.",
            step=step,
            epoch=state.epoch,
            term=term,
            lr=state.lr,
        )

    def _end_of_epoch(self, seconds: float) -> None:
        state = self.state
        line: dict[str, Any] = {"epoch": state.epoch, "stage": state.stage}
        line.update({name: _mean(values, self.rows) for name, values in self.seen.items()})
        self.seen, self.rows = {}, []
        self._share_buffers()
        if self.average is not None:
            self.average.after_epoch(state.epoch, state.epochs)
        if self.validation is not None:
            line["val_loss"] = self._validate(self.validation)
            self._watch_best(line["val_loss"])
        line |= {"lr": state.lr, "seconds": seconds}
        state.history.append(line)
        state.epoch, state.step = state.epoch + 1, 0
        self.drop = self._drop()
        self.recorder.log(state, line)
        self.dispatch("on_epoch_end", state)
        if self.training.checkpoint_every is None or state.stopped:
            self._checkpoint()

    def _share_buffers(self) -> None:
        """Let all processes go on with one set of buffers: each saw other rows."""
        if self.strategy.world == 1:
            return
        self.strategy.broadcast(list(self.net.buffers()))
        if self.average is not None and self.statistics:
            self.strategy.broadcast(self.average.shadow[-len(self.statistics) :])

    @torch.no_grad()
    def _validate(self, samples: Samples) -> float:
        """Mean validation loss, with the averaged weights where there are any."""
        self.net.eval()
        total = torch.zeros(2, dtype=self.exact, device=self.device)  # weighted loss, weight
        with self._averaged(), uncompiled(self.net):
            for window, order, _ in samples.batches(self.evaluated, None, 0, self.home):
                for index in order.split(self.evaluated):
                    total += self._validate_batch(window, index)
        weighted, weight = self.strategy.total(total).tolist()
        return weighted / weight

    def _validate_batch(self, samples: Samples, index: Tensor) -> Tensor:
        """Return the weighted loss and the weight of this process's share of a batch."""
        mine = self.strategy.share(index)
        batch = samples.batch(mine if len(mine) else index[:1]).to(self.device)
        parts = self.stepper.parts
        with self.precision.autocast(self.device):
            found = parts.objective.terms(self.net, batch, parts.phases[0].name)
        loss = found["loss"].to(self.exact)
        if batch.weight is None or not len(mine):
            weight = torch.tensor(float(len(mine)), dtype=self.exact, device=self.device)
        else:
            weight = batch.weight.sum().to(self.exact)
        return torch.stack([loss * weight, weight])

    def _watch_best(self, value: float) -> None:
        state, patience = self.state, self.training.patience
        best = state.best
        if best is None or best["stage"] != state.stage_index or _better(value, best["val_loss"]):
            state.best = {"epoch": state.epoch, "stage": state.stage_index, "val_loss": value}
            if patience is not None:
                with self._averaged():
                    whole = self.strategy.state_dict(self.net)
                    self.best = {k: v.detach().clone() for k, v in whole.items()}
        elif patience is not None and state.epoch - best["epoch"] >= patience:
            state.stop(self._stale)

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Put the averaged weights in place, where there are any."""
        if self.average is not None:
            self.average.swap()
        yield
        if self.average is not None:
            self.average.swap()

    def _finish(self) -> None:
        self.net.eval()
        self.net._compiled_call_impl = None  # else predictions would compile it once more
        self.state.weights = self.strategy.whole_weights(self.net)
        self.dispatch("on_fit_end", self.state)
        self._checkpoint(finished=True)
        self.recorder.finish()

    def _checkpoint(self, finished: bool = False) -> None:
        if not self.recorder.active:
            return
        self._collect()
        state, parts = self.state, self.stepper.parts
        cuda = [torch.cuda.get_rng_state(self.device)] if self.device.type == "cuda" else []
        self.recorder.save(
            state,
            {
                "net": self.strategy.state_dict(self.net),
                "optimizers": parts.optimizer_states(),
                "objective": {
                    name: self.strategy.gather(part)
                    for name, part in self.stepper.carried().items()
                },
                "average": None if self.average is None else self.average.state_dict(),
                "best": self.best,
                "random": [
                    self.strategy.gather(r.to(self.home)) for r in (torch.get_rng_state(), *cuda)
                ],
                "seen": self.seen,
                "rows": self.rows,
                "micro": parts.micro,
                "finished": finished,
            },
        )

    def _load_position(self, saved: dict[str, Any]) -> None:
        state = self.state
        for name, value in saved["position"].items():
            setattr(state, name, value)
        self.seen, self.rows = saved["seen"], saved["rows"]

    def _load_training(self, saved: dict[str, Any]) -> None:
        """Put back weights, optimizers, averages and random states as they were."""
        self.strategy.load_state_dict(self.net, saved["net"])
        parts = self.stepper.parts
        self._load_optimizers(saved["optimizers"])
        carried = saved.get("objective", {})  # checkpoints of earlier versions have none
        self.stepper.carry_on({name: parts[self.strategy.rank] for name, parts in carried.items()})
        self.factor = math.nan  # the optimizers hold the rate of another step: set it again
        if self.average is not None:
            self.average.load_state_dict(saved["average"])
        self.best = saved["best"]
        parts.micro = saved["micro"]
        random = [by_rank[self.strategy.rank].cpu() for by_rank in saved["random"]]
        torch.set_rng_state(random[0])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(random[1], self.device)

    def _load_optimizers(self, states: Sequence[dict[str, Any]] | None) -> None:
        if states is None:
            return
        parts = self.stepper.parts
        for optimizer, found in zip(parts.optimizers, states, strict=True):
            self.strategy.load_optimizer_state(self.net, optimizer, found)
        parts.set_rate(1.0)
        self.stepper.prepare()


def _better(value: float, best: float) -> bool:
    """Whether a validation loss beats the best so far; any number beats NaN."""
    return value < best or (math.isnan(best) and not math.isnan(value))


def _mean(values: list[float], rows: list[int]) -> float:
    """Mean over steps, each counting by its rows; steps without the term are left out."""
    known = [(v, n) for v, n in zip(values, rows, strict=True) if not math.isnan(v)]
    return sum(v * n for v, n in known) / sum(n for _, n in known) if known else math.nan


def _fits(data: Samples, device: torch.device) -> bool:
    """Whether the samples may live on the device: they may fill half of what is free."""
    size = data.x.nbytes
    if device.type != "cuda" or size is None:
        return size is not None
    return size < torch.cuda.mem_get_info(device)[0] / 2
