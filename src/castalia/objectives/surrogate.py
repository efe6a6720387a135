"""One loss for the gradient, another one for the judgement.

The loss that is meant, such as the share of mistakes, may have no useful gradient. A surrogate is
minimised in its place, and the training is stopped by the loss that is meant, often while the
surrogate's gradient is still large.
"""

from torch import Tensor, nn

from castalia.objectives.objective import Objective, Wrapped
from castalia.protocols import Batch, StepPlan

__all__ = ["Surrogate"]


class Surrogate(Wrapped):
    """Minimises one objective and validates by another.

    With ``Training(patience=…)`` the training halts, and the best weights are chosen, by the
    second.

    Parameters
    ----------
    objective
        What gradients minimise.
    measure
        What is computed in evaluation mode, where no gradient is needed.

    Examples
    --------
    >>> import torch
    >>> from castalia.objectives import CrossEntropy, ZeroOne
    >>> objective = Surrogate(CrossEntropy(), ZeroOne())
    >>> net, batch = nn.Identity(), Batch(torch.tensor([[0.0, 2.0]]), torch.tensor([0]))
    >>> [round(objective.terms(net.train(mode), batch, "train")["loss"].item(), 3)
    ...  for mode in (True, False)]
    [2.127, 1.0]
    """

    def __init__(self, objective: Objective, measure: Objective) -> None:
        super().__init__(objective)
        self.measure = measure

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the objective's terms in training, those of the measure otherwise."""
        return (self.objective if net.training else self.measure).terms(net, batch, phase)

    def prepare(self, plan: StepPlan) -> None:
        """Hand the plan on to both."""
        super().prepare(plan)
        self.measure.prepare(plan)
