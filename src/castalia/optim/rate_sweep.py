"""Growing rates inside the fit of an estimator: an optimizer that counts the steps and ends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

import torch
from sklearn.base import clone
from torch.optim import Optimizer

from castalia.errors import InvalidParameter
from castalia.optim.build import build_optimizer

__all__ = ["sweep_estimator"]

PLAIN: dict[str, Any] = {  # what a fit of some steps does not need, or would be disturbed by
    "schedule": None, "weight_decay": 0.0, "accumulate": 1, "average": None, "patience": None,
    "run": None, "checkpoint_every": None, "watch": False, "verbose": False, "callbacks": (),
    "step": "auto", "compile": "auto", "strategy": "single",
}  # fmt: skip


class _Swept(Exception):
    """Ends the fit."""


class _Sweep(Optimizer):
    """Steps of another optimizer at the rates of a list, one after the other."""

    closure: ClassVar[str] = "gradients"
    finds_length: ClassVar[bool] = False

    def __init__(
        self, inner: Optimizer, rates: Sequence[float], enough: Callable[[list[float]], bool]
    ) -> None:
        super().__init__([p for group in inner.param_groups for p in group["params"]], {"lr": 1.0})
        self.inner, self.rates, self.enough = inner, rates, enough
        self.losses: list[float] = []

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Take a step at the next rate, and note the loss before it."""
        seen: list[float] = []

        def noted() -> Any:
            loss = closure()
            seen.append(float(loss))
            return loss

        rate = self.rates[len(self.losses)]
        for group in self.inner.param_groups:
            group["lr"] = rate * group.get("lr_scale", 1.0)
        self.inner.step(noted)
        self.losses.append(seen[0])
        if len(self.losses) == len(self.rates) or self.enough(self.losses):
            raise _Swept
        return torch.tensor(seen[0])


def sweep_estimator(
    estimator: Any,
    data: Sequence[Any],
    rates: Sequence[float],
    optimizer: Any,
    enough: Callable[[list[float]], bool],
) -> list[float]:
    """Fit a copy of an estimator at growing rates and return the loss before each step.

    Parameters
    ----------
    estimator
        What is copied; it is left as it is.
    data
        What ``fit`` takes.
    rates
        One for each step.
    optimizer
        As in ``Training``; None: the estimator's own.
    enough
        Whether the losses so far say all there is to say.
    """
    model = clone(estimator)
    if not {"training", "epochs"} <= set(model.get_params(deep=False)):
        raise InvalidParameter(
            "lr_range_test: `estimator` must be one that is trained by gradients; got "
            f"{type(estimator).__name__}, which has no `training`."
        )
    if model.training is None:
        model.set_params(training__verbose=False)
    settings = model.training
    kind = settings.optimizer if optimizer is None else optimizer
    made: list[_Sweep] = []

    def sweep(parameters: Any, lr: float) -> Optimizer:
        groups: list[dict[str, Any]] = [
            g if isinstance(g, dict) else {"params": [g]} for g in parameters
        ]
        scales = [(p, g.get("lr_scale", 1.0)) for g in groups for p in g["params"]]
        inner = build_optimizer(
            kind,
            [p for p, _ in scales],
            lr=rates[0],
            lr_scale=[scale for _, scale in scales],
            weight_decay=settings.weight_decay,
        )
        _refuse(inner)
        made.append(_Sweep(inner, rates, enough))
        return made[0]

    precision = "auto" if settings.precision == "bf16" else settings.precision
    model.training = replace(settings, optimizer=sweep, precision=precision, **PLAIN)
    model.set_params(epochs=len(rates))
    with suppress(_Swept):
        model.fit(*data)
    return made[0].losses


def _refuse(optimizer: Optimizer) -> None:
    kind = type(optimizer)
    if getattr(kind, "finds_length", False) or getattr(kind, "closure", None) not in (
        None,
        "gradients",
    ):
        raise InvalidParameter(
            "lr_range_test: `optimizer` must be one whose steps the rate scales; got "
            f"{kind.__name__}, which finds their length itself."
        )
