"""Grid, random and Bayesian search with a memory: finished folds and trials are never repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from castalia.base import Interval, OneOf
from castalia.errors import InvalidParameter
from castalia.tune.engine import Search
from castalia.tune.search_space import SearchSpace
from castalia.tune.space import Choice

__all__ = ["BayesianSearch", "GridSearch", "RandomSearch"]

MOST = 50  # points of a grid that nobody asked for


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianSearch(Search):
    """Search guided by a model of the score: it tries where good settings are likely.

    Parameters
    ----------
    sampler
        The model: ``"tpe"``, densities of good and bad settings, or ``"gp"``, a Gaussian process
        with expected improvement.

    Attributes
    ----------
    best_params_ : dict
        The best settings.
    best_score_ : float
        Their mean score over the folds.
    best_estimator_ : estimator
        Fitted with them on all rows.
    cv_results_ : dict of arrays
        One entry a trial, named as in scikit-learn.
    pruned_ : int
        Trials that were given up.
    importances_ : dict of float
        The share of each setting in how much the scores differ (functional ANOVA), the largest
        first; empty with fewer than eight scored trials.

    Notes
    -----
    Needs the extra ``tune`` (Optuna). See ``Search`` for the shared parameters.

    References
    ----------
    2011, Bergstra, Bardenet, Bengio, Kégl, Algorithms for hyper-parameter optimization, NeurIPS.

    Examples
    --------
    >>> import numpy as np, castalia
    >>> from castalia.tune import Uniform
    >>> X = np.random.default_rng(0).normal(size=(60, 2)); y = (X.sum(axis=1) > 0).astype(int)
    >>> model = castalia.MLPClassifier(hidden=(4,), epochs=5, random_state=0)
    >>> search = BayesianSearch(estimator=model, space={"lr": Uniform(1e-3, 1e-1, log=True)},
    ...                         trials=3, cv=2, random_state=0).fit(X, y)
    >>> sorted(search.best_params_)
    ['lr']
    """

    sampler: Annotated[str, OneOf("tpe", "gp")] = "tpe"

    def _kind(self) -> str:
        return self.sampler


@dataclass(kw_only=True, eq=False, repr=False)
class RandomSearch(Search):
    """Settings drawn independently from the space; remembers like the others."""

    def _kind(self) -> str:
        return "random"


@dataclass(kw_only=True, eq=False, repr=False)
class GridSearch(Search):
    """Every combination of the choices in the space; remembers like the others.

    Without a space it takes ``SearchSpace.default(estimator).grid(trials)``, 50 points if
    ``trials`` is None.
    """

    trials: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    prune: Annotated[bool, OneOf(True, False)] = False

    def _kind(self) -> str:
        return "grid"

    def _space(self) -> SearchSpace:
        space = super()._space()
        return space.grid(self.trials or MOST) if self.space is None else space

    def _budget(self, space: Mapping[str, Any]) -> int:
        open_ended = [name for name, domain in space.items() if not isinstance(domain, Choice)]
        if open_ended:
            raise InvalidParameter(
                f"GridSearch: every domain must be a list of values; `{open_ended[0]}` is an "
                "interval. Use RandomSearch, or SearchSpace(space).grid(50)."
            )
        size = int(np.prod([len(domain.values) for domain in space.values()]))
        return size if self.trials is None else min(size, self.trials)
