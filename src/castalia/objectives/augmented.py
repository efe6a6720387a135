"""An objective on changed rows: augmentation as part of what is minimised.

E_t J(t(x), t(y)) over random transforms t, one draw a step; the loop needs to know nothing of it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from castalia.objectives.objective import Objective, Wrapped
from castalia.protocols import Batch, StepPlan

__all__ = ["Augmented"]

TAKEN = "augmented.taken"  # steps so far, in the state of the objective


class Augmented(Wrapped):
    """An objective whose rows are changed at random in training and left alone otherwise.

    Parameters
    ----------
    objective
        What is minimised.
    transform
        Called with x and y, returns both; see ``castalia.data.augment``.

    Notes
    -----
    Rows are changed on the device of the batch, with torch's own generator, which the loop seeds
    and saves: resumed trainings see the same changes. A row keeps its weight.

    Examples
    --------
    >>> import torch
    >>> from castalia.objectives import SquaredError
    >>> objective = Augmented(SquaredError(), lambda x, y: (x + 1, y))
    >>> net, batch = nn.Identity(), Batch(torch.zeros(1, 1), torch.zeros(1, 1))
    >>> [objective.terms(net.train(mode), batch, "train")["loss"].item() for mode in (True, False)]
    [1.0, 0.0]
    """

    def __init__(
        self, objective: Objective, transform: Callable[[Any, Any], tuple[Any, Any]]
    ) -> None:
        super().__init__(objective)
        self.transform = transform
        self.steps = 0
        self.taken: Tensor | None = None

    def prepare(self, plan: StepPlan) -> None:
        """Receive how many steps an epoch has, and hand the plan on."""
        self.steps = plan.steps
        super().prepare(plan)

    def state_dict(self) -> dict[str, Tensor]:
        """Add how many steps were taken, where changes go by epochs."""
        inner = super().state_dict()
        return inner if self.taken is None else {**inner, TAKEN: self.taken}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on counting, and hand the rest on."""
        self.taken = state.get(TAKEN)
        super().load_state_dict({name: value for name, value in state.items() if name != TAKEN})

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the objective's terms, in training on changed rows."""
        if net.training:
            x, y = self._of_this_epoch(batch)(batch.x, batch.y)
            batch = batch._replace(x=x, y=y)
        return self.objective.terms(net, batch, phase)

    def _of_this_epoch(self, batch: Batch) -> Callable[[Any, Any], tuple[Any, Any]]:
        """Return the transform; one that goes by epochs as it is in this one."""
        transform: Any = self.transform
        if not self.steps or not getattr(transform, "alternates", False):
            return self.transform
        if self.taken is None:
            self.taken = torch.zeros((), dtype=torch.long, device=batch.x.device)
        found: Callable[[Any, Any], tuple[Any, Any]] = transform.at(self.taken // self.steps)
        return found

    def after_step(self, net: nn.Module) -> None:
        """Count the step, of which each process and micro-batch sees some rows only."""
        super().after_step(net)
        if self.taken is not None:
            self.taken += 1  # in place, so that a recorded step goes on counting
