"""The Levenberg-Marquardt schedule of damping.

ratio = actual over predicted reduction of the loss. A model that promises too much is trusted less:
below 1/4 the damping grows, above 3/4 it shrinks.
Reference: 1963, Marquardt, An algorithm for least-squares estimation of nonlinear parameters.
"""

import math

__all__ = ["LEAST", "adjust_damping"]

LEAST, MOST = 1e-12, 1e12


def adjust_damping(damping: float, ratio: float, factor: float = 1.5) -> float:
    """Return the damping of the next step.

    Parameters
    ----------
    damping
        In this step.
    ratio
        Actual over predicted reduction; NaN counts as a failure.
    factor
        By how much it changes.

    Examples
    --------
    >>> [adjust_damping(1.0, ratio, 2.0) for ratio in (0.1, 0.5, 0.9)]
    [2.0, 1.0, 0.5]
    """
    if math.isnan(ratio) or ratio < 0.25:
        damping *= factor
    elif ratio > 0.75:
        damping /= factor
    return min(max(damping, LEAST), MOST)
