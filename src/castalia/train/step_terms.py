"""The terms of the steps of an epoch, read from the device now and then."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from castalia.errors import Diverged
from castalia.train.state import TrainState
from castalia.train.stepper import Stepper
from castalia.train.strategy import Single
from castalia.utils.text import listing

__all__ = ["StepTerms"]


class StepTerms:
    """What the steps of this epoch left, on the host.

    Parameters
    ----------
    state
        Where the training stands; ``losses`` is kept up to date.
    strategy
        The processes whose shares of a term are added up.

    Attributes
    ----------
    seen : dict of list of float
        A value a step, by the term's name; NaN where a step did not compute it.
    rows : list of int
        Rows of each step.
    """

    def __init__(self, state: TrainState, strategy: Single) -> None:
        self.state, self.strategy = state, strategy
        self.seen: dict[str, list[float]] = {}
        self.rows: list[int] = []

    def read(self, stepper: Stepper) -> None:
        """Move the steps' terms to the host, and stop at the first loss that is not a number."""
        values, rows = stepper.collect()
        for name in dict.fromkeys([*self.seen, *values]):
            found = [math.nan] * len(rows)  # stands for a term that none of these steps computed
            if name in values:
                mine = values[name].clone()
                found = self.strategy.total(values[name]).tolist()
            self.seen.setdefault(name, [math.nan] * len(self.rows)).extend(found)
            if name == "loss":
                self.state.losses = self.seen[name]
                if not all(map(math.isfinite, found)):
                    phase = _first_phase(stepper, values)
                    where = _processes(self.strategy, mine)
                    raise _diverged(self.state, name, found, phase, where)
        self.rows.extend(rows)

    def keep(self, terms: dict[str, float]) -> None:
        """Take the terms of an epoch without steps."""
        self.seen, self.rows = {name: [value] for name, value in terms.items()}, [1]

    def means(self) -> dict[str, Any]:
        """Return the mean of each term over the epoch, and begin another."""
        found = {name: _mean(values, self.rows) for name, values in self.seen.items()}
        self.seen, self.rows = {}, []
        return found


def _mean(values: list[float], rows: list[int]) -> float:
    """Mean over steps, each counting by its rows; steps without the term are left out."""
    known = [(v, n) for v, n in zip(values, rows, strict=True) if not math.isnan(v)]
    return sum(v * n for v, n in known) / sum(n for _, n in known) if known else math.nan


def _first_phase(stepper: Stepper, values: dict[str, Any]) -> str:
    """Return which of several phases was the first to leave the numbers, in words."""
    phases = stepper.parts.phases
    if len(phases) == 1:
        return ""
    first = {}
    for phase in phases:
        wrong = [i for i, v in enumerate(values[phase.name].tolist()) if not math.isfinite(v)]
        if wrong and phase.every == 1:  # a step in which a phase is not due has no value either
            first[phase.name] = wrong[0]
    return f" of the {min(first, key=lambda name: first[name])}" if first else ""


def _processes(strategy: Single, mine: Tensor) -> str:
    """Return which of several processes were the first to leave the numbers, in words."""
    wrong = ~torch.stack(strategy.gather(mine)).isfinite()  # (processes, steps)
    step = int(wrong.any(dim=0).int().argmax())
    ranks = wrong[:, step].nonzero().flatten().tolist()
    if len(ranks) == strategy.world:
        return ""
    return f" in {'process' if len(ranks) == 1 else 'processes'} {listing(ranks, 'and')}"


def _diverged(
    state: TrainState, term: str, values: list[float], phase: str = "", where: str = ""
) -> Diverged:
    first = next(i for i, value in enumerate(values) if not math.isfinite(value))
    step = state.total - len(values) + first + 1
    return Diverged(
        f"Training: the {term}{phase} became {values[first]}{where} in epoch {state.epoch + 1}, at "
        f"step {step}, with lr={state.lr:g}. Lower `lr`, clip gradients with Training(clip=1.0), "
        "or check the data for extreme values.",
        step=step,
        epoch=state.epoch,
        term=term,
        lr=state.lr,
    )
