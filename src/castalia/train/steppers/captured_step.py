"""Small CUDA steps recorded once as a graph and replayed.

A small step is bound by launching its kernels one by one; a recorded step is one launch. A step
that keeps the device busy is left as it is: recorded, it would need its memory twice. The
batch's rows are chosen inside the graph: a cursor on the device walks through the epoch's order, so
a replay needs nothing from the host. Batches of padded rows have one of a few widths, and an epoch
may end with a batch of fewer rows; each such size has a graph of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from castalia.data.batches import Samples
from castalia.train.step import Terms
from castalia.train.step_parts import StepParts
from castalia.train.steppers.fused_step import FusedStep
from castalia.train.window import Draw, Window

__all__ = ["CapturedStep", "own_stream"]

WARM_UP = 3  # eager steps before recording, as torch asks for
Size = tuple[int, tuple[int, ...] | None]  # rows of a batch, and their width
BUSY = 2.0  # a device that works so many times as long as launching takes needs no graph


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


class CapturedStep(FusedStep):
    """Records the step when it can and takes eager steps when it cannot.

    Attributes
    ----------
    failed
        Why recording was given up, or None.
    recorded
        The graphs, by the rows and the width of their batches.
    """

    name = "captured"

    def __init__(self, parts: StepParts) -> None:
        super().__init__(parts)
        self.recorded: dict[Size, torch.cuda.CUDAGraph] = {}
        self.failed: str | None = None
        if any(phase.every > 1 for phase in parts.phases):
            self.failed = "phases that are not due in every step"
        self.warm = 0
        self.window: Window | None = None
        self.source: Samples | None = None
        self.cursor = torch.zeros(1, dtype=torch.long, device=parts.device)
        self.table = torch.zeros(0, 0, dtype=torch.long, device=parts.device)  # (steps, B)
        self.short = self.table.flatten()  # rows of a last batch of fewer; none where there is none
        self.steps = 0  # of the window, that are recorded
        self.next = -1  # where the cursor stands
        self.names: list[str] = []  # of the terms of a step
        self.terms = torch.zeros(0, 0, device=parts.device)  # of replayed steps, (steps, terms)
        self.gradients_kept: list[Tensor | None] = []  # of every graph
        self.pool: Any = None

    def __call__(self, draw: Draw, number: int) -> Terms:
        """Replay the recorded step, or take an eager one."""
        if draw.window is not self.window:
            self._enter(draw.window)
        i = draw.number
        if self.failed or i >= self.steps:
            return super().__call__(draw, number)
        if self.warm < WARM_UP:
            return self._warm_step(draw, number)
        size = (len(draw.rows), draw.width)
        if size not in self.recorded and not self._capture(draw):
            return super().__call__(draw, number)
        if i != self.next:
            self.cursor.fill_(i)
        self.recorded[size].replay()
        self.next = i + 1
        return dict(zip(self.names, self.terms[i].unbind(), strict=True))

    def release(self) -> bool:
        """Free the graphs and their memory; whether there were any.

        Gradients lie in that memory, so they go too.
        """
        worked = bool(self.recorded)
        if worked:
            self._forget()
            for parameter in self.parts.parameters:
                parameter.grad = None
        return worked

    def _enter(self, window: Window) -> None:
        """Take up a window; one of another size or place needs a new recording."""
        order, cuts = window.order, window.cuts
        # Batches of different numbers of rows are not recorded.
        alike = isinstance(cuts, range) and window.samples.x.fixed
        size = cuts[1] - cuts[0] if alike else len(order) + 1
        whole = len(order) // size
        rows = order[: whole * size].view(whole, -1) if whole else order.new_zeros(0, 1)
        short = order[whole * size :] if whole else order[:0]
        same = self.table.shape == rows.shape and self.short.shape == short.shape
        again = self.source is window.samples and same
        self.steps = whole + (again and len(short) > 0)  # one short batch is not worth a recording
        if again:
            self.table.copy_(rows)
            self.short.copy_(short)
        else:
            self.source, self.table, self.short = window.samples, rows.clone(), short.clone()
            self._forget()
        self.window, self.next = window, -1

    def _forget(self) -> None:
        """Drop every recording."""
        self.recorded, self.gradients_kept = {}, []

    def _warm_step(self, draw: Draw, number: int) -> Terms:
        self.warm += 1
        timed = self.warm == WARM_UP
        found = self._timed_step(draw, number) if timed else super().__call__(draw, number)
        self.names = list(found)
        return found

    def _timed_step(self, draw: Draw, number: int) -> Terms:
        """Take a step and measure whether the host or the device makes it as long as it is."""
        torch.cuda.synchronize()
        started = time.perf_counter()
        found = super().__call__(draw, number)
        launched = time.perf_counter() - started
        torch.cuda.synchronize()
        if time.perf_counter() - started > BUSY * launched:
            self.failed = "steps that keep the device busy as they are"
        return found

    def _capture(self, draw: Draw) -> bool:
        """Record one step; recording computes nothing."""
        graph = torch.cuda.CUDAGraph()
        if not self.recorded:  # made outside the graphs, which would clear them at every replay
            steps, device = len(self.table) + 1, self.parts.device  # the short one's too
            self.terms = torch.zeros(steps, len(self.names), device=device)
            self.pool = torch.cuda.graph_pool_handle()
        torch.cuda.synchronize()
        try:
            # Graphs share their memory: they run one after another, and none reads another's.
            stream = torch.cuda.current_stream()
            with torch.cuda.graph(graph, pool=self.pool, stream=stream):
                whole = draw.number < len(self.table)
                index = self.table.index_select(0, self.cursor)[0] if whole else self.short  # (B,)
                found = super().__call__(draw.part(index), 0)
                values = [found[name].float().reshape(1) for name in self.names]
                self.terms.index_copy_(0, self.cursor, torch.cat(values)[None])
                self.cursor.add_(1)
        except Exception as error:  # anything that cannot be recorded: host reads, changing shapes
            self.failed = f"{type(error).__name__}: {error}".splitlines()[0]
            torch.cuda.synchronize()
            # A broken recording leaves the generator waiting for its end; a copy is free of that.
            chance = torch.cuda.default_generators[torch.cuda.current_device()]
            chance.graphsafe_set_state(chance.clone_state())
            return False
        self.recorded[len(draw.rows), draw.width] = graph
        # Graphs write here: keep the memory.
        self.gradients_kept += [p.grad for p in self.parts.parameters]
        return True
