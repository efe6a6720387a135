"""A training that probes may copy, sample and try out, and never change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.diagnose.examination.clock import Clock
from castalia.diagnose.examination.guards import seed_torch
from castalia.diagnose.examination.measures import (
    difference,
    labels,
    predictions,
    row_errors,
)
from castalia.diagnose.examination.module_copies import Copy, bare, copied, reinitialised, scalar
from castalia.diagnose.examination.row_reader import Rows
from castalia.diagnose.examination.table_models import columns_of
from castalia.diagnose.examination.task_inference import infer_task, loss_kind
from castalia.diagnose.examination.trials import batch_losses, forward, levelled, train
from castalia.diagnose.thresholds import limit
from castalia.utils.devices import cpu_scope
from castalia.utils.text import shorten

__all__ = ["Learned", "Subject"]

BATCH = 32  # rows of a batch, where no loader says
EPOCHS, LEAST_STEPS = 30, 400  # of the training that stands in for the user's own
LEARNING_SHARE = 0.2  # of all seconds, for that training


class Learned:
    """A network that has learned: the user's own, or a copy after a short training.

    Attributes
    ----------
    copy
        The network with its loss.
    own
        Whether it is the user's module as it is.
    losses
        Of the short training.
    """

    def __init__(self, copy: Copy, own: bool, losses: list[float]) -> None:
        self.copy, self.own, self.losses = copy, own, losses

    @property
    def settled(self) -> bool:
        """Whether it may be judged: it is the user's own, or its training has levelled off."""
        return self.own or levelled(self.losses)


