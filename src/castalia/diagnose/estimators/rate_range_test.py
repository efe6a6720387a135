"""A range test of the learning rate on an estimator's own network, data and optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from castalia.diagnose.estimators.estimator_settings import current
from castalia.diagnose.thresholds import limit
from castalia.errors import CastaliaError
from castalia.optim import LRRangeTest, build_optimizer, lr_range_test
from castalia.train import Callback, Training, TrainState

__all__ = ["range_test"]

STEPS = 100
MOST_BATCHES = 50


class _Found(Exception):
    """Ends the fit in which the test took place."""


class _RangeTest(Callback):
    """Tests the rates at the first step, on the network as it begins."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self.result: LRRangeTest | None = None

    def on_batch_start(self, state: TrainState) -> None:
        stepper = state.stepper
        parts, phase = stepper.parts, stepper.parts.phases[0]
        batches = []
        for i in range(min(state.steps, MOST_BATCHES, stepper.batches)):
            stepper.upcoming = i
            batches.append(stepper.next_batch())
        optimizer = build_optimizer(
            self.optimizer,
            phase.parameters,
            lr=1e-7,
            weight_decay=parts.training.weight_decay,
        )
        self.result = lr_range_test(
            state.net,
            lambda net, batch: parts.objective.terms(net, batch, phase.name)["loss"],
            batches,
            steps=STEPS,
            optimizer=optimizer,
        )
        raise _Found


def range_test(estimator: Any, rows: Sequence[Any], **changes: Any) -> LRRangeTest | None:
    """Return what a range test of an estimator saw; None where none can be made."""
    model = clone(estimator).set_params(**changes)
    test = _RangeTest(current(model, "training__optimizer"))
    if model.training is None:
        model.set_params(training__verbose=False)
    settings: Training = model.training
    model.training = replace(
        settings, callbacks=(test,), run=None, checkpoint_every=None, watch=False, verbose=False
    )
    with suppress(_Found, CastaliaError):
        model.fit(*rows)
    return test.result if test.result is not None and _fell(test.result) else None


def _fell(test: LRRangeTest) -> bool:
    """Whether any rate helped: where none did, the test says nothing."""
    return min(test.smoothed) < limit("estimator.rate_helped") * test.smoothed[0]
