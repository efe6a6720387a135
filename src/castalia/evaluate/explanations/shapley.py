"""Shapley values: a prediction divided fairly among the columns of its row.

v(S) = mean over background rows b of f(columns S from x, the others from b),
phi_j = sum over S without j of |S|! (P - |S| - 1)! / P! (v(S + j) - v(S)).

References: 1953, Shapley, A value for n-person games; 2010, Štrumbelj, Kononenko, An efficient
explanation of individual classifications using game theory; 2020, Covert, Lundberg, Lee,
Understanding global feature contributions. Permutations go with their reverses (2021, Mitchell et
al., Sampling permutations for Shapley value estimation, arXiv 2104.12199).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import factorial
from typing import Any

import numpy as np

from castalia.base.input_checks import take_rows
from castalia.errors import InvalidParameter
from castalia.evaluate.explanations.attributions import Attributions
from castalia.evaluate.explanations.column_table import ColumnTable
from castalia.evaluate.explanations.model_outputs import ModelOutputs, drawn_rows

__all__ = ["shapley_values"]

EXACT = 10  # columns up to which all 2^P coalitions are asked about


def shapley_values(
    estimator: Any,
    X: Any,
    background: Any,
    *,
    output: Any = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    rounds: int = 10,
    exact: bool | None = None,
    most: int = 50,
    level: float = 0.95,
    random_state: int = 0,
) -> Attributions:
    """Divide the outputs for rows among their columns by Shapley's axioms, for any model.

    Columns that are left out take the values of background rows. Up to ten columns the values are
    exact; more are sampled: each round runs through the background once, adding columns in a
    random order and in its reverse, and the spread of the rounds gives the intervals. The values
    of a row always add up to its output minus the background's mean.

    Parameters
    ----------
    estimator
        Anything fitted that predicts.
    X
        The rows to explain: an array, a frame or a ``Dataset``.
    background
        Rows that stand for "nothing known", usually training rows; of the same kind as X.
    output
        Class whose probability is divided; None: the predicted one of each row.
    groups
        Columns that come and go together, such as correlated ones, by the name of their group.
    rounds
        Rounds of sampling, at least 2; the intervals shrink with its root.
    exact
        Whether to go through all 2^P coalitions; None: up to ten columns.
    most
        Background rows at most; they are drawn at random.
    level
        Probability that an interval holds the exact value.
    random_state
        Seed of the draws.

    Notes
    -----
    Cost a row: 2^P B questions to the model when exact, else about 2 P B ``rounds``, for B
    background rows.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0.0, 0.0], [2.0, 2.0], [4.0, 1.0]])
    >>> model = LinearRegression().fit(X, X @ [3.0, 1.0])
    >>> shapley_values(model, X[2:], X).values.round(6).tolist()
    [[6.0, 0.0]]
    """
    if rounds < 2:
        raise InvalidParameter(f"shapley_values: `rounds` must be at least 2; got {rounds!r}.")
    kept = drawn_rows(len(background), most, random_state)
    if len(kept) < len(background):
        background = take_rows(background, kept)
    table, outputs = ColumnTable(X, groups), ModelOutputs(estimator)
    game = Game(outputs, table.beside(background), len(table))
    chosen = game.chosen(outputs.place(output, "shapley_values"))
    whole = len(table.names) <= EXACT if exact is None else exact
    random = np.random.default_rng(random_state)
    found = [
        _exact(game, row, place) if whole else _sampled(game, row, place, rounds, level, random)
        for row, place in enumerate(chosen)
    ]
    values, intervals = (np.array(part) for part in zip(*found, strict=True))
    every = np.arange(len(chosen))
    said, base = game.said[every, chosen], game.base[chosen]
    cells = np.column_stack([table.values(i).astype(object) for i in range(len(table.names))])
    names = [outputs.names[min(place, len(outputs.names) - 1)] for place in chosen]
    gap = float(np.abs(values.sum(axis=1) - (said - base)).max())
    return Attributions(table.names, values, intervals, said, base, cells, names, "Shapley", gap)


class Game:
    """What the model says when only some columns of a row are known.

    Parameters
    ----------
    outputs
        The model.
    table
        The rows to explain, and below them the background.
    rows
        How many of the table's rows are to be explained.
    """

    def __init__(self, outputs: ModelOutputs, table: ColumnTable, rows: int) -> None:
        self.outputs, self.table, self.rows = outputs, table, rows
        self.players, self.others = len(table.names), np.arange(rows, len(table))
        every = np.repeat(np.arange(len(table))[:, None], self.players, axis=1)
        found = outputs.of(table, every)
        self.said, self.base = found[:rows], found[rows:].mean(axis=0)

    def chosen(self, place: int | None) -> np.ndarray:
        """Return the output that is divided, for each row: the predicted class."""
        if place is not None:
            return np.full(self.rows, place)
        return np.asarray(self.said.argmax(axis=1))

    def known(self, row: int, place: int, masks: np.ndarray) -> np.ndarray:  # (B, M, P)
        """Return outputs with the masked columns of a row, the others of each background row."""
        rows = np.where(masks, row, self.others[:, None, None])
        found = self.outputs.of(self.table, rows.reshape(-1, self.players))
        return np.asarray(found[:, place].reshape(masks.shape[:2]))


def _exact(game: Game, row: int, place: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the values from all coalitions, and intervals of no width."""
    players = game.players
    codes = np.arange(2**players)
    masks = (codes[:, None] >> np.arange(players)) % 2 == 1  # (2^P, P)
    every = np.broadcast_to(masks, (len(game.others), *masks.shape))
    worth = game.known(row, place, every).mean(axis=0)
    sizes = masks.sum(axis=1)
    weights = np.array([_weight(size, players) for size in range(players)])
    values = np.zeros(players)
    for j in range(players):
        without = codes[~masks[:, j]]
        gains = worth[without + 2**j] - worth[without]
        values[j] = (weights[sizes[without]] * gains).sum()
    return values, np.stack([values, values], axis=1)


def _weight(size: int, players: int) -> float:
    return factorial(size) * factorial(players - size - 1) / factorial(players)


def _sampled(
    game: Game, row: int, place: int, rounds: int, level: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and Student's interval over rounds, each of which is unbiased."""
    from scipy.stats import t

    found = np.array([_round(game, row, place, random) for _ in range(rounds)])  # (R, P)
    values = found.mean(axis=0)
    error = found.std(axis=0, ddof=1) / np.sqrt(rounds)
    reach = t.ppf((1 + level) / 2, rounds - 1) * error
    return values, np.stack([values - reach, values + reach], axis=1)


def _round(game: Game, row: int, place: int, random: np.random.Generator) -> np.ndarray:
    """Add the columns one by one to every background row, in a random order and its reverse."""
    others, players = len(game.others), game.players
    rank = random.permuted(np.tile(np.arange(players), (others, 1)), axis=1)  # (B, P)
    gains = np.zeros(players)
    for order in (rank, players - 1 - rank):
        masks = order[:, None, :] < np.arange(players + 1)[:, None]  # (B, P + 1, P)
        steps = np.diff(game.known(row, place, masks), axis=1)  # (B, P)
        gains += np.take_along_axis(steps, order, axis=1).mean(axis=0) / 2
    return gains
