"""Active learning from files: of a table without labels, the rows worth labelling next."""

from __future__ import annotations

import os

import numpy as np

from castalia.data import read
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.predictions import Predictions, predict
from castalia.models.strategies.active_learner import QUERIES
from castalia.utils.text import listing

__all__ = ["ask"]


def ask(
    model: str | os.PathLike[str],
    pool: str | os.PathLike[str],
    *,
    n: int = 10,
    query: str = "margin",
    name: str | None = None,
) -> Predictions:
    """Return the rows of a table whose labels a saved classifier would learn most from.

    Parameters
    ----------
    model
        Folder of a run, whose recommended model is taken, or of a saved model.
    pool
        A table of rows without labels, with the columns the model was trained on.
    n
        How many rows to ask for.
    query
        ``"margin"``, ``"entropy"`` or ``"uncertainty"``, as for ``ActiveLearning``.
    name
        Another model of the run, such as ``"boosting"``.

    Returns
    -------
    Predictions
        ``row`` (counted from 1), the columns of the table, the model's guess and its
        probabilities; the most wanted row first.
    """
    if query not in QUERIES:
        raise InvalidParameter(f"ask: `query` must be {listing(QUERIES)}; got {query!r}.")
    found = predict(model, pool, name=name, keep=read(pool).columns)
    chances = [v for key, v in found.columns.items() if key.startswith("probability_")]
    if not chances:
        raise InvalidData("ask: the model must be a classifier that says probabilities.")
    if not 1 <= n <= len(found):
        raise InvalidParameter(
            f"ask: `n` must be from 1 to the {len(found):,} rows of the table; got {n}."
        )
    order = np.argsort(-QUERIES[query](np.stack(chances, axis=1)), kind="stable")[:n]
    columns = {"row": order + 1, **{key: v[order] for key, v in found.columns.items()}}
    return Predictions(columns, found.notes)
