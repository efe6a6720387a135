"""Rows of a table asked of a Bayesian network: any column given the others, gaps, likelihoods."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_is_fitted,
    validate_data,
)
from torch import Tensor

from castalia.base.input_checks import is_frame
from castalia.data import Dataset, read
from castalia.errors import DataWarning, InvalidData, InvalidParameter
from castalia.models.probabilistic.conditional_nodes import TableNode
from castalia.models.probabilistic.missing_data_em import patterns
from castalia.models.probabilistic.network_columns import encoded
from castalia.models.probabilistic.network_posterior import mixture_of, posterior_of
from castalia.models.probabilistic.network_queries import NetworkQueries
from castalia.utils.text import did_you_mean, listing

__all__ = ["NetworkPredictions"]


class NetworkPredictions(NetworkQueries):
    """Answers about rows, from ``nodes_``, which a fit or a file has given."""

    classes_: np.ndarray
    n_features_in_: int

    # -- reading rows --------------------------------------------------------------------------

    def _data(self, X: Any, *, reset: bool) -> Dataset:
        """Check a table as scikit-learn does it, words and gaps allowed."""
        if isinstance(X, Dataset):
            X = X.features()
            if reset:
                self.n_features_in_ = len(X.columns)
                self.feature_names_in_ = np.array(X.columns, dtype=object)
            else:
                X = self._named(X)
            return X
        if is_frame(X):
            _check_feature_names(self, X, reset=reset)
            _check_n_features(self, X, reset=reset)
            return read(X)
        X = X.detach().cpu().numpy() if isinstance(X, Tensor) else X
        words = np.asarray(X, dtype=object) if isinstance(X, list) else X
        kind = getattr(getattr(words, "dtype", None), "kind", "")
        wordy = kind in "UST" or (kind == "O" and any(isinstance(v, str) for v in np.ravel(words)))
        X = validate_data(
            self,
            words if wordy else X,
            reset=reset,
            dtype=None if wordy else "numeric",
            ensure_all_finite=False if wordy else "allow-nan",
        )
        return self._renamed(read(X))

    def _renamed(self, data: Dataset) -> Dataset:
        """Give the columns of an array the names that the network has for them."""
        known = getattr(self, "feature_names_in_", None)
        if known is None:
            return data
        return read(pa.table(list(data.table().columns), names=list(known)))

    def _named(self, data: Dataset) -> Dataset:
        missing = [name for name in self._features() if name not in data.columns]
        if missing:
            raise InvalidData(
                f"BayesianNetwork: the data set must have every column used in fit; "
                f"`{missing[0]}` is missing.{did_you_mean(missing[0], data.columns)}"
            )
        return data.select(self._features())

    def _features(self) -> list[str]:
        return [name for name in self._in_order() if name != self.target_]

    def _in_order(self) -> list[str]:
        """Return the columns in the order of ``fit``."""
        known = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if known is None else list(known)

    def _rows(self, X: Any, column: str | None) -> dict[str, np.ndarray]:
        """Return the columns of later rows; any columns will do where one is asked for by name."""
        check_is_fitted(self, "nodes_")
        lenient = column not in (None, self.target_) and is_frame(X)
        data = read(X) if lenient else self._data(X, reset=False)
        columns, strange = encoded(data, self.nodes_)
        if strange:
            warnings.warn(
                f"BayesianNetwork: {listing(strange, 'and', 5)} holds states that fit has not "
                "seen; they count as missing.",
                DataWarning,
                stacklevel=4,
            )
        return {n: v for n, v in columns.items() if n != column}

    def _groups(
        self, columns: dict[str, np.ndarray]
    ) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Yield rows that know the same columns, and what they know."""
        states = {n: node.states for n, node in self.nodes_.items() if isinstance(node, TableNode)}
        for rows, known in patterns(columns, states):
            for part in np.array_split(rows, max(1, len(rows) // 8192)):
                yield part, {name: columns[name][part] for name in known}

    # -- answers about rows --------------------------------------------------------------------

    def predict_proba(self, X: Any, column: str | None = None) -> np.ndarray:
        """Return the probability of each state of a column given the others, (N, K).

        Parameters
        ----------
        X
            Rows; gaps are summed over.
        column
            Which to answer; None: the y of ``fit``. For another one X is a frame, whose column of
            that name is ignored and whose absent columns count as missing.
        """
        check_is_fitted(self, "nodes_")
        name = self._asked(column)
        if not isinstance(self._node(name), TableNode):
            raise InvalidParameter(
                f"BayesianNetwork: `{name}` is continuous and has no probabilities. Use `predict`."
            )
        columns = self._rows(X, name)
        n = len(next(iter(columns.values())))
        found = np.empty((n, len(self._node(name).states)))  # type: ignore[union-attr]
        for rows, known in self._groups(columns):
            found[rows] = posterior_of(self.nodes_, [name], known).table
        return found

    def predict(self, X: Any, column: str | None = None) -> np.ndarray:
        """Return the most probable state, or the mean, of a column given the others, (N,)."""
        check_is_fitted(self, "nodes_")
        name = self._asked(column)
        node = self._node(name)
        if isinstance(node, TableNode):
            states = self.classes_ if name == self.target_ else np.array(node.states)
            return np.asarray(states[self.predict_proba(X, column).argmax(axis=1)])
        columns = self._rows(X, name)
        found = np.empty(len(next(iter(columns.values()))))
        for rows, known in self._groups(columns):
            weight, mean, _ = mixture_of(self.nodes_, name, known)
            found[rows] = (weight * mean).sum(axis=1)
        return found

    def _asked(self, column: str | None) -> str:
        name = self.target_ if column is None else column
        if name is None:
            raise InvalidParameter(
                f"BayesianNetwork: `column` must name what to predict, {listing(self.nodes_)}; the "
                "network was fitted without y."
            )
        self._node(name)
        return name

    def score_samples(self, X: Any) -> np.ndarray:
        """Return ln p of each row, gaps summed over, (N,); without the y of ``fit``."""
        return self._log_probs(self._rows(X, None))

    def _log_probs(self, columns: dict[str, np.ndarray]) -> np.ndarray:
        found = np.zeros(len(next(iter(columns.values()))))
        for rows, known in self._groups(columns):
            if len(known) == len(self.nodes_):
                found[rows] = sum(node.log_prob(known) for node in self.nodes_.values())
            elif known:
                found[rows] = posterior_of(self.nodes_, [], known).log_evidence
        return found

    def impute(self, X: Any) -> Dataset:
        """Fill every gap with its most probable state, or its mean, given the rest of the row."""
        check_is_fitted(self, "nodes_")
        columns = self._rows(X, None)
        found = {name: values.copy() for name, values in columns.items()}
        for rows, known in self._groups(columns):
            for name in columns:
                if name in known:
                    continue
                if isinstance(self.nodes_[name], TableNode):
                    table = posterior_of(self.nodes_, [name], known).table
                    found[name][rows] = table.argmax(axis=1)
                else:
                    weight, mean, _ = mixture_of(self.nodes_, name, known)
                    found[name][rows] = (weight * mean).sum(axis=1)
        return self._labelled(found)
