"""Search spaces: what each setting may be.

A space is a dict from parameter to ``Uniform``, ``Whole`` or ``Choice``. A list stands for a
choice, and scipy's ``uniform``, ``loguniform`` and ``randint`` for what they say, so that a space
written for scikit-learn's searches will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean

__all__ = ["Choice", "Uniform", "Whole", "default_space", "grid_of", "read_space"]


@dataclass(frozen=True)
class Uniform:
    """Numbers between two bounds; with ``log`` every order of magnitude is as likely."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Whole:
    """Whole numbers between two bounds, both included."""

    low: int
    high: int
    log: bool = False


@dataclass(frozen=True)
class Choice:
    """One of some values, of any kind."""

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)


Domain = Uniform | Whole | Choice

# One parameter name everywhere, so one domain a name.
DOMAINS: dict[str, Domain] = {
    "lr": Uniform(1e-4, 3e-2, log=True),
    "batch_size": Choice(32, 64, 128, 256),
    "hidden": Choice((32,), (64,), (128,), (64, 64), (128, 128), (256, 256), (128, 128, 128)),
    "dropout": Uniform(0.0, 0.5),
    "activation": Choice("relu", "tanh", "gelu"),
    "alpha": Uniform(1e-6, 1e2, log=True),
    "C": Uniform(1e-3, 1e3, log=True),
    "degree": Choice(1, 2, 3, 4, 5),
    "prior": Uniform(1e-3, 1e3, log=True),
    "training__weight_decay": Uniform(1e-7, 1e-2, log=True),
}

# Of systems whose parameters of these names mean something else, or that have others.
OWN: dict[str, dict[str, Domain]] = {
    "GradientBoost": {
        "lr": Uniform(0.02, 0.5, log=True),
        "members": Choice(50, 100, 200, 400),
    },
    "AdaBoost": {"members": Choice(25, 50, 100, 200)},
    "Adaline": {"epochs": Choice(5, 20, 50, 100), "shuffle": Choice(True, False)},
    "Perceptron": {"epochs": Choice(5, 20, 100, 1000), "shuffle": Choice(True, False)},
    "Bridge": {"alpha": DOMAINS["alpha"], "q": Choice(1.0, 1.25, 1.5, 2.0)},
    "RandomFeatureRegression": {
        "n_frequencies": Choice(50, 100, 200, 400),
        "length_scale": Uniform(0.3, 30.0, log=True),
        "alpha": Uniform(1e-6, 10.0, log=True),
    },
}

LOOP_SOLVERS = ("sgd", "gd")  # of models that have a direct solver too
LOOP_ONLY = {"lr", "batch_size", "training"}  # which the direct solver does not look at


def default_space(estimator: Any) -> dict[str, Domain]:
    """Return a sensible space for an estimator: of its own parameters, those worth searching.

    Settings of the training loop are left out for a model that is to be solved directly; one that
    wraps another is searched by the settings of that one.

    Parameters
    ----------
    estimator
        An estimator of the catalogue.

    Examples
    --------
    >>> import castalia
    >>> list(default_space(castalia.MLPClassifier()))
    ['lr', 'batch_size', 'hidden', 'dropout', 'activation', 'training__weight_decay']
    """
    own = set(estimator.get_params(deep=False))
    inner = getattr(estimator, "estimator", None)
    if type(estimator).__name__ in OWN:
        return dict(OWN[type(estimator).__name__])
    if inner is not None and hasattr(inner, "get_params"):
        return {f"estimator__{name}": domain for name, domain in default_space(inner).items()}
    if getattr(estimator, "solver", "sgd") not in LOOP_SOLVERS:
        own -= LOOP_ONLY
    return {name: domain for name, domain in DOMAINS.items() if name.split("__")[0] in own}


def grid_of(space: Mapping[str, Domain], most: int, points: int = 4) -> dict[str, Choice]:
    """Return a grid of at most so many settings: the first parameters of a space that fit in.

    Intervals are cut into a few values, evenly, or by even factors on a log scale.

    Parameters
    ----------
    space
        Domains by parameter, the most important first.
    most
        Most settings the grid may have.
    points
        Values of an interval.

    Examples
    --------
    >>> grid_of({"lr": Uniform(1e-3, 1e-1, log=True), "hidden": Choice(8, 16)}, 6, points=3)
    {'lr': Choice(values=(0.001, 0.01, 0.1)), 'hidden': Choice(values=(8, 16))}
    """
    found: dict[str, Choice] = {}
    size = 1
    for name, domain in space.items():
        values = _points(domain, points)
        values = values if found else values[: max(most, 1)]
        if size * len(values) <= most:
            found[name], size = Choice(*values), size * len(values)
    return found


def _points(domain: Domain, points: int) -> tuple[Any, ...]:
    if isinstance(domain, Choice):
        return domain.values
    spaced = (np.geomspace if domain.log else np.linspace)(domain.low, domain.high, points)
    if isinstance(domain, Whole):
        return tuple(dict.fromkeys(int(v) for v in spaced.round()))
    return tuple(float(f"{v:.6g}") for v in spaced)


def read_space(space: Mapping[str, Any] | None, estimator: Any, owner: str) -> dict[str, Domain]:
    """Return a user's space as domains, checked against the estimator's parameters."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise InvalidParameter(
            f"{owner}: `estimator` must be an estimator with `fit` and `get_params`; got "
            f"{estimator!r}."
        )
    if space is None and not (space := default_space(estimator)):
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
        part = known.get(name.split("__")[0])
        late = "__" in name and name.split("__")[0] in known and not hasattr(part, "get_params")
        if name not in known and not late:
            raise InvalidParameter(
                f"{owner}: `space` must name parameters of {type(estimator).__name__}; got "
                f"`{name}`.{did_you_mean(name, known)}"
            )
    return {name: _domain(owner, name, given) for name, given in space.items()}


def _domain(owner: str, name: str, given: Any) -> Domain:
    if isinstance(given, Uniform | Whole | Choice):
        domain: Domain = given
    elif isinstance(given, np.ndarray):
        domain = Choice(*given.tolist())
    elif isinstance(given, Sequence) and not isinstance(given, str):
        domain = Choice(*given)
    else:
        domain = _from_scipy(owner, name, given)
    _check(owner, name, domain)
    return domain


def _from_scipy(owner: str, name: str, given: Any) -> Domain:
    kind = getattr(getattr(given, "dist", None), "name", None)
    if kind in ("uniform", "loguniform", "reciprocal"):
        low, high = given.support()
        return Uniform(float(low), float(high), log=kind != "uniform")
    if kind == "randint":
        low, high = given.support()
        return Whole(int(low), int(high))
    raise InvalidParameter(
        f"{owner}: the domain of `{name}` must be Uniform, Whole, Choice, a list of values, or "
        f"scipy's uniform, loguniform or randint; got {given!r}."
    )


def _check(owner: str, name: str, domain: Domain) -> None:
    if isinstance(domain, Choice):
        if not domain.values:
            raise InvalidParameter(f"{owner}: the choice for `{name}` must hold a value or more.")
        return
    if not domain.low < domain.high:
        raise InvalidParameter(
            f"{owner}: the bounds of `{name}` must ascend; got {domain.low} and {domain.high}."
        )
    if domain.log and domain.low <= 0:
        raise InvalidParameter(
            f"{owner}: the lower bound of `{name}` must be above 0 on a log scale; got "
            f"{domain.low}."
        )
