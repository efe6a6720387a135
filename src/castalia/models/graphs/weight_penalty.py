"""An objective with the penalty of its estimator."""

from castalia.objectives import L2
from castalia.objectives.objective import Objective

__all__ = ["penalised"]


def penalised(objective: Objective, l2: float) -> Objective:
    """Return an objective, with a penalty on squared weights where there is one."""
    return objective + L2(l2) if l2 else objective
