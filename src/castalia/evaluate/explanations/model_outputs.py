"""What a model says about rows, as numbers: probabilities, scores or predicted values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.evaluate.explanations.column_table import ColumnTable
from castalia.utils.text import listing

__all__ = ["ModelOutputs", "drawn_rows"]

BLOCK = 65_536  # rows asked about at a time


@dataclass(frozen=True)
class ModelOutputs:
    """The numbers that explanations divide among columns.

    Attributes
    ----------
    model
        A fitted estimator: any with ``predict_proba``, ``decision_function`` or ``predict``.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0])
    >>> ModelOutputs(model)(np.array([[3.0]]))
    array([[6.]])
    """

    model: Any

    @property
    def classifies(self) -> bool:
        """Whether the model knows classes; a regression does not."""
        return getattr(self.model, "classes_", None) is not None

    @property
    def names(self) -> list[Any]:
        """Classes of a classifier; of a regression the empty word, or numbers of its outputs."""
        if not self.classifies:
            return [""]
        classes = np.asarray(self.model.classes_)
        if not hasattr(self.model, "predict_proba") and len(classes) == 2:
            return [classes.tolist()[1]]
        found: list[Any] = classes.tolist()
        return found

    def __call__(self, X: Any) -> np.ndarray:
        """Return one number a row and output, (N, K)."""
        if self.classifies:
            if hasattr(self.model, "predict_proba"):
                return np.asarray(self.model.predict_proba(X), dtype=float)
            if hasattr(self.model, "decision_function"):
                found = np.asarray(self.model.decision_function(X), dtype=float)
                return found.reshape(len(found), -1)
            said = np.asarray(self.model.predict(X))
            return (said[:, None] == np.asarray(self.names)).astype(float)
        found = np.asarray(self.model.predict(X), dtype=float)
        return found.reshape(len(found), -1)

    def of(self, table: ColumnTable, rows: np.ndarray) -> np.ndarray:
        """Return the outputs for mixed rows, (M, K), a block at a time."""
        parts = [
            self(table.mixed(rows[begin : begin + BLOCK])) for begin in range(0, len(rows), BLOCK)
        ]
        return np.concatenate(parts)

    def place(self, output: Any, owner: str) -> int | None:
        """Return which output is meant by its name; None stays None."""
        if output is None:
            return None
        if output in self.names:
            return self.names.index(output)
        words = [str(name) for name in self.names]
        if str(output) in words:
            return words.index(str(output))
        raise InvalidParameter(
            f"{owner}: `output` must be {listing(self.names, 'or', 8)}; got {output!r}."
        )


def drawn_rows(rows: int, most: int, random_state: int) -> np.ndarray:
    """Return the numbers of at most so many rows, drawn at random and in order."""
    if rows <= most:
        return np.arange(rows)
    drawn = np.random.default_rng(random_state).choice(rows, most, replace=False)
    return np.sort(drawn)
