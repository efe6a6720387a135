"""Search spaces: what each setting of an estimator may be, and a default for every estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import clone

from castalia.base import check_parameters
from castalia.errors import InvalidParameter
from castalia.tune.space import Choice, Domain, Uniform, Whole, as_domain, points_of
from castalia.utils.text import did_you_mean

__all__ = ["SearchSpace", "read_space"]

# One parameter name everywhere, so one domain a name, or a second where the first does not fit.
DOMAINS: dict[str, tuple[Domain, ...]] = {
    "lr": (Uniform(1e-4, 3e-2, log=True),),
    "batch_size": (Choice(32, 64, 128, 256),),
    "hidden": (
        Choice((32,), (64,), (128,), (64, 64), (128, 128), (256, 256), (128, 128, 128)),
        Choice(64, 128, 256, 512),
    ),
    "dropout": (Uniform(0.0, 0.5),),
    "activation": (Choice("relu", "tanh", "gelu"),),
    "alpha": (Uniform(1e-6, 1e2, log=True),),
    "C": (Uniform(1e-3, 1e3, log=True),),
    "degree": (Choice(1, 2, 3, 4, 5),),
    "prior": (Uniform(1e-3, 1e3, log=True),),
    "training__weight_decay": (Uniform(1e-7, 1e-2, log=True),),
}
MEMBERS = Choice(5, 10, 20, 40)
FREQUENCIES: dict[str, Domain] = {
    "n_frequencies": Choice(50, 100, 200, 400),
    "length_scale": Uniform(0.3, 30.0, log=True),
}

RESERVOIR: dict[str, Domain] = {
    "units": Choice(100, 200, 400, 800),
    "spectral_radius": Uniform(0.1, 1.0),
    "input_scale": Uniform(0.01, 10.0, log=True),
    "leak": Uniform(0.05, 1.0, log=True),
    "alpha": Uniform(1e-10, 1.0, log=True),
}

# Of systems whose parameters of these names mean something else, or that have others.
OWN: dict[str, dict[str, Domain]] = {
    "AdaBoost": {"members": Choice(25, 50, 100, 200)},
    "Adaline": {"epochs": Choice(5, 20, 50, 100), "shuffle": Choice(True, False)},
    "AdaptiveFilter": {"lr": Uniform(1e-3, 1.0, log=True), "taps": Choice(4, 8, 16, 32, 64)},
    "Bridge": {"alpha": DOMAINS["alpha"][0], "q": Choice(1.0, 1.25, 1.5, 2.0)},
    "DriftDetector": {"method": Choice("columns", "mmd", "classifier")},
    "EchoStateClassifier": RESERVOIR,
    "EchoStateNetwork": RESERVOIR,
    "GaussianMixture": {
        "n_components": Whole(1, 16),
        "covariance_type": Choice("full", "tied", "diag", "spherical"),
    },
    "GaussianProcessClassifier": {"restarts": Choice(0, 2, 4)},
    "GaussianProcessRegressor": {"restarts": Choice(0, 4, 8), "normalize_y": Choice(True, False)},
    "GradientBoost": {"lr": Uniform(0.02, 0.5, log=True), "members": Choice(50, 100, 200, 400)},
    "HiddenMarkovModel": {"states": Whole(1, 16), "covariance": Choice("diag", "full")},
    "KMeans": {"n_clusters": Whole(2, 32, log=True)},
    "KalmanFilter": {"state": Whole(1, 12)},
    "LinearDynamicalSystem": {"state": Whole(1, 20), "alpha": Uniform(1e-10, 1e-2, log=True)},
    "LinearRegression": {"fit_intercept": Choice(True, False)},
    "LiquidStateMachine": {
        "units": Choice(50, 100, 200, 400),
        "strength": Uniform(0.1, 10.0, log=True),
        "alpha": DOMAINS["alpha"][0],
    },
    "NGramLanguageModel": {
        "order": Choice(1, 2, 3, 4, 5),
        "smoothing": Choice("kneser-ney", "linear", "katz", "additive"),
    },
    "NaiveForecaster": {"method": Choice("seasonal", "last", "drift")},
    "PCA": {"components": Choice(1, 2, 4, 8, 16), "whiten": Choice(True, False)},
    "Perceptron": {"epochs": Choice(5, 20, 100, 1000), "shuffle": Choice(True, False)},
    "QLearning": {"explore": Uniform(0.05, 0.5), "discount": Uniform(0.9, 1.0)},
    "RandomFeatureRegression": {**FREQUENCIES, "alpha": Uniform(1e-6, 10.0, log=True)},
    "RandomFourierFeatures": FREQUENCIES,
    "SparseGaussianProcess": {"inducing": Choice(50, 100, 200, 400)},
    "StyleTransfer": {"style_weight": Uniform(1e2, 1e6, log=True)},
    "TDLearning": {"lr": Uniform(1e-3, 0.5, log=True), "trace": Uniform(0.0, 1.0)},
}

# Of those around another estimator, while that one is not given.
AROUND: dict[str, Domain] = {
    "members": MEMBERS,
    "average": Choice("swa", "ema"),
    "pool": Choice("max", "mean"),
    "temperature": Uniform(0.1, 8.0, log=True),
    "share": Uniform(0.1, 0.9),
    "confidence": Uniform(0.6, 0.99),
    "factor": Uniform(1e-2, 1e2, log=True),
    "weights": Choice("uncertainty", "equal"),
    "query": Choice("margin", "entropy", "uncertainty"),
    "memory": Choice(20, 50, 100),
    "rounds": Choice(5, 10, 20),
    "local_epochs": Choice(1, 2, 5),
    "eps": Uniform(0.01, 0.5, log=True),
    "begin": Uniform(0.1, 1.0),
    "keep": Uniform(0.5, 1.0),
    "loss": Choice("ranknet", "lambdarank"),
    "folds": Choice(1, 3, 5),
    "block": Choice(1, 8, 32),
    "lr": DOMAINS["lr"][0],
    "inner_lr": Uniform(1e-2, 1.0, log=True),
    "dim": Choice(16, 32, 64),
}

LOOP_SOLVERS = ("sgd", "gd")  # of models that have a direct solver too
LOOP_ONLY = {"lr", "batch_size", "training", "hidden", "dropout"}  # the direct solver reads none
DIRECT_ONLY = {"WindowRegressor": {"alpha"}}  # which the loop does not read


class SearchSpace(dict[str, Domain]):
    """What each setting may be: a dict from parameter to ``Uniform``, ``Whole`` or ``Choice``.

    The searches take ``SearchSpace.default(estimator)`` where none is given.

    Parameters
    ----------
    domains
        From parameter to domain, the most important first; lists and distributions of scipy are
        read as in scikit-learn's searches.

    Examples
    --------
    >>> space = SearchSpace({"lr": Uniform(1e-3, 1e-1, log=True), "hidden": [8, 16]})
    >>> space["hidden"]
    Choice(values=(8, 16))
    >>> space.grid(6, points=3)["lr"]
    Choice(values=(0.001, 0.01, 0.1))
    """

    def __init__(self, domains: Mapping[str, Any] | None = None) -> None:
        given = {} if domains is None else domains
        super().__init__({n: as_domain("SearchSpace", n, domain) for n, domain in given.items()})

    @classmethod
    def default(cls, estimator: Any) -> SearchSpace:
        """Return the settings of an estimator that are worth searching, with their domains.

        Settings of the training loop are left out for a model that is to be solved directly; one
        that wraps another is searched by the settings of that one, and a pipeline by those of its
        steps, the last step's first.

        Examples
        --------
        >>> import castalia
        >>> list(SearchSpace.default(castalia.MLPClassifier()))
        ['lr', 'batch_size', 'hidden', 'dropout', 'activation', 'training__weight_decay']
        """
        own = set(estimator.get_params(deep=False))
        if type(estimator).__name__ in OWN:
            return cls(OWN[type(estimator).__name__])
        if isinstance(getattr(estimator, "steps", None), list):
            return cls(_of_steps(estimator.steps))
        if "estimator" in own:
            inner = estimator.estimator
            if hasattr(inner, "get_params"):
                return cls({f"estimator__{n}": d for n, d in cls.default(inner).items()})
            around = {n: domain for n, domain in AROUND.items() if n in own}
            return cls(around or {"estimator__lr": DOMAINS["lr"][0]})
        if getattr(estimator, "solver", "sgd") not in LOOP_SOLVERS:
            own -= LOOP_ONLY
        else:
            own -= DIRECT_ONLY.get(type(estimator).__name__, set())
        names = [name for name in DOMAINS if name.split("__")[0] in own]
        found = {name: _fitting(estimator, name) for name in names}
        return cls({name: domain for name, domain in found.items() if domain is not None})

    def grid(self, most: int, points: int = 4) -> SearchSpace:
        """Return a grid of at most so many settings: the first parameters that fit in.

        Intervals are cut into a few values, evenly, or by even factors on a log scale.
        """
        found: dict[str, Choice] = {}
        size = 1
        for name, domain in self.items():
            values = points_of(domain, points)
            values = values if found else values[: max(most, 1)]
            if size * len(values) <= most:
                found[name], size = Choice(*values), size * len(values)
        return SearchSpace(found)


def _of_steps(steps: Sequence[tuple[str, Any]]) -> dict[str, Domain]:
    return {
        f"{name}__{setting}": domain
        for name, step in reversed(steps)
        if hasattr(step, "get_params")
        for setting, domain in SearchSpace.default(step).items()
    }


def _fitting(estimator: Any, name: str) -> Domain | None:
    """Return the first domain of a name whose values the estimator takes."""
    if "__" in name:
        return DOMAINS[name][0]
    for domain in DOMAINS[name]:
        try:
            for value in points_of(domain, 2):
                _check_values(clone(estimator).set_params(**{name: value}))
        except ValueError:
            continue
        return domain
    return None


def _check_values(estimator: Any) -> None:
    """Check parameters as the estimator does: by our constraints, or by scikit-learn's."""
    check_parameters(estimator)
    if hasattr(estimator, "_parameter_constraints"):
        estimator._validate_params()


