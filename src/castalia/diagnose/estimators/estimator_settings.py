"""Our estimator inside scikit-learn's wrappers, and the settings it has."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline

from castalia.base import DirectEstimator, Estimator
from castalia.diagnose.repair import inner
from castalia.errors import InvalidParameter
from castalia.train import Training

__all__ = ["check", "current", "has_loop", "has_setting", "rows_for_inner", "watches_validation"]

_LOOP = tuple(field.name for field in fields(Training))


def rows_for_inner(estimator: Any, X: Any, y: Any, *held: Any) -> tuple[Any, Any, Any, Any]:
    """Return rows and targets, and those held out, as the wrappers would hand them on."""
    X_val, y_val = held if held else (None, None)
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps[:-1]:
            if step is None or step == "passthrough":
                continue
            step = clone(step)
            X = step.fit_transform(X, y)
            X_val = None if X_val is None else step.transform(X_val)
        return rows_for_inner(estimator.steps[-1][1], X, y, X_val, y_val)
    if isinstance(estimator, TransformedTargetRegressor) and estimator.transformer is not None:
        scale = clone(estimator.transformer)
        column = _column(y)
        y = _like(scale.fit_transform(column), y)
        y_val = None if y_val is None else _like(scale.transform(_column(y_val)), y_val)
        return rows_for_inner(estimator.regressor, X, y, X_val, y_val)
    return X, y, X_val, y_val


def _column(y: Any) -> Any:
    y = np.asarray(y)
    return y.reshape(len(y), -1)


def _like(found: Any, y: Any) -> Any:
    return found if getattr(y, "ndim", 1) == 2 else found[:, 0]


def has_loop(estimator: Any) -> bool:
    """Whether an estimator of ours is fitted by the loop."""
    if isinstance(estimator, Estimator):
        return True
    return isinstance(estimator, DirectEstimator) and getattr(estimator, "solver", None) in (
        "gd",
        "sgd",
    )


def check(estimator: Any, owner: str) -> Any:
    """Return our estimator inside this one, or refuse it."""
    found = inner(estimator)
    if not has_loop(found):
        solver = " With solver='sgd' or 'gd' it is." if hasattr(found, "solver") else ""
        raise InvalidParameter(
            f"{owner}: `estimator` must be an estimator of Castalia trained by gradients; got "
            f"{type(found).__name__}.{solver}"
        )
    return found


def watches_validation(estimator: Any) -> bool:
    """Whether rows are held out while it is trained, so that patience means something."""
    return isinstance(estimator, Estimator) and current(estimator, "training__validation") != 0


def has_setting(estimator: Any, name: str) -> bool:
    """Whether a setting, such as ``lr`` or ``training__clip``, exists."""
    own = estimator.get_params(deep=False)
    first, _, rest = name.partition("__")
    return first in own and (not rest or (first == "training" and rest in _LOOP))


def current(estimator: Any, name: str) -> Any:
    """Return the value of a setting as it is now."""
    first, _, rest = name.partition("__")
    if not rest:
        return getattr(estimator, first)
    usual = getattr(estimator, "usual_training", Training(optimizer="sgd", validation=0))
    return getattr(estimator.training or usual, rest)
