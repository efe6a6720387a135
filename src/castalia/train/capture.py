"""Small CUDA steps recorded once as a graph and replayed.

A small step is bound by launching its kernels one by one; a recorded step is one launch. A step
that keeps the device busy is left as it is: recorded, it would need its memory twice. The
batch's rows are chosen inside the graph: a cursor on the device walks through the epoch's order, so
a replay needs nothing from the host. Batches of padded rows have one of a few widths, each of which
has a graph of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from castalia.data.batches import Samples
from castalia.train.step import Stepper

__all__ = ["CapturedStepper", "own_stream"]

WARM_UP = 3  # eager steps before recording, as torch asks for
BUSY = 1.25  # a device that works so many times as long as launching takes needs no graph


@contextmanager
def own_stream(device: torch.device) -> Iterator[None]:
    """Work on a CUDA stream of one's own: what happens on the default one cannot be recorded.

    That includes gradients: autograd remembers the stream on which a weight was first used.
    """
    if device.type != "cuda":
        yield
        return
    outside, own = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    own.wait_stream(outside)
    try:
        with torch.cuda.stream(own):
            yield
    finally:
        outside.wait_stream(own)


class CapturedStepper(Stepper):
    """A stepper that records its step when it can and takes eager steps when it cannot.

    Attributes
    ----------
    failed
        Why recording was given up, or None.
    """

    graph = True

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.recorded: dict[tuple[int, ...] | None, torch.cuda.CUDAGraph] = {}  # by width
        self.failed: str | None = None
        self.warm = 0
        self.cursor = torch.zeros(1, dtype=torch.long, device=self.device)
        self.table = torch.zeros(0, self.batch_size, dtype=torch.long, device=self.device)
        self.source: Samples | None = None
        self.next = self.replayed = 0
        self.names: list[str] = []  # of the terms of a step
        self.gradients: list[Tensor | None] = []  # of every graph
        self.pool: Any = None
        self.terms: dict[str, Tensor] = {}  # of every replayed step, (steps,) each
        if any(phase.every > 1 for phase in self.phases):
            self.failed = "phases that are not due in every step"
        if any(self.closures):
            self.failed = "an optimizer that evaluates a batch more than once"

    def begin(self, samples: Samples, order: Tensor, cuts: Sequence[int] | None = None) -> None:
        """Take up a window; a window of another size or place needs a new recording."""
        self._keep_replayed()
        super().begin(samples, order, cuts)
        # Batches of different numbers of rows are not recorded.
        whole = len(order) // self.batch_size if isinstance(self.cuts, range) else 0
        rows = order[: whole * self.batch_size].view(whole, self.batch_size)
        if self.source is not samples or len(self.table) != whole:
            self.source, self.table = samples, rows.clone()
            self._forget()
        else:
            self.table.copy_(rows)
        self.next = -1

    def step(self, i: int, number: int) -> Tensor:
        """Replay the recorded step, or take an eager one."""
        if self.failed or i >= len(self.table) or not self.samples.x.fixed:
            return super().step(i, number)
        if self.warm < WARM_UP:
            return self._warm_step(i, number)
        self._choose(i)
        if self.width not in self.recorded and not self._capture():
            return super().step(i, number)
        if i != self.next:
            self.cursor.fill_(i)
        self.recorded[self.width].replay()
        self.next = i + 1
        self.replayed += 1
        return self.terms["loss"][i]

    def collect(self) -> tuple[dict[str, Tensor], list[int]]:
        """Return the terms of eager and of replayed steps."""
        values, rows = super().collect()
        if self.replayed:
            span = slice(self.next - self.replayed, self.next)
            done = {name: found[span].clone() for name, found in self.terms.items()}
            values = {n: torch.cat([values[n], v]) if n in values else v for n, v in done.items()}
            rows = rows + [self.batch_size] * self.replayed
            self.replayed = 0
        return values, rows

    def _keep_replayed(self) -> None:
        """Copy the terms of replayed steps not yet collected: a new window overwrites them."""
        for i in range(self.next - self.replayed, self.next) if self.replayed else ():
            self.record.append({name: found[i].clone() for name, found in self.terms.items()})
            self.rows.append(self.batch_size)
        self.replayed = 0

    def release(self) -> bool:
        """Free the graph and its memory; gradients lie in it, so they go too."""
        worked = bool(self.recorded)
        if worked:
            self._forget()
            for parameter in self.parameters:
                parameter.grad = None
        return worked

    def _forget(self) -> None:
        """Let go of every recording."""
        self.recorded, self.gradients = {}, []

    def _warm_step(self, i: int, number: int) -> Tensor:
        self.warm += 1
        loss = super().step(i, number) if self.warm < WARM_UP else self._timed_step(i, number)
        self.names = list(self.record[-1])
        return loss

    def _timed_step(self, i: int, number: int) -> Tensor:
        """Take a step and see whether the host or the device makes it as long as it is."""
        torch.cuda.synchronize()
        started = time.perf_counter()
        loss = super().step(i, number)
        launched = time.perf_counter() - started
        torch.cuda.synchronize()
        if time.perf_counter() - started > BUSY * launched:
            self.failed = "steps that keep the device busy as they are"
        return loss

    def _capture(self) -> bool:
        """Record one step; recording computes nothing."""
        graph = torch.cuda.CUDAGraph()
        steps = len(self.table)
        if not self.recorded:  # made outside the graphs, which would clear them at every replay
            self.terms = {name: torch.zeros(steps, device=self.device) for name in self.names}
            self.pool = torch.cuda.graph_pool_handle()
        torch.cuda.synchronize()
        try:
            # Graphs share their memory: they run one after another, and none reads another's.
            stream = torch.cuda.current_stream()
            with torch.cuda.graph(graph, pool=self.pool, stream=stream):
                index = self.table.index_select(0, self.cursor)[0]  # (B,)
                for name, value in self._phases(index, 0).items():
                    self.terms[name].index_copy_(0, self.cursor, value.float().reshape(1))
                self.cursor.add_(1)
        except Exception as error:  # anything that cannot be recorded: host reads, changing shapes
            self._keep_replayed()
            self.failed = f"{type(error).__name__}: {error}".splitlines()[0]
            torch.cuda.synchronize()
            # A broken recording leaves the generator waiting for its end; a copy is free of that.
            chance = torch.cuda.default_generators[torch.cuda.current_device()]
            chance.graphsafe_set_state(chance.clone_state())
            return False
        self.recorded[self.width] = graph
        self.gradients += [p.grad for p in self.parameters]  # graphs write here: keep the memory
        return True
