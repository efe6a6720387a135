"""An objective on changed rows: augmentation as part of what is minimised.

E_t J(t(x), t(y)) over random transforms t, one draw a step; the loop needs to know nothing of it.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from castalia.objectives.objective import Objective, Wrapped
from castalia.protocols import Batch

__all__ = ["Augmented"]


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

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the objective's terms, in training on changed rows."""
        if net.training:
            x, y = self.transform(batch.x, batch.y)
            batch = batch._replace(x=x, y=y)
        return self.objective.terms(net, batch, phase)
