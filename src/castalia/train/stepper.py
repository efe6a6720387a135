"""The steps of one stage: which way they are taken, and the terms they leave."""

from __future__ import annotations

import torch
from torch import Tensor

from castalia.protocols import Batch
from castalia.train.step import PlainStep, Terms
from castalia.train.step_parts import StepParts
from castalia.train.steppers.captured_step import CapturedStep
from castalia.train.steppers.choice import step_class
from castalia.train.window import Window

__all__ = ["Stepper"]


class Stepper:
    """Takes the steps of a stage, and keeps their terms on the device until they are collected.

    Parameters
    ----------
    parts
        What the steps work on.

    Attributes
    ----------
    upcoming
        Number of the batch that the next step takes.
    """

    def __init__(self, parts: StepParts) -> None:
        self.parts = parts
        self.way: PlainStep | None = None
        self.upcoming = 0
        self.missing = torch.full((), torch.nan, device=parts.device)  # of a term not computed
        self.pending: list[Terms] = []
        self.rows: list[int] = []
        self.settled: list[Terms] = []  # (steps,) each

    @property
    def name(self) -> str:
        """How the steps are taken: the way's name, and whether batches are divided."""
        parts = self.parts
        way = step_class(parts) if self.way is None else type(self.way)
        divided = parts.micro > 1 or parts.strategy.world > 1
        return f"{way.name}, micro-batches" if divided else way.name

    @property
    def batches(self) -> int:
        """How many batches the window has."""
        return len(self.window)

    def prepare(self) -> None:
        """Forget the way of taking steps: the optimizers' state was replaced."""
        self.way = None

    def begin(self, window: Window) -> None:
        """Take up a window. The way is chosen again: hooks may have come or gone."""
        self._settle()
        self.window = window
        way = step_class(self.parts)
        if type(self.way) is not way:
            self.way = way(self.parts)

    def step(self, i: int, number: int) -> Tensor:
        """Take the step of the window's i-th batch, the epoch's ``number``-th; return its loss."""
        draw = self.window.draw(i)
        terms = self.way(draw, number)  # type: ignore[misc]
        if not terms:  # no phase was due: nothing to record
            return self.missing
        self.pending.append(terms)
        self.rows.append(draw.rows.shape[0])
        return terms["loss"]

    def next_batch(self) -> Batch:
        """Return the batch that the next step takes."""
        return self.window.draw(self.upcoming).batch()

    def collect(self) -> tuple[Terms, list[int]]:
        """Return the terms of the steps since the last call, each (steps,), and their rows."""
        self._settle()
        blocks, self.settled = self.settled, []
        rows, self.rows = self.rows, []
        if len(blocks) <= 1:
            return (blocks[0] if blocks else {}), rows
        names = dict.fromkeys(name for block in blocks for name in block)  # in order of appearance
        absent = [self.missing.expand(len(next(iter(block.values())))) for block in blocks]
        values = {
            name: torch.cat([b.get(name, none) for b, none in zip(blocks, absent, strict=True)])
            for name in names
        }
        return values, rows

    def _settle(self) -> None:
        """Copy the terms of steps into tensors of their own: a new window may overwrite them."""
        if not self.pending:
            return
        names = dict.fromkeys(name for terms in self.pending for name in terms)
        self.settled.append(
            {n: torch.stack([t.get(n, self.missing) for t in self.pending]) for n in names}
        )
        self.pending = []

    def carried(self) -> Terms:
        """Return what the objective carries from step to step; few carry anything."""
        return self.parts.objective.state_dict()

    def carry_on(self, state: Terms) -> None:
        """Let the objective go on from what it carried."""
        state = {name: value.to(self.parts.device) for name, value in state.items()}
        self.parts.objective.load_state_dict(state)

    def release(self) -> bool:
        """Free what only steps need; whether they were recorded as a graph."""
        return isinstance(self.way, CapturedStep) and self.way.release()
