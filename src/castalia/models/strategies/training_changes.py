"""Another objective, another network or other targets for the fits of an estimator.

A strategy changes what an estimator minimises without knowing its class: inside ``changed`` the two
hooks and the codec of this one object are replaced, and the one loop runs as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from castalia.base import Estimator, Target
from castalia.errors import InvalidParameter
from castalia.objectives import Augmented, Objective

__all__ = ["Beside", "changed", "require_rows"]


@contextmanager
def changed(
    est: Estimator,
    *,
    objective: Objective | Callable[[Any], Objective] | None = None,
    network: Callable[[nn.Module], nn.Module] | None = None,
    codec: Any = None,
) -> Iterator[None]:
    """Let the fits of one estimator differ from those of its class.

    Parameters
    ----------
    est
        The estimator.
    objective
        What is minimised, or a function from the estimator's own objective to it.
    network
        A function from the estimator's own network to the one that is trained.
    codec
        What encodes the targets.
    """
    cls: Any = type(est)
    hooks: dict[str, Any] = {}
    if isinstance(objective, Objective):
        hooks["_objective"] = lambda spec: objective
    elif objective is not None:
        hooks["_objective"] = lambda spec: _each(cls._objective(est, spec), objective)
    if network is not None:
        hooks["_network"] = lambda spec: network(cls._network(est, spec))
    if codec is not None:
        hooks["codec"] = codec
    own: dict[str, Any] = est.__dict__
    own.update(hooks)
    try:
        yield
    finally:
        for name in hooks:
            own.pop(name, None)


def _each(own: Any, change: Callable[[Any], Objective]) -> Any:
    """Change an objective, that of every stage, or the one that random views are taken for."""
    if isinstance(own, Sequence):
        return [replace(stage, objective=_each(stage.objective, change)) for stage in own]
    if isinstance(own, Augmented):
        return Augmented(_each(own.objective, change), own.transform)
    return change(own)


def require_rows(owner: str, objective: Any) -> Any:
    """Return an objective that compares outputs with targets row by row, or refuse it."""
    if not hasattr(objective, "rows"):
        raise InvalidParameter(
            f"{owner}: `estimator` must minimise a loss of outputs and targets, row by row; got "
            f"one that minimises {type(objective).__name__}."
        )
    return objective


class Beside:
    """A codec whose targets carry further numbers of each row: y becomes (y, more).

    Parameters
    ----------
    codec
        The estimator's own.
    numbers
        From checked rows X to those numbers, one row each; also called for validation rows.
    encode
        From the estimator and those numbers to what the network is held against.
    """

    def __init__(
        self,
        codec: Any,
        numbers: Callable[[Any], np.ndarray],
        encode: Callable[[Any, np.ndarray], Any] = lambda est, found: found,
    ) -> None:
        self.codec, self.numbers, self.encoded = codec, numbers, encode
        self.found = np.empty(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.codec, name)

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> Any:
        """Check y, and find the numbers of its rows."""
        y = self.codec.check(est, adapter, X, y)
        self.found = self.numbers(X)
        return y

    def fit(self, est: Any, adapter: Any, X: Any, y: Any, weight: Any) -> Target:
        """Learn from the targets and encode both."""
        return self._both(est, self.codec.fit(est, adapter, X, y, weight))

    def begin(self, est: Any, y: Any, weight: Any, classes: Any) -> Target:
        """Take the classes as given and encode both."""
        return self._both(est, self.codec.begin(est, y, weight, classes))

    def more(self, est: Any, y: Any, weight: Any) -> Target:
        """Encode both for a fit that goes on."""
        return self._both(est, self.codec.more(est, y, weight))

    def encode(self, est: Any, y: Any) -> Target:
        """Encode both, of validation rows."""
        return self._both(est, self.codec.encode(est, y))

    def truth(self, batch: Any) -> Any:
        """Return the targets alone."""
        return self.codec.truth(batch._replace(y=batch.y[0]))

    def _both(self, est: Any, target: Target) -> Target:
        return replace(target, y=(target.y, torch.as_tensor(self.encoded(est, self.found))))
