"""What a checkpoint keeps of a training, so that it goes on bit for bit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from castalia.errors import CheckpointMismatch, TrainingWarning
from castalia.optim import Average
from castalia.train.best_weights import BestWeights
from castalia.train.placement import Placement
from castalia.train.recorder import Recorder
from castalia.train.step_terms import StepTerms
from castalia.train.stepper import Stepper

__all__ = ["ResumePoint"]


@dataclass
class ResumePoint:
    """The parts of a training that change from step to step.

    Parameters
    ----------
    place, stepper, average, terms, best, recorder
        Network and processes, optimizers and objective, averaged weights, terms of the epoch, the
        best weights, and where checkpoints are.
    """

    place: Placement
    stepper: Stepper
    average: Average | None
    terms: StepTerms
    best: BestWeights
    recorder: Recorder

    def save(self, finished: bool) -> dict[str, Any]:
        """Return everything that the rest of the training depends on, but for its position."""
        place, stepper, gather = self.place, self.stepper, self.place.strategy.gather
        cuda = [torch.cuda.get_rng_state(place.device)] if place.device.type == "cuda" else []
        random = (torch.get_rng_state(), *cuda)
        return {
            "net": place.strategy.state_dict(place.net),
            "optimizers": stepper.parts.optimizer_states(),
            "objective": {name: gather(part) for name, part in stepper.carried().items()},
            "average": None if self.average is None else self.average.state_dict(),
            "best": self.best.weights,
            "random": [gather(state.to(place.home)) for state in random],
            "seen": self.terms.seen,
            "rows": self.terms.rows,
            "micro": stepper.parts.micro,
            "finished": finished,
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Put back weights, optimizers, averages and random states as they were."""
        place, stepper, rank = self.place, self.stepper, self.place.strategy.rank
        if place.strategy.sharded:
            saved = self.recorder.fetch(saved, self._template())
        carried = saved.get("objective", {})  # checkpoints of earlier versions have none
        same = self._as_many(len(saved["random"][0]), carried)
        place.strategy.load_state_dict(place.net, saved["net"])
        self.load_optimizers(saved["optimizers"])
        stepper.carry_on({name: by_rank[rank] for name, by_rank in carried.items()})
        if self.average is not None:
            self.average.load_state_dict(saved["average"])
        self.best.weights = saved["best"]
        stepper.parts.micro = saved["micro"]
        if not same:  # of other processes: each goes on with the numbers it began with
            return
        random = [by_rank[rank].cpu() for by_rank in saved["random"]]
        torch.set_rng_state(random[0])
        if place.device.type == "cuda" and len(random) > 1:
            torch.cuda.set_rng_state(random[1], place.device)

    def _template(self) -> dict[str, Any]:
        """Return what is divided among processes, as this one holds it."""
        weights = self.place.strategy.state_dict(self.place.net)
        optimizers = self.stepper.parts.optimizer_states()
        return {"net": weights, "best": weights, "optimizers": optimizers}

    def _as_many(self, before: int, carried: dict[str, Any]) -> bool:
        """Whether as many processes go on; others can, unless the objective has state in each."""
        now = self.place.strategy.world
        if before == now:
            return True
        if carried:
            raise CheckpointMismatch(
                f"Training: the number of processes must stay {before}, since each carries a state "
                f"of its own from step to step; got {now}. Or choose another `run`."
            )
        if self.place.strategy.rank == 0:
            warnings.warn(
                f"Training: the run goes on with another number of processes, {now} instead of "
                f"{before}. Weights, optimizers and batches are the same; dropout and other noise "
                "are drawn from other numbers.",
                TrainingWarning,
                stacklevel=2,
            )
        return False

    def load_optimizers(self, states: Sequence[dict[str, Any]] | None) -> None:
        """Let the optimizers go on from these states, at the base rate; None: begin."""
        if states is None:
            return
        parts = self.stepper.parts
        for optimizer, state in zip(parts.optimizers, states, strict=True):
            self.place.strategy.load_optimizer_state(self.place.net, optimizer, state)
        parts.set_rate(1.0)
        self.stepper.prepare()
