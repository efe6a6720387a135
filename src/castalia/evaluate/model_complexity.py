"""How large a fitted model is: its numbers, their bytes, and the work of one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from castalia.errors import InvalidParameter
from castalia.evaluate.network_probe import encoded, run
from castalia.nn import evaluating

__all__ = ["Complexity", "complexity"]


@dataclass(frozen=True)
class Complexity:
    """The size of a fitted model.

    Attributes
    ----------
    parameters
        Numbers that were fitted or frozen.
    trainable
        Those that training may move.
    bytes
        What the parameters take in memory.
    flops
        Additions and multiplications of products and convolutions for one row; None where no row
        was given.
    """

    parameters: int
    trainable: int
    bytes: int
    flops: int | None = None

    def __add__(self, other: Complexity) -> Complexity:
        both = None not in (self.flops, other.flops)
        return Complexity(
            self.parameters + other.parameters,
            self.trainable + other.trainable,
            self.bytes + other.bytes,
            (self.flops or 0) + (other.flops or 0) if both else None,
        )


def complexity(estimator: Any, X: Any = None) -> Complexity:
    """Count the parameters of a fitted estimator and, given rows, the FLOPs of one answer.

    Parameters
    ----------
    estimator
        A fitted one with a network, with ``coef_``, or an ensemble of such, whose members add up.
    X
        Rows as for ``predict``; the first is run once.

    See Also
    --------
    EffectiveModelComplexity : how many rows a training procedure can fit.
    castalia.nn.summary : a network layer by layer.

    Examples
    --------
    >>> import castalia
    >>> from castalia.testing.toys import plane
    >>> X, y = plane(20)
    >>> complexity(castalia.LinearRegression().fit(X, y), X)
    Complexity(parameters=4, trainable=4, bytes=32, flops=6)
    """
    check_is_fitted(estimator)
    if hasattr(estimator, "estimators_"):
        members = (complexity(member, X) for member in estimator.estimators_)
        return sum(members, Complexity(0, 0, 0, None if X is None else 0))
    if hasattr(estimator, "coef_"):
        return _linear(estimator, X)
    if isinstance(getattr(estimator, "module_", None), nn.Module):
        return _network(estimator, X)
    raise InvalidParameter(
        "complexity: `estimator` must have a network, `coef_` or members; got "
        f"{type(estimator).__name__}."
    )


def _network(estimator: Any, X: Any) -> Complexity:
    weights = list(estimator.module_.parameters())
    flops = None
    if X is not None:
        net, x = encoded("complexity", estimator, X)
        with evaluating(net), FlopCounterMode(display=False) as counter:
            run(net, x[:1])
        flops = counter.get_total_flops()
    return Complexity(
        sum(w.numel() for w in weights),
        sum(w.numel() for w in weights if w.requires_grad),
        sum(w.numel() * w.element_size() for w in weights),
        flops,
    )


def _linear(estimator: Any, X: Any) -> Complexity:
    weights = np.asarray(estimator.coef_)
    parts = [weights]
    if getattr(estimator, "fit_intercept", True):
        parts.append(np.asarray(getattr(estimator, "intercept_", [])))
    count = sum(part.size for part in parts)
    size = sum(part.size * part.itemsize for part in parts)
    return Complexity(count, count, size, None if X is None else 2 * weights.size)