def read_space(space: Mapping[str, Any] | None, estimator: Any, owner: str) -> SearchSpace:
    """Return a user's space, or the default one, checked against the estimator's parameters."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise InvalidParameter(
            f"{owner}: `estimator` must be an estimator with `fit` and `get_params`; got "
            f"{estimator!r}."
        )
    if space is None and not (space := SearchSpace.default(estimator)):
        raise InvalidParameter(
            f"{owner}: `space` must be given for {type(estimator).__name__}, which has no default "
            "space; got None."
        )
    if not isinstance(space, Mapping) or not space:
        raise InvalidParameter(
            f"{owner}: `space` must be a dict from parameter to domain, with one entry or more; "
            f"got {space!r}."
        )
    known = estimator.get_params(deep=True)
    for name in space:
        if name not in known and not _is_made_later(name, known):
            raise InvalidParameter(
                f"{owner}: `space` must name parameters of {type(estimator).__name__}; got "
                f"`{name}`.{did_you_mean(name, known)}"
            )
    return SearchSpace({name: as_domain(owner, name, given) for name, given in space.items()})


def _is_made_later(name: str, known: Mapping[str, Any]) -> bool:
    """Say whether a setting belongs to a part that is None so far, such as ``training__clip``."""
    parts = name.split("__")
    outer = ["__".join(parts[:i]) for i in range(1, len(parts))]
    return any(part in known and not hasattr(known[part], "get_params") for part in outer)
