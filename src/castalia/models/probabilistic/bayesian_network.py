"""Bayesian networks: built by hand, read from files, or learnt from a table."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_is_fitted,
    validate_data,
)
from torch import Tensor

from castalia.base import Constraint, DirectEstimator, Interval, OneOf, check_parameters
from castalia.base.input_checks import check_target, check_weight, is_frame, split_target
from castalia.base.targets import encode_classes
from castalia.data import Dataset, read
from castalia.errors import DataWarning, InvalidData, InvalidParameter, TrainingWarning
from castalia.models.probabilistic.bif_files import read_bif, written_bif
from castalia.models.probabilistic.conditional_nodes import (
    Node,
    TableNode,
    checked_nodes,
)
from castalia.models.probabilistic.family_scores import FamilyScores
from castalia.models.probabilistic.missing_data_em import filled_in, fitted_nodes, patterns
from castalia.models.probabilistic.network_columns import column_states, encoded
from castalia.models.probabilistic.network_posterior import (
    mixture_of,
    posterior_of,
)
from castalia.models.probabilistic.network_queries import NetworkQueries
from castalia.models.probabilistic.structure_search import StructureSearch
from castalia.probability.d_separation import topological_order
from castalia.utils.text import did_you_mean, listing

__all__ = ["BayesianNetwork", "Edges"]


class Edges(Constraint):
    """``"search"``, or pairs of names from parent to child."""

    def rule(self) -> str:
        """Say both."""
        return '"search" or pairs of names (parent, child)'

    def holds(self, value: Any) -> bool:
        """Whether it is the word or a sequence of pairs."""
        if isinstance(value, str):
            return value == "search"
        return isinstance(value, Sequence) and all(
            isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2
            for pair in value
        )


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianNetwork(NetworkQueries, ClassifierMixin, DirectEstimator):
    """Directed graph of variables, each with its distribution given its parents.

    P(x) = prod_i P(x_i | parents of x_i). Discrete variables have tables, continuous ones are
    normal around a linear function of their parents, one for each combination of discrete parents;
    a discrete variable has no continuous parent. ``fit`` learns graph and parameters; answers are
    exact. Right where one wants to know what depends on what, asks about any column given any
    others, or has gaps in the data; for one target on much data the networks of
    ``castalia.models.dense`` predict better.

    Parameters
    ----------
    edges
        ``"search"`` finds the graph by a greedy search; or the edges, (parent, child) pairs.
    score_name
        Score of a graph in the search: ``"bic"``, or ``"bdeu"`` for discrete columns only.
    prior
        Pseudo-counts of a table together (BDeu's equivalent sample size); 0 gives shares as
        counted, and then combinations never seen are impossible.
    max_parents
        Most parents of a variable in the search.
    tabu
        Steps the search goes on without gain, and for which a moved edge stands still; 0 stops at
        the first local optimum.
    kinds
        ``"auto"``: words and few whole numbers are states, other numbers continuous;
        ``"discrete"`` or ``"gaussian"`` for all columns. A target is discrete.
    target_name
        Name of y in the graph, where it has none of its own.
    steps
        Most steps of expectation maximisation, where values are missing.
    tol
        Relative gain of the log-likelihood below which these steps end.

    Attributes
    ----------
    nodes_ : dict of str to TableNode or GaussianNode
        Variables, parents before children.
    target_ : str or None
        Column that ``predict`` answers by default: the y of ``fit``.
    classes_ : ndarray
        States of the target, where there is one.
    log_likelihood_ : float
        Mean of ln p over the training rows.
    em_ : list of float
        What each step of expectation maximisation reached; empty without gaps.

    Shapes
    ------
    X (N, D): a frame, an array or a data set of words and numbers, gaps allowed; probabilities
    (N, K).

    Notes
    -----
    Marginals cost as much as the largest clique of a min-fill elimination has entries; a larger one
    than 1 GiB is refused before it is begun. The search needs O(D^2) counts at first and O(D) a
    step. With gaps, it runs on rows filled with the commonest states and means, then the parameters
    are learnt by expectation maximisation. States that ``fit`` has not seen count as missing. All
    arithmetic is double precision on the CPU.

    References
    ----------
    1988, Pearl, Probabilistic reasoning in intelligent systems. 2009, Koller, Friedman,
    Probabilistic graphical models.

    See Also
    --------
    castalia.models.probabilistic.MarkovRandomField : without directions.

    Examples
    --------
    >>> rain = TableNode("rain", ("yes", "no"), [0.2, 0.8])
    >>> wet = TableNode("wet", ("yes", "no"), [[0.9, 0.1], [0.1, 0.9]], parents=("rain",))
    >>> net = BayesianNetwork.build([rain, wet])
    >>> round(net.marginals({"wet": "yes"})["rain"]["yes"], 3)
    0.692
    """

    reads_tables: ClassVar[bool] = True  # words and gaps as they are

    edges: Annotated[Any, Edges()] = "search"
    score_name: Annotated[str, OneOf("bic", "bdeu")] = "bic"
    prior: Annotated[float, Interval(0)] = 1.0
    max_parents: Annotated[int, Interval(0, whole=True)] = 4
    tabu: Annotated[int, Interval(0, whole=True)] = 10
    kinds: Annotated[str, OneOf("auto", "discrete", "gaussian")] = "auto"
    target_name: str = "y"
    steps: Annotated[int, Interval(1, whole=True)] = 100
    tol: Annotated[float, Interval(0)] = 1e-6

    # -- made without data ---------------------------------------------------------------------

    @classmethod
    def build(
        cls, nodes: Sequence[Node], target: str | None = None, **settings: Any
    ) -> BayesianNetwork:
        """Return a network of nodes made by hand, ready to answer.

        Parameters
        ----------
        nodes
            ``TableNode`` and ``GaussianNode`` objects, in any order.
        target
            Column that ``predict`` answers by default.
        settings
            Parameters of the constructor, for a later ``fit``.
        """
        model = cls(**settings)
        model._take(checked_nodes(nodes), target)
        return model

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> BayesianNetwork:
        """Read a network of tables from a BIF file, also one packed by gzip."""
        return cls.build(read_bif(path))

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write a network of tables to a BIF file."""
        check_is_fitted(self, "nodes_")
        return written_bif(self.nodes_, path)

    def _take(self, nodes: dict[str, Node], target: str | None) -> None:
        self.nodes_, self.target_ = nodes, target
        if target is not None:
            node = self._node(target)
            if isinstance(node, TableNode):
                self.classes_ = np.array(node.states)
        features = [name for name in nodes if name != target]
        self.n_features_in_ = len(features)
        self.feature_names_in_ = np.array(features, dtype=object)

    # -- learning ------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BayesianNetwork:
        """Learn graph and parameters of the columns of X, and of y where it is given.

        Parameters
        ----------
        X
            Table, gaps allowed.
        y
            A further, discrete column, which ``predict`` answers.
        sample_weight
            How often each row counts.

        Returns
        -------
        self
        """
        check_parameters(self)
        if isinstance(X, Dataset) and (X.target is not None or isinstance(y, str)):
            X, y = split_target(X, y)
        data = self._data(X, reset=True)
        target = None if y is None else _name_of(y, self.target_name, data.columns)
        weight = check_weight(self, np.empty((len(data), 1)), sample_weight)
        weight = np.ones(len(data)) if weight is None else weight
        states: dict[str, tuple[Any, ...] | None] = {}
        classes: np.ndarray | None = None
        columns: dict[str, np.ndarray] = {}
        if target is not None:
            classes, columns[target] = encode_classes(self, check_target(self, data, y))
            states[target] = tuple(classes.tolist())
        kept = np.flatnonzero(weight)
        data = data if len(kept) == len(weight) else data.take(kept)
        columns = {name: values[kept] for name, values in columns.items()}
        states |= column_states(data, self.kinds)
        columns |= encoded(data, states)[0]
        self._learn(columns, states, weight[kept])
        self._finish(target, classes, data.columns)
        return self

    def _learn(
        self,
        columns: dict[str, np.ndarray],
        states: Mapping[str, tuple[Any, ...] | None],
        weight: np.ndarray,
    ) -> None:
        discrete = {name: found for name, found in states.items() if found is not None}
        if self.score_name == "bdeu" and len(discrete) < len(states):
            lines = [name for name in states if name not in discrete]
            raise InvalidData(
                f"BayesianNetwork: score_name='bdeu' needs discrete columns; "
                f"{listing(lines, 'and', 5)} is continuous. Use score_name='bic'."
            )
        parents = self._graph(columns, discrete, weight)
        nodes, self.em_ = fitted_nodes(
            parents,
            columns,
            discrete,
            weight,
            prior=self.prior,
            steps=self.steps,
            tol=self.tol,
        )
        if len(self.em_) == self.steps > 1:
            warnings.warn(
                f"BayesianNetwork: expectation maximisation still gained after {self.steps} steps. "
                "Raise `steps` or `tol`.",
                TrainingWarning,
                stacklevel=4,
            )
        self.nodes_ = nodes
        logs = self._log_probs(columns)
        self.log_likelihood_ = float(logs @ weight / weight.sum())

    def _graph(
        self,
        columns: dict[str, np.ndarray],
        states: Mapping[str, tuple[Any, ...]],
        weight: np.ndarray,
    ) -> dict[str, tuple[str, ...]]:
        names = list(columns)
        if not isinstance(self.edges, str):
            return _given_graph(self.edges, names, states)
        score = FamilyScores(
            filled_in(columns, states, weight),
            {name: len(found) for name, found in states.items()},
            weight,
            self.score_name,
            self.prior or 1.0,
        )
        discrete = np.array([name in states for name in names])
        allowed = discrete[:, None] | ~discrete[None, :]  # no continuous parent of a table
        return StructureSearch(names, score, allowed, self.max_parents, self.tabu).run()

    def _finish(self, target: str | None, classes: np.ndarray | None, names: list[str]) -> None:
        self.target_ = target
        self.n_features_in_ = len(names)
        if classes is not None:
            self.classes_ = classes
        elif hasattr(self, "classes_"):
            del self.classes_

    @property
    def known_words(self) -> dict[str, list[str]]:
        """States that are words, of every discrete column but the target."""
        return {
            name: list(node.states)
            for name, node in self.nodes_.items()
            if isinstance(node, TableNode)
            and name != self.target_
            and isinstance(node.states[0], str)
        }

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

    def _groups(self, columns: dict[str, np.ndarray]) -> Any:
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

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on y; without y, the mean of ln p over the rows."""
        if y is not None:
            return float(super().score(X, y, sample_weight))
        return float(np.average(self.score_samples(X), weights=sample_weight))

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True  # for a classifier; a density needs none
        tags.input_tags.allow_nan = True
        return tags


def _name_of(y: Any, usual: str, taken: Collection[str]) -> str:
    """Return a name for the target: its own where it has one."""
    own = getattr(y, "name", None)
    name = own if isinstance(own, str) and own else usual
    while name in taken:
        name += "_"
    return name


def _given_graph(
    edges: Sequence[Sequence[str]], names: Sequence[str], states: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """Return the parents by edges, or say which edge is wrong."""
    parents: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    for parent, child in edges:
        for name in (parent, child):
            if name not in parents:
                raise InvalidData(
                    f"BayesianNetwork: edges must join columns, {listing(names)}; got "
                    f"{name!r}.{did_you_mean(str(name), names)}"
                )
        if child in states and parent not in states:
            raise InvalidData(
                f"BayesianNetwork: a discrete column must have discrete parents; got the edge from "
                f"continuous `{parent}` to `{child}`. Reverse it."
            )
        parents[child] = (*parents[child], parent)
    topological_order(parents)
    return parents
