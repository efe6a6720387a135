"""Four quick checks before a training that takes long.

A network that starts with the wrong loss, cannot memorise two dozen rows, does not use its
input or scores above chance on shuffled labels has a fault that no amount of training mends.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.base import clone, is_classifier

from castalia.base.input_checks import take_rows
from castalia.data import Dataset
from castalia.data.images import Images
from castalia.data.row_splits import holdout
from castalia.data.sequences import Sequences, SeriesWindows
from castalia.diagnose.thresholds import limit
from castalia.errors import CastaliaWarning
from castalia.objectives import SquaredError
from castalia.train import Callback
from castalia.train.state import TrainState
from castalia.utils.text import number

__all__ = ["CHECKS", "Check", "preflight"]

BATCH = 64  # rows, where the model's own number follows the data
MOST_ROWS = 2000
MOST_IMAGES = 256
TINY_ROWS = 24
TINY_STEPS = 300
SHORT_STEPS = 200
TIME_IS_UP = "the time of the check is up"
CHECKS = ("initial-loss", "tiny-fit", "input-matters", "shuffled-labels")


@dataclass(frozen=True)
class Check:
    """What one check found.

    Attributes
    ----------
    name
        One of `CHECKS`.
    passed
        Whether the measurement is as expected.
    measured
        The number.
    expected
        The rule it is held against, in words.
    message
        What it means.
    """

    name: str
    passed: bool
    measured: float
    expected: str
    message: str


def preflight(estimator: Any, X: Any, y: Any, seconds: float = 10.0) -> list[Check]:
    """Check a network and its data before training, on clones and on at most 2,000 rows.

    Parameters
    ----------
    estimator
        A classifier, regressor or forecaster trained by gradients; it is left as it is.
    X
        Rows: an array, a frame, a ``Dataset``, ``Images``, sequences, or windows of series.
    y
        Their targets; those of windows are the steps that follow them, whatever is given.
    seconds
        Time to spend; each check stops its training after a quarter of it.

    Returns
    -------
    list of Check
        In the order of `CHECKS`, without those whose time was up before they could tell.

    Examples
    --------
    >>> import castalia
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> [check.passed for check in preflight(castalia.MLPClassifier(), X, X[:, 0] > 0)]
    [True, True, True, True]
    """
    series = isinstance(X, SeriesWindows)
    wanted = X.future() if series else np.asarray(y)
    trial = (_WindowTrial if series else _Trial)(estimator, X, wanted, seconds / len(CHECKS))
    steps: tuple[Callable[[_Trial], Check | None], ...] = (
        _initial_loss,
        _tiny_fit,
        _input_matters,
        _shuffled_labels,
    )
    with _quiet():
        found = [step(trial) for step in steps]
    return [check for check in found if check is not None]


class _Trial:
    """A sample of the data, and short trainings of clones on it."""

    def __init__(self, estimator: Any, X: Any, y: np.ndarray, seconds: float) -> None:
        self.estimator, self.seconds = estimator, seconds
        self.classes = bool(is_classifier(estimator))
        images = isinstance(X, Images)
        most = MOST_IMAGES if images else MOST_ROWS
        index = _sample(y if self.classes else None, len(y), most)
        self.X, self.y = take_rows(X, index), y[index]
        self.whole = None if images else len(index)  # maps of all images fill the memory
        kept, held = holdout(
            len(index), 0.3, seed=0, labels=self.y if self.classes and y.ndim == 1 else None
        )
        self.kept, self.held = kept, held

    def fit(
        self, X: Any, y: np.ndarray, steps: int, batch_size: int | None = None, **params: Any
    ) -> Any:
        """Train a clone for some steps, on all rows and without a run folder."""
        model = clone(self.estimator)
        settings = model.training if model.training is not None else model.usual_training
        size = batch_size or min(model.batch_size or BATCH, len(y))  # None: by the rows
        training = replace(
            settings,
            validation=0,
            patience=None,
            average=None,
            run=None,
            checkpoint_every=None,
            verbose=False,
            callbacks=(_Deadline(self.seconds),),
            **params.pop("training", {}),
        )
        epochs = max(1, steps // -(-len(y) // size))
        model.set_params(epochs=epochs, batch_size=size, training=training, random_state=0)
        return model.set_params(**params).fit(X, y)

    def losses(self, model: Any, X: Any, y: np.ndarray) -> np.ndarray:
        """Return the loss of each row: -log p of its class, or the squared error."""
        if not self.classes:
            return np.square(model.predict(X) - y).reshape(len(y), -1).mean(axis=1)
        if y.ndim == 2:
            p = np.where(y == 1, model.predict_proba(X), 1 - model.predict_proba(X))
            return -np.log(np.maximum(p, 1e-12)).mean(axis=1)
        column = np.searchsorted(model.classes_, y)
        return -np.log(np.maximum(model.predict_proba(X)[np.arange(len(y)), column], 1e-12))

    def score(self, model: Any, X: Any, y: np.ndarray) -> float:
        """Return accuracy or R²."""
        return float(model.score(X, y))


class _WindowTrial(_Trial):
    """Windows of series: y are the steps that follow each, (N, H, C)."""

    def fit(
        self, X: Any, y: np.ndarray, steps: int, batch_size: int | None = None, **params: Any
    ) -> Any:
        """Train a clone on windows that are followed by y."""
        whole = Sequences(list(np.concatenate([X.past(), y], axis=1)), channels=X.series.channels)
        place = np.arange(len(y))
        windows = SeriesWindows(whole, place, 0 * place, X.context, X.horizon)
        return super().fit(windows, y, steps, batch_size, **params)

    def losses(self, model: Any, X: Any, y: np.ndarray) -> np.ndarray:
        """Return the squared error of each forecast, channels on one scale."""
        adapter = model.adapter_
        gap = model.predict_windows(X) - y[..., adapter.targets]
        return np.square(gap / adapter.deviation[adapter.targets]).mean(axis=(1, 2))

    def score(self, model: Any, X: Any, y: np.ndarray) -> float:
        """Return R² over all steps and channels."""
        adapter = model.adapter_
        spread = (y - y.mean(axis=(0, 1)))[..., adapter.targets]
        usual = np.square(spread / adapter.deviation[adapter.targets]).mean()
        return float(1 - self.losses(model, X, y).mean() / max(usual, 1e-300))


def _initial_loss(trial: _Trial) -> Check:
    # At this rate nothing moves, so the mean over the epoch is the loss of the untrained network.
    model = trial.fit(trial.X, trial.y, 1, trial.whole, lr=1e-12)
    loss = float(model.history_[0]["loss"])
    expected, words = _expected_loss(model, trial)
    if expected is None:
        return Check("initial-loss", bool(np.isfinite(loss)), loss, "a finite number", f"{words}.")
    tolerance = limit("preflight.initial") * expected
    passed = abs(loss - expected) <= tolerance
    message = (
        f"An untrained network should lose {number(expected, 3)} ({words})"
        f"{'' if passed else '; check the scale of the inputs, the output layer and the loss'}."
    )
    return Check(
        "initial-loss", passed, loss, f"{number(expected, 3)} ± {number(tolerance, 3)}", message
    )


def _expected_loss(model: Any, trial: _Trial) -> tuple[float | None, str]:
    if trial.classes:
        if trial.y.ndim == 2:
            return float(np.log(2)), "log 2, a fair coin for each label"
        k = len(model.classes_)
        return float(np.log(k)), f"log {k}, an even guess among {k} classes"
    if isinstance(model._objective(model.spec_), SquaredError):
        return 1.0, "the variance of a standardised target"
    return None, "The loss of an untrained network should be a finite number"


def _tiny_fit(trial: _Trial) -> Check | None:
    index = _distinct(trial)
    X, y = take_rows(trial.X, index), trial.y[index]
    if len(np.unique(y)) < 2:
        message = "The rows cannot be distinguished by their columns."
        return Check("tiny-fit", False, 0.0, "rows that differ", message)
    plain = {"optimizer": "adam", "weight_decay": 0.0, "schedule": None, "clip": None}
    has = trial.estimator.get_params()
    extra = {name: v for name, v in (("dropout", 0.0), ("augment", None)) if name in has}
    model = trial.fit(X, y, TINY_STEPS, len(y), lr=1e-2, training=plain, **extra)
    score = trial.score(model, X, y)
    bar = limit("preflight.tiny")
    passed = score >= bar
    if not passed and model.stopped_ == TIME_IS_UP:
        return None
    what = "accuracy" if trial.classes else "R²"
    message = (
        f"The network can memorise {len(y)} rows."
        if passed
        else f"The network cannot memorise {len(y)} rows: it is too small, or gradients do "
        "not reach every layer."
    )
    return Check("tiny-fit", passed, score, f"{what} of at least {bar}", message)


def _input_matters(trial: _Trial) -> Check | None:
    model = trial.fit(trial.X, trial.y, SHORT_STEPS)
    order = np.random.default_rng(0).permutation(len(trial.y))
    honest = trial.losses(model, trial.X, trial.y)
    mixed = trial.losses(model, take_rows(trial.X, order), trial.y)
    ratio = float(mixed.mean() / max(honest.mean(), 1e-12))
    # A network that ignores its input has equal losses row by row; chance stays below 3 errors.
    gap = mixed - honest
    sure = float(gap.mean()) > 3 * float(gap.std()) / len(gap) ** 0.5
    bar = limit("preflight.mixed")
    passed = ratio > bar and sure
    if not passed and model.stopped_ == TIME_IS_UP:
        return None
    message = (
        f"With the rows of X mixed up the loss is {_times(ratio)} times as large."
        if passed
        else "Mixing up the rows of X hardly changes the loss: the inputs say little about "
        "the target, or do not "
        "reach the output."
    )
    return Check("input-matters", passed, ratio, f"above {bar} times the loss", message)


def _shuffled_labels(trial: _Trial) -> Check:
    order = np.random.default_rng(1).permutation(len(trial.y))
    y = trial.y[order]
    if trial.classes and len(np.unique(y[trial.kept])) < 2:
        y = trial.y  # too few rows to shuffle; keeps both classes in the training part
    model = trial.fit(take_rows(trial.X, trial.kept), y[trial.kept], SHORT_STEPS)
    held = y[trial.held]
    score = trial.score(model, take_rows(trial.X, trial.held), held)
    bar = _chance(held, trial.classes)
    passed = not score > bar
    what = "accuracy" if trial.classes else "R²"
    message = (
        "With shuffled labels the network does no better than chance."
        if passed
        else "With shuffled labels the network still beats chance: something leaks from "
        "training rows to test rows."
    )
    return Check("shuffled-labels", passed, score, f"{what} of at most {number(bar, 3)}", message)


def _chance(y: np.ndarray, classes: bool) -> float:
    """Return the score that guessing passes once in a thousand times."""
    n = max(len(y), 1)
    if not classes:
        return max(limit("preflight.chance"), 9.0 / n)
    if y.ndim == 2:
        return limit("chance.even") + 1.5 / n**0.5
    share = np.unique(y, return_counts=True)[1].max() / n
    return float(share + 3 * (share * (1 - share) / n) ** 0.5 + 1 / n)


def _sample(labels: np.ndarray | None, n: int, most: int) -> np.ndarray:
    """Return at most ``most`` row numbers, classes in proportion where there are some."""
    if n <= most:
        return np.arange(n)
    labels = labels if labels is not None and labels.ndim == 1 else None
    return holdout(n, most / n, seed=0, labels=labels)[1]


def _distinct(trial: _Trial) -> np.ndarray:
    """Return a few rows that differ in X, turn about from every class."""
    model = trial.fit(trial.X, trial.y, 1, trial.whole, lr=1e-12)
    different = np.sort(np.unique(_marks(model, trial.X), axis=0, return_index=True)[1])
    different = np.random.default_rng(0).permutation(different)
    if not trial.classes or trial.y.ndim == 2:
        return different[:TINY_ROWS]
    labels = trial.y[different]
    turn = np.zeros(len(labels))
    for label in np.unique(labels):
        turn[labels == label] = np.arange((labels == label).sum())
    return different[np.argsort(turn, kind="stable")][:TINY_ROWS]


def _marks(model: Any, X: Any) -> np.ndarray:
    """Return numbers that are the same for rows that are, (N, …)."""
    if isinstance(X, Sequences):
        return np.array([[crc32(repr(each.tolist()).encode())] for each in X])
    if isinstance(X, SeriesWindows):
        return X.past().reshape(len(X), -1)
    blocks = model.adapter_.blocks(_as_rows(X), np.float32)
    return np.concatenate([np.asarray(block).reshape(len(block), -1) for block in blocks])


def _as_rows(X: Any) -> Any:
    known = isinstance(X, Dataset | Images) or hasattr(X, "columns")
    return X if known else np.asarray(X)


class _Deadline(Callback):
    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def on_batch_end(self, state: TrainState) -> None:
        if time.monotonic() > self.end:
            state.stop(TIME_IS_UP)


@contextmanager
def _quiet() -> Any:
    """Silence remarks about the sample; those about the whole table come with the training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CastaliaWarning)
        yield


def _times(ratio: float) -> str:
    return number(ratio, 3) if ratio < 100 else "over 100"