class Subject:
    """What all probes share.

    Parameters
    ----------
    module
        The user's module; only copies of it are run.
    loss_fn
        Called as ``loss_fn(outputs, targets)``.
    train_rows, validation_rows
        Samples of the data; None where there are none.
    optimizer
        An optimizer of the module, a function from parameters to one, or None.
    task
        A name, or None to infer it.
    seconds
        For all probes together.
    seed
        Of everything that is drawn.
    """

    def __init__(
        self,
        module: nn.Module,
        loss_fn: Callable[..., Any],
        train_rows: Rows,
        validation_rows: Rows | None,
        optimizer: Any = None,
        task: str | None = None,
        seconds: float = 30.0,
        seed: int = 0,
    ) -> None:
        self.module, self.loss_fn, self.optimizer, self.seed = (
            bare(module),
            loss_fn,
            optimizer,
            seed,
        )
        self.seconds, self.clock = seconds, Clock(seconds)
        self.problem: str | None = None  # why the network cannot be run, if it cannot
        self.made: dict[Any, Any] = {}
        self.restart = False  # trials begin from weights drawn again
        first = next(iter(self.module.parameters()), None)
        self.device = torch.device("cpu") if first is None else first.device
        self.dtype = next(
            (p.dtype for p in self.module.parameters() if p.is_floating_point()), torch.float32
        )
        self.rows, self.held = train_rows, validation_rows
        self.x, self.y = self._place(train_rows)
        self.vx: Tensor | None = None
        self.vy: Tensor | None = None
        if validation_rows is not None:
            self.vx, self.vy = self._place(validation_rows)
        self.batch_size = train_rows.batch_size or min(BATCH, max(2, len(train_rows) // 4))
        self._try_out()
        self.task = task or infer_task(self.kind, self.x, self.y, self.outputs)

    def _place(self, rows: Rows) -> tuple[Tensor, Tensor]:
        def move(value: Tensor) -> Tensor:
            value = value.to(self.device)
            if value.is_floating_point():
                return value.to(self.dtype)
            return value.long() if value.dtype in (torch.int32, torch.int16, torch.int8) else value

        return move(rows.x), move(rows.y)

    # ---- can it be run at all ----

    def _try_out(self) -> None:
        """Run the loss once, and change kinds of numbers where that is all that is in the way."""
        self.kind: str | None = None
        self.outputs: Any = None
        errors: list[str] = []
        for wide_x in (False, True):
            for change in (None, self.dtype, torch.long):
                try:
                    self._convert(wide_x, change)
                except Exception as error:  # whatever the user's code raises
                    errors.append(f"{type(error).__name__}: {shorten(str(error), 200)}")
                else:
                    return
        self.problem = errors[0]

    def _convert(self, wide_x: bool, change: torch.dtype | None) -> None:
        if wide_x and self.x.is_floating_point():
            raise TypeError("inputs are numbers with a point already")
        n = min(len(self.x), 8)
        x = self.x[:n].to(self.dtype) if wide_x else self.x[:n].clone()
        y = self.y[:n].clone() if change is None else self.y[:n].to(change)
        copy = self.copy()
        self.outputs = copy.net.train()(x)
        loss = scalar(copy.loss_fn(self.outputs, y))
        self.kind = loss_kind(loss)
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        if wide_x:
            self.x = self.x.to(self.dtype)
            self.vx = None if self.vx is None else self.vx.to(self.dtype)
        if change is not None:
            self.y = self.y.to(change)
            self.vy = None if self.vy is None else self.vy.to(change)

    @property
    def trainable(self) -> bool:
        """Whether there is anything to train, and a loss that can be computed."""
        return self.problem is None and any(p.requires_grad for p in self.module.parameters())

    # ---- copies and trials ----

    def copy(self) -> Copy:
        """Return a copy as the module is."""
        return copied(self.module, self.loss_fn, self.optimizer)

    def start(self, fresh: bool | None = None) -> Copy:
        """Return a copy from which a trial may begin: untrained.

        Parameters
        ----------
        fresh
            Whether to draw the weights again; None to do it where the module has learned already.
        """
        copy = self.copy()
        if self.restarts if fresh is None else fresh:
            seed_torch(self.seed)
            reinitialised(copy.net)
        copy.net.train()
        return copy

    @property
    def restarts(self) -> bool:
        """Whether trials begin from weights drawn again rather than from the module's own."""
        return self.restart or self.trained or self.stepped

    @cached_property
    def stepped(self) -> bool:
        """Whether the user's optimizer has made steps."""
        return isinstance(self.optimizer, Optimizer) and len(self.optimizer.state) > 0

    @cached_property
    def trained(self) -> bool:
        """Whether the module, as it is, has learned from its inputs.

        Then its loss is higher when each row is given the input of another.
        """
        if self.problem is not None or len(self.x) < 8:
            return False
        copy = self.copy()
        order = np.random.default_rng(self.seed).permutation(len(self.x))
        honest = batch_losses(copy, self.x, self.y)
        mixed = batch_losses(copy, self.x[torch.from_numpy(order).to(self.device)], self.y)
        if not np.isfinite(honest).all() or not np.isfinite(mixed).all():
            return False
        gap, sure = difference(mixed, honest)
        rise = limit("examine.learned") * abs(float(honest.mean()))
        return sure > limit("examine.very_sure") and gap > rise

    @cached_property
    def learned(self) -> Learned:
        """The module if it is trained; else a copy after a short training as the user's."""
        if self.trained:
            return Learned(self.copy(), True, [])
        copy = self.start()
        clock = Clock(min(LEARNING_SHARE * self.seconds, max(0.3, self.clock.end - _now() - 0.5)))
        steps = max(LEAST_STEPS, EPOCHS * (len(self.x) // self.batch_size))
        losses = self.train(copy, steps, clock=clock)
        return Learned(copy, False, losses)

    def train(
        self,
        copy: Copy,
        steps: int,
        *,
        x: Tensor | None = None,
        y: Tensor | None = None,
        batch_size: int | None = None,
        clock: Clock | None = None,
    ) -> list[float]:
        """Train a copy on the sample, or on other rows; return the losses."""
        size = self.batch_size if batch_size is None else batch_size
        with self.quick(copy, size):
            return train(
                copy,
                self.x if x is None else x,
                self.y if y is None else y,
                steps=steps,
                batch_size=size,
                clock=self.clock if clock is None else clock,
                seed=self.seed,
            )

    @contextmanager
    def quick(self, copy: Copy, size: int) -> Iterator[None]:
        """Run small steps of a CPU on one thread."""
        work = 3 * size * sum(p.numel() for p in copy.net.parameters())
        with cpu_scope(self.device, work):
            yield

    def once(self, make: Callable[[Subject], Any]) -> Any:
        """Return what a function makes of the subject, made only once."""
        if make not in self.made:
            self.made[make] = make(self)
        return self.made[make]

    # ---- errors of rows ----

    def errors(self, copy: Copy, x: Tensor | None, y: Tensor | None) -> np.ndarray | None:
        """Return the error of each row in evaluation mode; None where rows have no error."""
        if x is None or y is None or self.problem is not None:
            return None
        predicted = predictions(self.task, self.kind, forward(copy.net, x), y)
        found = row_errors(self.task, labels(self.task, y), predicted)
        return None if found is None else found / self.unit

    @cached_property
    def unit(self) -> float:
        """What errors are measured in: 1, or the variance of the targets of a regression."""
        if self.task != "regression":
            return 1.0
        flat = self.y.reshape(len(self.y), -1).cpu().double()
        return max(float(flat.var(0).mean()), 1e-30) if len(flat) > 1 else 1.0

    # ---- the rows as a table ----

    @cached_property
    def tokens(self) -> bool:
        """Whether inputs are numbers of tokens, as an embedding takes them."""
        if self.x.is_floating_point() or self.x.ndim > 2:
            return False
        return any(isinstance(part, nn.Embedding) for part in self.module.modules())

    @cached_property
    def table(self) -> np.ndarray:
        """Training rows as a table of float64."""
        return self._tables[0]

    @cached_property
    def held_table(self) -> np.ndarray | None:
        """Validation rows as a table of float64."""
        return self._tables[1]

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray | None]:
        both = self.x if self.vx is None else torch.cat([self.x, self.vx])
        found = columns_of(both, self.tokens)
        return found[: len(self.x)], None if self.vx is None else found[len(self.x) :]

    @cached_property
    def labels(self) -> np.ndarray | None:
        """Training targets as scikit-learn wants them."""
        return labels(self.task, self.y)

    @cached_property
    def held_labels(self) -> np.ndarray | None:
        """Validation targets likewise."""
        return None if self.vy is None else labels(self.task, self.vy)

    @cached_property
    def images(self) -> bool:
        """Whether inputs are images, or images laid flat: neighbouring columns go together."""
        if self.x.ndim >= 4:
            return True
        if self.x.ndim != 2 or self.x.shape[1] < 25 or self.tokens:
            return False
        return _goes_together(self.table)


def _goes_together(X: np.ndarray) -> bool:
    """Whether neighbouring columns correlate much more than distant ones."""
    Z = np.nan_to_num(X[:, np.nanstd(X, axis=0) > 0])
    if Z.shape[1] < 10:
        return False
    Z = (Z - Z.mean(0)) / Z.std(0)
    near = np.abs((Z[:, 1:] * Z[:, :-1]).mean(0)).mean()
    half = Z.shape[1] // 2
    far = np.abs((Z[:, :half] * Z[:, half : 2 * half]).mean(0)).mean()
    much = near > limit("examine.neighbours_ratio") * far
    return bool(near > limit("examine.neighbours") and much)


def _now() -> float:
    return time.monotonic()
