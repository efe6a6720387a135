"""What one wants searched, and what a search leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from castalia.errors import InvalidParameter
from castalia.method.fit_plan import FitPlan
from castalia.method.fit_result import FitResult
from castalia.method.model_settings import parse_value
from castalia.tune import BayesianSearch, Choice, GridSearch, RandomSearch, Uniform, Whole
from castalia.utils.text import did_you_mean, listing

__all__ = ["SEARCHES", "TunePlan", "TuneResult", "parse_space", "settings_words", "short_name"]

SEARCHES: dict[str, type] = {
    "bayesian": BayesianSearch,
    "random": RandomSearch,
    "grid": GridSearch,
}


@dataclass(frozen=True, kw_only=True)
class TunePlan:
    """Settings of a search: what the command line takes, by the same names.

    Parameters
    ----------
    fit
        The table, the model and the settings that stay fixed; ``fit.cv`` must be None.
    search
        ``"bayesian"``, ``"random"`` or ``"grid"``.
    trials
        Settings to try, those of earlier sittings included.
    seconds
        Time of one sitting, after which no further trial is begun.
    folds
        Folds of the training rows that judge each setting.
    space
        Domains by setting; empty: those worth searching of this model.

    Examples
    --------
    >>> TunePlan(fit=FitPlan(data="penguins.csv", target="species"), trials=5).trials
    5
    """

    fit: FitPlan
    search: str = "bayesian"
    trials: int = 20
    seconds: float | None = None
    folds: int = 3
    space: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.search not in SEARCHES:
            raise InvalidParameter(
                f"tune: `search` must be {listing(SEARCHES)}; got "
                f"{self.search!r}.{did_you_mean(self.search, SEARCHES)}"
            )
        for name, least in (("trials", 1), ("folds", 2)):
            if getattr(self, name) < least:
                raise InvalidParameter(
                    f"tune: `{name}` must be a whole number of at least {least}; got "
                    f"{getattr(self, name)!r}."
                )
        if self.seconds is not None and not self.seconds > 0:
            raise InvalidParameter(f"tune: `seconds` must be above 0; got {self.seconds!r}.")
        if self.fit.cv is not None:
            raise InvalidParameter(
                "tune: `cv` of the fit must be None; `folds` judge the settings."
            )


@dataclass
class TuneResult:
    """A finished search.

    Attributes
    ----------
    fit
        The fit of the best settings: model, report, verdict.
    best
        Those settings.
    score
        Their score on the training rows' own folds.
    metric
        What was scored.
    trials
        The best trials, best first: ``rank``, ``score``, ``spread`` and ``params``.
    counts
        How many trials were ``complete``, ``pruned`` (given up) and ``fail``.
    importances
        Share of each setting in how much the scores differ, the largest first.
    """

    fit: FitResult
    best: dict[str, Any]
    score: float
    metric: str
    trials: list[dict[str, Any]]
    counts: dict[str, int]
    importances: dict[str, float]


def parse_space(words: Iterable[str]) -> dict[str, Any]:
    """Turn words into domains: ``lr=1e-4..1e-1`` is a range, ``hidden=32|64,64`` a choice.

    A range of positive numbers that spans a factor of ten or more is searched on a log scale.

    Examples
    --------
    >>> parse_space(["lr=1e-4..1e-1", "hidden=32|64,64"])
    {'lr': Uniform(low=0.0001, high=0.1, log=True), 'hidden': Choice(values=(32, (64, 64)))}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise InvalidParameter(
                f"tune: `--try` must be NAME=LOW..HIGH or NAME=VALUE|VALUE|…; got {word!r}."
            )
        found[name.strip()] = _domain(word, value.strip())
    return found


def _domain(word: str, text: str) -> Any:
    if ".." not in text:
        return Choice(*(parse_value(part.strip()) for part in text.split("|")))
    low, high = (parse_value(part.strip()) for part in text.split("..", 1))
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (low, high))
    if not numbers or not low < high:
        raise InvalidParameter(f"tune: a range of `--try` must be LOW..HIGH; got {word!r}.")
    kind = Whole if isinstance(low, int) and isinstance(high, int) else Uniform
    return kind(low, high, log=low > 0 and high >= 10 * low)


def settings_words(params: Mapping[str, Any]) -> str:
    """Write settings as one would type them.

    >>> settings_words({"lr": 0.00123456, "hidden": (64, 64)})
    'lr=0.00123 hidden=64,64'
    """
    return " ".join(f"{short_name(name)}={_written(value)}" for name, value in params.items())


def short_name(name: str) -> str:
    """Return the name of a setting without the way to it."""
    return name.removeprefix("estimator__").removeprefix("training__")


def _written(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
