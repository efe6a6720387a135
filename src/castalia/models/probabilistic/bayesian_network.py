"""Bayesian networks: built by hand, read from files, or learnt from a table."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from castalia.base import DirectEstimator, Interval, OneOf, check_parameters
from castalia.base.input_checks import check_target, check_weight, split_target
from castalia.base.targets import encode_classes
from castalia.data import Dataset
from castalia.errors import InvalidData, TrainingWarning
from castalia.models.probabilistic.bif_files import read_bif, written_bif
from castalia.models.probabilistic.conditional_nodes import (
    Node,
    TableNode,
    checked_nodes,
)
from castalia.models.probabilistic.family_scores import FamilyScores
from castalia.models.probabilistic.missing_data_em import filled_in, fitted_nodes
from castalia.models.probabilistic.network_columns import column_states, encoded
from castalia.models.probabilistic.network_edges import Edges, given_graph
from castalia.models.probabilistic.network_predictions import NetworkPredictions
from castalia.models.probabilistic.structure_search import StructureSearch
from castalia.utils.text import listing

__all__ = ["BayesianNetwork"]


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianNetwork(NetworkPredictions, ClassifierMixin, DirectEstimator):
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
            return given_graph(self.edges, names, states)
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

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on y; without y, the mean of ln p over the rows."""
        if y is not None:
            return float(super().score(X, y, sample_weight))
        return float(np.average(self.score_samples(X), weights=sample_weight))

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
