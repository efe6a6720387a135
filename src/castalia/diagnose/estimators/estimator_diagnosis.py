"""The diagnosis of an estimator: a clone is fitted and watched."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from castalia.base import Estimator
from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.estimators.estimator_rules import judge_estimator
from castalia.diagnose.estimators.estimator_settings import check, rows_for_inner
from castalia.diagnose.estimators.prescription import prescribe
from castalia.diagnose.estimators.watcher import Watcher
from castalia.errors import CastaliaWarning, Diverged, InvalidData
from castalia.train import Training

__all__ = ["diagnose"]


def diagnose(
    estimator: Any,
    X: Any,
    y: Any = None,
    X_val: Any = None,
    y_val: Any = None,
    *,
    mute: Sequence[str] = (),
) -> Diagnosis:
    """Say what is wrong with the training of one of our estimators on some data.

    A clone is fitted with the same settings and watched; the estimator itself, fitted or not, stays
    as it is. Learning rates are proposed by a range test.

    Parameters
    ----------
    estimator
        An estimator trained by gradients, also as the last step of a scikit-learn ``Pipeline``.
    X, y
        Rows and targets to train on.
    X_val, y_val
        Rows and targets to validate on, rows alone where X has no targets; None holds some of X
        out, as the estimator does.
    mute
        Codes not wanted.

    Returns
    -------
    Diagnosis
        Its ``apply()`` gives the repaired estimator.

    Examples
    --------
    >>> import castalia
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> diagnosis = diagnose(castalia.MLPClassifier(lr=1e-6, epochs=40, random_state=0), X, y)
    >>> diagnosis.findings[0].name
    'learning-rate-too-low'
    >>> diagnosis.apply().fit(X, y).score(X, y) > 0.9
    True
    """
    model = check(estimator, "diagnose")
    one_alone = (X_val is None) != (y_val is None)
    if one_alone and (y is not None or y_val is not None):
        raise InvalidData("diagnose: `X_val` and `y_val` must be given together; got one of them.")
    X, y, X_val, y_val = rows_for_inner(estimator, X, y, X_val, y_val)
    held = None if X_val is None else (X_val, y_val)
    watcher = Watcher()
    error = _fit(watched(model, watcher, held), X, y)
    found = judge_estimator(watcher.record, model, mute)
    notes = (*found.notes, *([f"The training failed: {error}"] if error else []))
    return prescribe(replace(found, notes=notes), estimator, (X, y))


def watched(model: Any, watcher: Watcher, held: tuple[Any, Any] | None = None) -> Any:
    """Return a clone that trains as the model does, quietly, with the watcher beside it."""
    fresh = clone(model)
    if fresh.training is None:
        fresh.set_params(training__verbose=False)
    settings: Training = fresh.training
    fresh.training = replace(
        settings,
        callbacks=(*settings.callbacks, watcher),
        run=None,
        checkpoint_every=None,
        watch=False,
        verbose=False,
    )
    if held is not None and isinstance(fresh, Estimator):
        fresh.training.validation = held
    return fresh


def _fit(model: Any, X: Any, y: Any) -> Diverged | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CastaliaWarning)  # the diagnosis says it with numbers
        try:
            model.fit(X, y)
        except Diverged as error:
            return error
    return None
