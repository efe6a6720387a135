"""Which settings to try next, by Optuna's samplers or point by point.

The proposal of a number depends on the seed, the number and the trials before it, so a search that
was killed goes on as if it had not been.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from castalia.tune.space import Choice, Domain, Whole
from castalia.tune.trial_record import COMPLETE, PRUNED, Trial
from castalia.utils.imports import require

__all__ = ["Proposals"]

FEW = 8  # scored trials below which nothing can be said about what mattered


class Proposals:
    """Settings to try, number by number.

    Parameters
    ----------
    space
        Domains by parameter.
    sampler
        ``"tpe"``, ``"gp"``, ``"random"`` or ``"grid"``.
    seed
        Seed of all proposals.
    metric
        What is maximised.
    owner
        Who asks, for messages.
    """

    def __init__(
        self, space: Mapping[str, Domain], *, sampler: str, seed: int, metric: str, owner: str
    ) -> None:
        self.owner = owner
        self.space, self.kind, self.seed, self.metric = dict(space), sampler, seed, metric
        self.domains = {name: self._distribution(domain) for name, domain in space.items()}

    @property
    def optuna(self) -> Any:
        """Optuna's module, which cannot be pickled with the rest."""
        return require("optuna", caller=self.owner, extra="tune")

    @property
    def learns(self) -> bool:
        """Whether a proposal depends on what came of earlier ones."""
        return self.kind in ("tpe", "gp")

    def _distribution(self, domain: Domain) -> Any:
        kinds = self.optuna.distributions
        if isinstance(domain, Choice):  # by position: a database keeps no tuples
            return kinds.CategoricalDistribution(tuple(range(len(domain.values))))
        kind = kinds.IntDistribution if isinstance(domain, Whole) else kinds.FloatDistribution
        return kind(domain.low, domain.high, log=domain.log)

    def settings(self, trial: Trial) -> dict[str, Any]:
        """Return the parameters of a trial as the estimator wants them."""
        return {
            name: domain.values[trial.params[name]]
            if isinstance(domain, Choice)
            else trial.params[name]
            for name, domain in self.space.items()
        }

    def point(self, number: int, before: Sequence[Trial] = ()) -> dict[str, Any]:
        """Return the settings of a number."""
        if self.kind == "grid":
            sizes = [len(d.choices) for d in self.domains.values()]
            place = np.unravel_index(number, sizes)  # the last parameter moves first
            return dict(zip(self.domains, map(int, place), strict=True))
        drawn = np.random.SeedSequence([self.seed, number]).generate_state(1)
        with _quiet():
            study = self._study(before, self._sampler(int(drawn[0])))
            return dict(study.ask(self.domains).params)

    def _sampler(self, seed: int) -> Any:
        samplers = self.optuna.samplers
        if self.kind == "tpe":
            return samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        if self.kind == "gp":
            return samplers.GPSampler(seed=seed, deterministic_objective=False)
        return samplers.RandomSampler(seed=seed)

    def _study(self, trials: Sequence[Trial], sampler: Any = None) -> Any:
        """Return a study of Optuna, in memory, that has seen these trials."""
        study = self.optuna.create_study(direction="maximize", sampler=sampler)
        study.add_trials([self._frozen(trial) for trial in trials])
        return study

    def _frozen(self, trial: Trial) -> Any:
        scores = trial.scores(self.metric) if trial.ended else []
        return self.optuna.trial.create_trial(
            state=self.optuna.trial.TrialState[trial.state.upper()],
            params=trial.params,
            distributions=self.domains,
            value=float(np.mean(scores)) if trial.state == COMPLETE else None,
            intermediate_values={
                i: float(np.mean(scores[: i + 1]))
                for i in range(len(scores) if trial.state == PRUNED else 0)
            },
        )

    def importances(self, trials: Sequence[Trial]) -> dict[str, float]:
        """Return the share of each setting in the spread of the scores, the largest first."""
        scored = [t for t in trials if t.state == COMPLETE]
        moved = [n for n in self.space if len({t.params[n] for t in scored}) > 1]
        values = {t.mean(self.metric) for t in scored}
        if len(scored) < max(FEW, len(moved) + 2) or not moved or len(values) < 2:
            return {}
        judge = self.optuna.importance
        with _quiet():
            found = judge.get_param_importances(
                self._study(scored),
                params=moved,
                evaluator=judge.FanovaImportanceEvaluator(seed=self.seed % 2**31),
            )
        return {name: float(share) for name, share in found.items()}


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna's notes on every trial off the terminal."""
    logger = logging.getLogger("optuna")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="optuna")  # what is experimental there
            yield
    finally:
        logger.setLevel(level)
