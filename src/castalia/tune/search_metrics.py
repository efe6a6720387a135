"""What a search scores: one metric or several, and which of them it maximises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.metrics import get_scorer_names

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["read_metrics"]


def read_metrics(scoring: Any, refit: Any, owner: str) -> tuple[dict[str, Any], str]:
    """Return the scorers by name and the name that is maximised, checked.

    One score is called ``"score"``, as in scikit-learn. Of several, ``refit`` names the one that is
    maximised; otherwise it is the first.

    Examples
    --------
    >>> read_metrics(["accuracy", "f1"], "f1", "GridSearch")
    ({'accuracy': 'accuracy', 'f1': 'f1'}, 'f1')
    >>> read_metrics(None, True, "GridSearch")
    ({'score': None}, 'score')
    """
    metrics = _by_name(scoring)
    if not metrics or not all(isinstance(name, str) for name in metrics):
        raise InvalidParameter(
            f"{owner}: `scoring` must be a name, a callable, a list of names, a dict from name to "
            f"scorer, or None; got {scoring!r}."
        )
    for scorer in metrics.values():
        _check(scorer, owner)
    if not isinstance(refit, bool) and refit not in metrics:
        raise InvalidParameter(
            f"{owner}: `refit` must be True, False or one of the scores, {listing(metrics)}; got "
            f"{refit!r}.{did_you_mean(refit, metrics)}"
        )
    return metrics, refit if isinstance(refit, str) else next(iter(metrics))


def _by_name(scoring: Any) -> dict[Any, Any]:
    if isinstance(scoring, Mapping):
        return dict(scoring)
    if isinstance(scoring, list | tuple | set):
        names = sorted(scoring) if isinstance(scoring, set) else scoring
        return {name: name for name in names if isinstance(name, str)}
    return {"score": scoring}


def _check(scorer: Any, owner: str) -> None:
    known = get_scorer_names()
    if isinstance(scorer, str) and scorer not in known:
        raise InvalidParameter(
            f"{owner}: `scoring` must be one of scikit-learn's names; got {scorer!r}."
            f"{did_you_mean(scorer, known)}"
        )
    if scorer is not None and not isinstance(scorer, str) and not callable(scorer):
        raise InvalidParameter(
            f"{owner}: `scoring` must be a name, a callable, a list of names, a dict from name to "
            f"scorer, or None; got {scorer!r}."
        )
