"""What a Bayesian network can be asked: distributions, best states, samples, its graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sklearn.utils.validation import check_is_fitted

from castalia.data import Dataset, read
from castalia.errors import InvalidData
from castalia.models.probabilistic import network_samples
from castalia.models.probabilistic.conditional_nodes import GaussianNode, Node, TableNode
from castalia.models.probabilistic.network_columns import state_code
from castalia.models.probabilistic.network_figure import draw_network
from castalia.models.probabilistic.network_posterior import (
    joint_factors,
    mixture_of,
    parents_of,
    posterior_of,
)
from castalia.models.probabilistic.network_samples import WeightedRows
from castalia.probability.d_separation import d_separated
from castalia.probability.factors import ROW, Factor, most_probable, sum_out
from castalia.probability.junction_tree import JunctionTree
from castalia.utils.seeds import seed_from
from castalia.utils.text import did_you_mean, listing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NetworkQueries"]


class NetworkQueries:
    """Answers from ``nodes_``, which a fit or a file has given."""

    nodes_: dict[str, Node]
    target_: str | None
    random_state: Any

    def _node(self, name: str) -> Node:
        if isinstance(name, list | tuple | set | dict):
            raise InvalidData(
                f"BayesianNetwork: variables must be named one by one, such as query('a', 'b', "
                f"evidence={{…}}); got {name!r}."
            )
        if name not in self.nodes_:
            raise InvalidData(
                f"BayesianNetwork: there must be a variable `{name}`; there are "
                f"{listing(self.nodes_, 'and')}.{did_you_mean(name, self.nodes_)}"
            )
        return self.nodes_[name]

    # -- answers about the network -------------------------------------------------------------

    def _evidence(self, evidence: Mapping[str, Any] | None) -> dict[str, float]:
        check_is_fitted(self, "nodes_")
        return {n: state_code(self._node(n), v) for n, v in (evidence or {}).items()}

    def _known(self, evidence: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
        known = self._evidence(evidence)
        return {
            n: np.array([v], dtype=np.int64 if isinstance(self.nodes_[n], TableNode) else float)
            for n, v in known.items()
        }

    def marginals(self, evidence: Mapping[str, Any] | None = None) -> dict[str, dict[Any, float]]:
        """Return the distribution of every variable given evidence, all by one junction tree.

        Parameters
        ----------
        evidence
            States or numbers of known variables.

        Returns
        -------
        dict
            For each variable {state: probability}; {"mean": …, "variance": …} of continuous ones.
        """
        known = self._known(evidence)
        tables = [n for n, node in self.nodes_.items() if isinstance(node, TableNode)]
        asked = [name for name in tables if name not in known]
        factors, _ = joint_factors(self.nodes_, asked, known)
        tree = JunctionTree([_without_rows(factor) for factor in factors])
        if tree.log_partition == -np.inf:
            posterior_of(self.nodes_, [], known)  # says that it is impossible
        found = tree.marginals()
        return {name: self._said(name, found, known) for name in self.nodes_}

    def _said(
        self, name: str, found: Mapping[str, np.ndarray], known: Mapping[str, np.ndarray]
    ) -> dict[Any, float]:
        node = self.nodes_[name]
        if isinstance(node, GaussianNode):
            if name in known:
                return {"mean": float(known[name][0]), "variance": 0.0}
            weight, mean, variance = mixture_of(self.nodes_, name, known)
            middle = float((weight * mean).sum())
            return {
                "mean": middle,
                "variance": float((weight * (variance + (mean - middle) ** 2)).sum()),
            }
        table = np.eye(len(node.states))[known[name][0]] if name in known else found[name]
        return dict(zip(node.states, table.tolist(), strict=True))

    def query(self, *names: str, evidence: Mapping[str, Any] | None = None) -> np.ndarray:
        """Return the joint distribution of discrete variables given evidence, an axis each.

        Found by variable elimination: evidence is cut first, and only ancestors matter.
        """
        known = self._known(evidence)
        for name in names:
            if not isinstance(self._node(name), TableNode) or name in known:
                raise InvalidData(
                    f"BayesianNetwork.query: variables must be discrete and not in the evidence; "
                    f"got `{name}`."
                )
        return posterior_of(self.nodes_, list(names), known).table[0]

    def log_probability(self, evidence: Mapping[str, Any]) -> float:
        """Return ln P(evidence); a density where continuous variables are in it."""
        return float(posterior_of(self.nodes_, [], self._known(evidence)).log_evidence[0])

    def most_probable(
        self, evidence: Mapping[str, Any] | None = None, names: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Return the most probable states together (MAP); of all discrete ones (MPE) by default.

        Parameters
        ----------
        evidence
            States or numbers of known variables.
        names
            Discrete variables to answer; the others are summed over.
        """
        known = self._known(evidence)
        tables = [n for n, node in self.nodes_.items() if isinstance(node, TableNode)]
        asked = [n for n in (tables if names is None else names) if n not in known]
        posterior_of(self.nodes_, [], known)  # or say that it is impossible
        factors, _ = joint_factors(self.nodes_, asked, known)
        left, _ = sum_out([_without_rows(factor) for factor in factors], asked)
        found, _ = most_probable(left)
        return {n: self._node(n).states[found[n]] for n in asked}  # type: ignore[union-attr]

    # -- samples -------------------------------------------------------------------------------

    def sample(
        self,
        n: int = 1,
        evidence: Mapping[str, Any] | None = None,
        *,
        random_state: Any = None,
    ) -> Dataset:
        """Draw rows, each variable after its parents; with evidence, keep rows that agree.

        Parameters
        ----------
        n
            Number of rows.
        evidence
            States that rows must have.
        random_state
            Seed; None: that of the constructor.
        """
        known, random = self._evidence(evidence), self._random(random_state)
        rows = (
            network_samples.rejection(self.nodes_, n, known, random)[0]
            if known
            else network_samples.ancestral(self.nodes_, n, random)
        )
        return self._labelled(rows)

    def likelihood_weighting(
        self, n: int, evidence: Mapping[str, Any], *, random_state: Any = None
    ) -> WeightedRows:
        """Draw rows with the evidence fixed; ``effective_size`` says what they are worth."""
        known = self._evidence(evidence)
        return network_samples.weighted(self.nodes_, n, known, self._random(random_state))

    def _random(self, random_state: Any) -> np.random.Generator:
        chosen = self.random_state if random_state is None else random_state
        return np.random.default_rng(seed_from(chosen))

    def _labelled(self, columns: Mapping[str, np.ndarray]) -> Dataset:
        """Return codes as states, in a data set."""
        found = {}
        for name, values in columns.items():
            node = self.nodes_[name]
            if isinstance(node, TableNode):
                words = (
                    pa.array([str(v) for v in node.states])
                    if _mixed(node)
                    else pa.array(list(node.states))
                )
                at = pa.array(values.astype(np.int32), mask=values < 0)
                found[name] = pa.DictionaryArray.from_arrays(at, words)
            else:
                found[name] = pa.array(values)
        return read(pa.table(found))

    # -- the graph -----------------------------------------------------------------------------

    @property
    def parents_(self) -> dict[str, tuple[str, ...]]:
        """Parents of every variable."""
        check_is_fitted(self, "nodes_")
        return parents_of(self.nodes_)

    @property
    def edges_(self) -> list[tuple[str, str]]:
        """Edges, from parent to child."""
        return [(parent, child) for child, above in self.parents_.items() for parent in above]

    @property
    def n_parameters_(self) -> int:
        """Free parameters of all nodes."""
        check_is_fitted(self, "nodes_")
        return sum(node.n_parameters for node in self.nodes_.values())

    def markov_blanket(self, name: str) -> set[str]:
        """Return parents, children and their other parents: given them, nothing else matters."""
        check_is_fitted(self, "nodes_")
        self._node(name)
        above = self.parents_
        children = [child for child, parents in above.items() if name in parents]
        near = {*above[name], *children, *(p for child in children for p in above[child])}
        return near - {name}

    def d_separated(
        self,
        first: str | Collection[str],
        second: str | Collection[str],
        given: str | Collection[str] = (),
    ) -> bool:
        """Whether the graph makes variables independent given others."""
        return d_separated(self.parents_, first, second, given)

    def plot(self) -> Figure:
        """Draw the graph, parents above children; the target is filled."""
        return draw_network(self.parents_, self.target_)


def _without_rows(factor: Factor) -> Factor:
    """Return a factor of one row as one without rows."""
    return Factor(factor.scope[1:], factor.table[0]) if factor.scope[:1] == (ROW,) else factor


def _mixed(node: TableNode) -> bool:
    return len({type(state) for state in node.states}) > 1
