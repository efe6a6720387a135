"""An objective whose parameters learn at rates of their own.

theta_l <- theta_l - eta s_l (step of the optimizer): one backward pass, one optimizer, a factor s_l
on the learning rate of each layer. A factor on the gradient would not do: Adam undoes it.
Reference: 2018, Howard, Ruder, Universal language model fine-tuning for text classification, arXiv
1801.06146 (discriminative fine-tuning).
"""

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from castalia.objectives.objective import Objective, Wrapped
from castalia.protocols import Phase

__all__ = ["Layered"]


class Layered(Wrapped):
    """An objective that trains the parameters that ``scales`` names, each at its own rate.

    Parameters
    ----------
    objective
        What is minimised; it has one phase.
    scales
        From the network to pairs of a parameter and the factor on its learning rate; see
        ``castalia.nets.transfer.rate_scales``.

    Examples
    --------
    >>> from castalia.objectives import SquaredError
    >>> objective = Layered(SquaredError(), lambda net: [(net.weight, 0.1), (net.bias, 1.0)])
    >>> objective.phases(nn.Linear(2, 1))[0].lr_scale
    [0.1, 1.0]
    """

    def __init__(
        self,
        objective: Objective,
        scales: Callable[[nn.Module], Sequence[tuple[Tensor, float]]],
    ) -> None:
        super().__init__(objective)
        self.scales = scales

    def phases(self, net: nn.Module) -> list[Phase]:
        """Return one phase over the parameters named, with their factors."""
        pairs = self.scales(net)
        return [Phase("train", [p for p, _ in pairs], lr_scale=[factor for _, factor in pairs])]
