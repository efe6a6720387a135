"""From findings to settings of an estimator: remedies that ``apply`` can make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from castalia.base import Estimator
from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.estimators.estimator_settings import current, has_setting, watches_validation
from castalia.diagnose.estimators.rate_range_test import range_test
from castalia.diagnose.finding_record import Finding, Remedy
from castalia.diagnose.repair import INPUTS, TARGETS, inner
from castalia.utils.text import number

__all__ = ["prescribe"]

LONGER, LEAST_EPOCHS = 10, 100
PATIENCE = 20
WIDER = (128, 128)
NARROW = 8  # units of a layer that may all die at once
DEEP = 5  # hidden layers, with no way around them

Changes = dict[str, Any]


def prescribe(diagnosis: Diagnosis, estimator: Any, rows: Sequence[Any] | None = None) -> Diagnosis:
    """Return the diagnosis with remedies that are settings of this estimator.

    Parameters
    ----------
    diagnosis
        As the rules gave it.
    estimator
        The estimator it is about, perhaps inside a pipeline.
    rows
        ``(X, y)`` for the estimator itself: with them learning rates come from a range test.
    """
    dose = _Dose(inner(estimator), rows)
    findings = tuple(dose.cause(found) for found in diagnosis.findings)
    return replace(diagnosis, findings=findings, estimator=estimator)


class _Dose:
    """Works out the changes for one estimator."""

    def __init__(self, estimator: Any, rows: Sequence[Any] | None) -> None:
        self.estimator, self.rows = estimator, rows
        self.made: Changes = {}  # by the causes before this one
        self.rates: dict[str, float | None] = {}  # found by range tests, by what was changed

    def cause(self, found: Finding) -> Finding:
        """Return a cause with its changes; those of the next one come on top of them."""
        found = self.of(found)
        self.made = {**found.remedy.changes, **self.made}
        return found

    def of(self, found: Finding) -> Finding:
        """Return a finding, symptoms included, with its changes."""
        symptoms = tuple(self.of(symptom) for symptom in found.symptoms)
        wanted = {**found.remedy.changes, **self._own(found)}
        changes = {k: v for k, v in wanted.items() if self._possible(k, v)}
        remedy = Remedy(self._words(found.remedy.text, changes), changes)
        return replace(found, remedy=remedy, symptoms=symptoms)

    def _own(self, found: Finding) -> Changes:
        rule = RULES.get(found.code)
        own = {} if rule is None else rule(self, found.remedy.changes)
        if found.code == "CST111" and any(s.code == "CST402" for s in found.symptoms):
            own = {**self.bigger(), **own}  # time alone may not be enough
        return own

    def _possible(self, name: str, value: Any) -> bool:
        if name in (INPUTS, TARGETS):
            return True
        if value is None or (
            name == "training__patience" and not watches_validation(self.estimator)
        ):
            return False
        known = has_setting(self.estimator, name)
        return known and self._now(name) != value

    def _now(self, name: str) -> Any:
        return current(self.estimator, name)

    def _words(self, words: str, changes: Mapping[str, Any]) -> str:
        """Say the changes with the user's own values."""
        said = [
            f"standardise the {name}"
            if name in (INPUTS, TARGETS)
            else f"{name.removeprefix('training__')}={_short(self._now(name))} → {_short(value)}"
            for name, value in changes.items()
        ]
        return ", ".join(said) if said else words

    # ------------------------------------------------------------------ by kind of finding

    def rate(self, changes: Mapping[str, Any]) -> Changes:
        """Take the rate from a range test; without data, or where it failed, as was proposed.

        A test that goes the other way than the finding has failed.
        """
        if not has_setting(self.estimator, "lr"):
            return {}
        found, proposed, now = self._tested(), changes.get("lr"), self._now("lr")
        known = proposed is not None and isinstance(now, int | float)
        if found is None or (known and (found > now) != (proposed > now)):
            return {"lr": proposed}
        return {"lr": found}

    def _tested(self, **further: Any) -> float | None:
        """Return the rate of a range test after the changes made so far; each test made once."""
        if self.rows is None:
            return None
        settings = {k: v for k, v in self.made.items() if k not in (INPUTS, TARGETS, "lr")}
        changes = {**settings, **further}
        if str(changes) not in self.rates:
            test = range_test(self.estimator, self.rows, **changes)
            self.rates[str(changes)] = None if test is None else float(f"{test.suggestion:.2g}")
        return self.rates[str(changes)]

    def calm(self, changes: Mapping[str, Any]) -> Changes:
        """Clip, and lower the rate."""
        return {"training__clip": 1.0, **self.rate(changes)}

    def longer(self, changes: Mapping[str, Any]) -> Changes:
        """Train longer; where rows are held out, let them say when to stop."""
        epochs = max(LONGER * self.estimator.epochs, LEAST_EPOCHS)
        return {"epochs": epochs, "training__patience": self._now("training__patience") or PATIENCE}

    def unblock(self, changes: Mapping[str, Any]) -> Changes:
        """Let gradients through at a rate that suits, by a shorter way where it is long."""
        if not has_setting(self.estimator, "activation") or "activation" not in changes:
            return {}
        new = {"activation": changes["activation"]}
        hidden = self._now("hidden") if has_setting(self.estimator, "hidden") else ()
        if len(hidden) > DEEP:
            new["hidden"] = tuple(hidden[: len(hidden) // 2])
        return {**new, "lr": self._tested(**new)}

    def revive(self, changes: Mapping[str, Any]) -> Changes:
        """Let units pass something on below zero; where a layer has few, give it more."""
        hidden = self._now("hidden") if has_setting(self.estimator, "hidden") else ()
        return self.bigger() if hidden and min(hidden) < NARROW else {}

    def adaptive(self, changes: Mapping[str, Any]) -> Changes:
        """Use Adam, at a rate of its own."""
        default = 1e-3 if isinstance(self.estimator, Estimator) else 1e-2
        found = self._tested(training__optimizer="adam")
        return {"training__optimizer": "adam", "lr": found or default}

    def scale_inputs(self, changes: Mapping[str, Any]) -> Changes:
        """Standardise what the estimator does not standardise itself."""
        return {} if isinstance(self.estimator, Estimator) else {INPUTS: "standardise"}

    def scale_targets(self, changes: Mapping[str, Any]) -> Changes:
        """Standardise targets, likewise."""
        return {} if isinstance(self.estimator, Estimator) else {TARGETS: "standardise"}

    def weaker(self, changes: Mapping[str, Any]) -> Changes:
        """Regularise less: also a penalty that is a setting of the model."""
        if changes:
            return {}
        return {"C": 1.0, "alpha": 1e-4}

    def stronger(self, changes: Mapping[str, Any]) -> Changes:
        """Give more capacity, more time, and a rate that suits."""
        return {"epochs": 3 * self.estimator.epochs, **self.bigger(), **self.rate(changes)}

    def bigger(self) -> Changes:
        """Give more capacity."""
        bigger: Changes = {}
        if has_setting(self.estimator, "hidden") and _small(self.estimator.hidden):
            bigger["hidden"] = WIDER
        if has_setting(self.estimator, "activation") and self._now("activation") == "identity":
            bigger["activation"] = "relu"
        return bigger

    def _more(self, name: str, *doses: float) -> float | None:
        """Return the first dose above the present one; None where there is none."""
        if not has_setting(self.estimator, name):
            return None
        now = self._now(name) or 0.0
        return next((dose for dose in doses if dose > now), None)

    def restrain(self, changes: Mapping[str, Any]) -> Changes:
        """Drop and decay more than now; less decay where it is part of the gradient, as in Adam."""
        decay = 1e-2 if self._now("training__optimizer") == "adamw" else 1e-3
        own: Changes = {"training__weight_decay": self._more("training__weight_decay", decay)}
        if "dropout" in changes:
            own["dropout"] = self._more("dropout", changes["dropout"], 0.5)
        # It stops early already; or a few rare rows cannot say when to stop.
        if self._now("training__patience") is not None or "class_weight" in self.made:
            own["training__patience"] = None
        return own


RULES: dict[str, Callable[[_Dose, Mapping[str, Any]], Changes]] = {
    "CST101": _Dose.rate,
    "CST102": _Dose.rate,
    "CST103": _Dose.unblock,
    "CST104": _Dose.calm,
    "CST105": _Dose.calm,
    "CST106": _Dose.revive,
    "CST111": _Dose.longer,
    "CST114": _Dose.adaptive,
    "CST201": _Dose.scale_inputs,
    "CST202": _Dose.scale_targets,
    "CST401": _Dose.restrain,
    "CST402": _Dose.stronger,
    "CST404": _Dose.weaker,
}


def _small(hidden: Sequence[int]) -> bool:
    return not hidden or max(hidden) < WIDER[0]


def _short(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)
