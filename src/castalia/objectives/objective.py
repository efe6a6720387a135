"""Objectives and the penalties that add to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.protocols import Batch, Phase, StepPlan

__all__ = ["BatchPenalty", "Objective", "Penalised", "Penalty", "Wrapped", "weighted_mean"]


def weighted_mean(loss: Tensor, weight: Tensor | None) -> Tensor:
    """Mean of per-row losses (B,), each row counting as often as its weight says.

    >>> weighted_mean(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 1.0]))
    tensor(2.)
    """
    if weight is None:
        return loss.mean()
    return (loss * weight).sum() / weight.sum().clamp_min(torch.finfo(weight.dtype).tiny)


class Objective:
    """What is minimised. Subclasses give ``terms``; the rest has sensible defaults.

    Every value in ``terms`` is a mean over the rows of the batch, weighted by ``batch.weight``, so
    that the loop can combine micro-batches and processes into exactly the big-batch step.
    """

    def phases(self, net: nn.Module) -> list[Phase]:
        """One phase over every trainable parameter."""
        return [Phase("train", [p for p in net.parameters() if p.requires_grad])]

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return ``{"loss": …, named parts}`` for one batch."""
        raise NotImplementedError

    def judged(
        self, net: nn.Module, batch: Batch, phase: str
    ) -> tuple[Tensor, Tensor | None]:  # (P,)
        """Return the losses of the parts of the network that learn apart, and what rows weigh.

        One part by default; weights are None where each row counts once.
        """
        weight = None if batch.weight is None else batch.weight.sum()[None]
        return self.terms(net, batch, phase)["loss"][None], weight

    def after_step(self, net: nn.Module) -> None:
        """Update what gradients do not; nothing by default."""

    def prepare(self, plan: StepPlan) -> None:
        """Receive how steps are taken; nothing by default."""

    def state_dict(self) -> dict[str, Tensor]:
        """Return what is carried from step to step outside the network; nothing by default."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what ``state_dict`` returned; an empty one is that before the first step."""

    def __add__(self, penalty: Penalty) -> Penalised:
        return Penalised(self, penalty)


class Wrapped(Objective):
    """An objective around another one, which it asks for whatever it does not change itself.

    Parameters
    ----------
    objective
        The inner one.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    def phases(self, net: nn.Module) -> list[Phase]:
        """Those of the inner objective."""
        return self.objective.phases(net)

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Those of the inner objective."""
        return self.objective.terms(net, batch, phase)

    def after_step(self, net: nn.Module) -> None:
        """That of the inner objective."""
        self.objective.after_step(net)

    def prepare(self, plan: StepPlan) -> None:
        """Hand the plan on."""
        self.objective.prepare(plan)

    def state_dict(self) -> dict[str, Tensor]:
        """That of the inner objective."""
        return self.objective.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """That of the inner objective."""
        self.objective.load_state_dict(state)


class Penalty:
    """A function of the parameters added to a loss."""

    name = "penalty"

    def value(self, net: nn.Module) -> Tensor:
        """Return the penalty of a network."""
        raise NotImplementedError

    def beside(
        self, objective: Objective, net: nn.Module, batch: Batch, phase: str
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Return the terms of an objective on a batch, and the penalty."""
        return objective.terms(net, batch, phase), self.value(net)


class BatchPenalty(Penalty):
    """A function of what the network makes of each row, averaged over the rows of the batch.

    Subclasses give ``rows``. Those that look inside the network also give ``watch``, which is open
    while the objective runs the network: nothing is computed twice.
    """

    def rows(self, net: nn.Module, batch: Batch, seen: Any) -> Tensor:
        """Return the penalty of each row, (B,)."""
        raise NotImplementedError

    @contextmanager
    def watch(self, net: nn.Module) -> Iterator[Any]:
        """Collect what ``rows`` needs from the objective's own pass; nothing by default."""
        yield None

    def value(self, net: nn.Module) -> Tensor:
        """Refuse: without rows there is nothing to penalise."""
        raise InvalidParameter(
            f"{type(self).__name__}: the penalty must be computed on a batch; got a network alone. "
            "Add it to an objective and call its `terms(net, batch, phase)`."
        )

    def beside(
        self, objective: Objective, net: nn.Module, batch: Batch, phase: str
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Return the terms of an objective on a batch, and the penalty's mean over its rows."""
        with self.watch(net) as seen:
            terms = objective.terms(net, batch, phase)
        return terms, weighted_mean(self.rows(net, batch, seen), batch.weight)


class Penalised(Wrapped):
    """An objective plus a penalty: J + Omega."""

    def __init__(self, objective: Objective, penalty: Penalty) -> None:
        super().__init__(objective)
        self.penalty = penalty

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Those of the objective, with the penalty added to the loss and shown beside it."""
        terms, penalty = self.penalty.beside(self.objective, net, batch, phase)
        return {**terms, "loss": terms["loss"] + penalty, self.penalty.name: penalty}
