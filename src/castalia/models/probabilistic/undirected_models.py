"""Undirected models of discrete variables: P(x) = (1 / Z) exp(sum of log-potentials).

A factor graph names the scope of every factor; a Markov random field is read as a graph, whose
neighbours share a clique. Z, marginals and the most probable states are exact by elimination;
messages, mean field, Gibbs sampling and annealing serve where that is too wide.
Shapes: N rows, n variables, C chains.
Reference: 2009, Koller, Friedman, Probabilistic graphical models.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from castalia.data import read
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.probabilistic.belief_propagation import (
    Beliefs,
    MeanField,
    mean_field,
    propagate,
)
from castalia.models.probabilistic.learnt_potentials import learnt_potentials
from castalia.models.probabilistic.network_columns import column_states, encoded
from castalia.probability.factors import Factor, cut_evidence, most_probable, sizes_of, sum_out
from castalia.probability.junction_tree import JunctionTree
from castalia.sampling import AnnealedEstimate, Chains, annealed_importance, gibbs
from castalia.sampling.gibbs_chains import draw_states
from castalia.utils.seeds import generator, seed_from
from castalia.utils.text import did_you_mean, listing

__all__ = ["FactorGraph", "MarkovRandomField", "UndirectedModel"]

Potentials = Mapping[tuple[str, ...], Any] | Sequence[tuple[Sequence[str], Any]]


class UndirectedModel:
    """What factor graphs and Markov random fields share.

    Parameters
    ----------
    potentials
        Log-potentials by scope: ``{("a", "b"): table}``, or pairs where a scope comes twice. Minus
        infinity rules a combination out.
    states
        Values of the variables, by name; whole numbers from 0 where not given.
    """

    def __init__(
        self, potentials: Potentials, states: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        pairs = potentials.items() if isinstance(potentials, Mapping) else potentials
        self.factors = [_checked(type(self).__name__, scope, table) for scope, table in pairs]
        self.sizes = sizes_of(self.factors)
        if not self.sizes:
            raise InvalidData(f"{type(self).__name__}: there must be at least one potential.")
        given = states or {}
        self.states = {n: tuple(given.get(n, range(size))) for n, size in self.sizes.items()}
        for name, values in self.states.items():
            if len(values) != self.sizes[name]:
                raise InvalidData(
                    f"{type(self).__name__}: `states` of `{name}` must be {self.sizes[name]}, as "
                    f"its tables have; got {len(values)}."
                )

    @classmethod
    def from_potentials(
        cls, potentials: Potentials, states: Mapping[str, Sequence[Any]] | None = None
    ) -> Any:
        """Return the model of potentials that are not logarithms, none negative."""
        pairs = potentials.items() if isinstance(potentials, Mapping) else potentials
        found = []
        for scope, table in pairs:
            values = np.asarray(table, dtype=float)
            if (values < 0).any():
                raise InvalidData(
                    f"{cls.__name__}: potentials must be at least 0; that of "
                    f"{listing(scope, 'and')} has {values.min():g}."
                )
            with np.errstate(divide="ignore"):
                found.append((scope, np.log(values)))
        return cls(found, states)

    @classmethod
    def from_rows(
        cls,
        rows: Any,
        scopes: Sequence[Sequence[str]],
        *,
        weight: Any = None,
        method: str = "pseudo",
        alpha: float = 1e-4,
        epochs: int = 50,
        lr: float = 0.1,
        random_state: Any = None,
    ) -> Any:
        """Learn the log-potentials of given scopes, and of every variable, from rows of states.

        Parameters
        ----------
        rows
            A table of states: a frame, a mapping of columns, or an array, whose columns are then
            ``x0``, ``x1``, ….
        scopes
            Columns of each factor; those of single columns are added.
        weight
            How often each row counts.
        method
            ``"pseudo"`` maximises the pseudo-likelihood; ``"contrastive"`` follows the likelihood
            with persistent chains of Gibbs sampling.
        alpha
            L2 penalty of the tables.
        epochs, lr
            Passes over the rows and learning rate of ``"contrastive"``.
        random_state
            Seed.
        """
        if method not in ("pseudo", "contrastive"):
            raise InvalidParameter(
                f'{cls.__name__}: `method` must be "pseudo" or "contrastive"; got {method!r}.'
            )
        data = read(pa.table(dict(rows)) if isinstance(rows, Mapping) else rows)
        states = column_states(data, "discrete", owner=cls.__name__)
        columns, names = encoded(data, states)[0], list(states)
        codes = np.stack([columns[name] for name in names], axis=1)
        gaps = [name for name in names if (columns[name] < 0).any()]
        if gaps:
            raise InvalidData(
                f"{cls.__name__}: rows must have no gaps; `{gaps[0]}` has. Drop those rows, or use "
                "BayesianNetwork."
            )
        places = [_places(cls.__name__, scope, names) for scope in scopes]
        places = [(i,) for i in range(len(names)) if (i,) not in places] + places
        tables = learnt_potentials(
            codes,
            None if weight is None else np.asarray(weight, dtype=np.float64),
            [len(states[name] or ()) for name in names],
            places,
            method=method,
            alpha=alpha,
            epochs=epochs,
            lr=lr,
            random_state=random_state,
        )
        learnt = [([names[i] for i in place], t) for place, t in zip(places, tables, strict=True)]
        return cls(learnt, {name: found or () for name, found in states.items()})

    @property
    def n_parameters(self) -> int:
        """Entries of all tables."""
        return sum(factor.table.size for factor in self.factors)

    @property
    def neighbours(self) -> dict[str, set[str]]:
        """Variables that share a factor with each one."""
        found: dict[str, set[str]] = {name: set() for name in self.sizes}
        for factor in self.factors:
            for name in factor.scope:
                found[name] |= set(factor.scope) - {name}
        return found

    def separated(self, first: str, second: str, given: str | Collection[str] = ()) -> bool:
        """Whether every path between two variables goes through the given ones."""
        near, known = self.neighbours, {given} if isinstance(given, str) else set(given)
        seen, ahead = set[str](), [first]
        while ahead:
            name = ahead.pop()
            if name not in seen and name not in known:
                seen.add(name)
                ahead += near[name]
        return second not in seen

    # -- exact ---------------------------------------------------------------------------------

    def _evidence(self, evidence: Mapping[str, Any] | None) -> dict[str, int]:
        found = {}
        for name, value in (evidence or {}).items():
            if name not in self.states:
                raise InvalidData(
                    f"{type(self).__name__}: there must be a variable `{name}`; there are "
                    f"{listing(self.states, 'and')}.{did_you_mean(name, self.states)}"
                )
            if value not in self.states[name]:
                raise InvalidData(
                    f"{type(self).__name__}: evidence on `{name}` must be one of its states, "
                    f"{listing(self.states[name])}; got {value!r}."
                )
            found[name] = self.states[name].index(value)
        return found

    def _tables(self, evidence: Mapping[str, int]) -> tuple[list[Factor], float]:
        """Return potentials as numbers of at most 1, cut at the evidence, and their log scale."""
        tops = [_top(factor) for factor in self.factors]
        tables = [
            Factor(factor.scope, np.exp(factor.table - top))
            for factor, top in zip(self.factors, tops, strict=True)
        ]
        return cut_evidence(tables, evidence), float(sum(tops))

    def log_partition(self, evidence: Mapping[str, Any] | None = None) -> float:
        """Return ln Z, exact by elimination; with evidence, over the states that agree."""
        tables, scale = self._tables(self._evidence(evidence))
        left, more = sum_out(tables, ())
        with np.errstate(divide="ignore"):
            return float(scale + more + sum(np.log(factor.table) for factor in left))

    def marginals(self, evidence: Mapping[str, Any] | None = None) -> dict[str, dict[Any, float]]:
        """Return the distribution of every variable, all by one junction tree."""
        known = self._evidence(evidence)
        tree = JunctionTree(self._tables(known)[0])
        if tree.log_partition == -np.inf:
            raise InvalidData(
                f"{type(self).__name__}: evidence must have a probability above 0; that on "
                f"{listing(known, 'and', 6)} is impossible."
            )
        found = tree.marginals()
        found |= {name: np.eye(self.sizes[name])[i] for name, i in known.items()}
        return self._by_state({name: found[name] for name in self.sizes})

    def _by_state(self, tables: Mapping[str, np.ndarray]) -> dict[str, dict[Any, float]]:
        return {n: dict(zip(self.states[n], p.tolist(), strict=True)) for n, p in tables.items()}

    def most_probable(self, evidence: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the most probable states together, exact by max-elimination."""
        known = self._evidence(evidence)
        found, _ = most_probable(self._tables(known)[0])
        return {n: self.states[n][i] for n, i in sorted({**found, **known}.items())}

    def log_potential(self, x: Any) -> np.ndarray:
        """Return ln p~ of rows of state numbers, (N, n) in the order of ``sizes``, (N,)."""
        rows, names = np.asarray(x), list(self.sizes)
        return np.asarray(
            sum(f.table[tuple(rows[:, names.index(n)] for n in f.scope)] for f in self.factors)
        )

    def log_prob(self, x: Any) -> np.ndarray:
        """Return ln P of rows of state numbers, (N,)."""
        return self.log_potential(x) - self.log_partition()

    # -- approximate ---------------------------------------------------------------------------

    def belief_propagation(
        self,
        *,
        maximum: bool = False,
        damping: float = 0.5,
        steps: int = 200,
        tol: float = 1e-10,
    ) -> Beliefs:
        """Send messages: exact on trees, an approximation with loops.

        Parameters
        ----------
        maximum
            Max-product, for the most probable states, in place of sum-product.
        damping
            Share of the old message that stays, from 0 to below 1; trees need none.
        steps
            Most rounds.
        tol
            Change below which messages stand still.
        """
        if not 0 <= damping < 1:
            raise InvalidParameter(
                f"belief_propagation: `damping` must be at least 0 and below 1; got {damping!r}."
            )
        if steps < 1:
            raise InvalidParameter(
                f"belief_propagation: `steps` must be at least 1; got {steps!r}."
            )
        return propagate(self.factors, maximum=maximum, damping=damping, steps=steps, tol=tol)

    def mean_field(
        self, *, steps: int = 200, tol: float = 1e-10, random_state: Any = 0
    ) -> MeanField:
        """Fit independent distributions; their bound of ln Z rises with every round."""
        random = np.random.default_rng(seed_from(random_state))
        return mean_field(self.factors, steps=steps, tol=tol, random=random)

    def gibbs(
        self,
        *,
        steps: int = 1000,
        burn_in: int = 100,
        thin: int = 1,
        chains: int = 16,
        random_state: Any = None,
    ) -> Chains:
        """Draw states by Gibbs sampling, many chains at once; columns in the order of ``sizes``."""
        start = self._uniform(chains, seed_from(random_state))
        return gibbs(
            self._conditionals(),
            start,
            steps=steps,
            burn_in=burn_in,
            thin=thin,
            random_state=random_state,
        )

    def _uniform(self, chains: int, seed: int) -> Tensor:
        source = generator(seed, 1)
        return torch.stack(
            [torch.randint(k, (chains,), generator=source) for k in self.sizes.values()], dim=1
        )

    def _conditionals(self) -> Callable[[Tensor, int], Tensor]:
        """Return the log-probabilities of a variable's states given the others, (C, K)."""
        names = list(self.sizes)
        near: list[list[tuple[Tensor, list[int]]]] = [[] for _ in names]
        for factor in self.factors:
            for axis, name in enumerate(factor.scope):
                table = torch.from_numpy(np.ascontiguousarray(np.moveaxis(factor.table, axis, -1)))
                others = [names.index(other) for other in factor.scope if other != name]
                near[names.index(name)].append((table, others))

        def conditional(x: Tensor, i: int) -> Tensor:
            parts = [
                table[tuple(x[:, j] for j in others)] if others else table.expand(len(x), -1)
                for table, others in near[i]
            ]
            return torch.stack(parts).sum(dim=0)

        return conditional

    def annealed_log_partition(
        self, *, runs: int = 100, betas: int = 200, random_state: Any = None
    ) -> AnnealedEstimate:
        """Estimate ln Z by annealed importance sampling, with its error.

        The path goes from equal chances, whose Z is the number of states, to the model.
        """
        conditional, names = self._conditionals(), list(self.sizes)
        tables = [
            (torch.from_numpy(f.table), [names.index(n) for n in f.scope]) for f in self.factors
        ]

        def log_density(x: Tensor, beta: float) -> Tensor:
            if beta == 0:
                return torch.zeros(len(x), dtype=torch.float64)
            parts = [table[tuple(x[:, j] for j in scope)] for table, scope in tables]
            return beta * torch.stack(parts).sum(dim=0)

        def step(x: Tensor, beta: float, source: torch.Generator) -> Tensor:
            for i in range(len(names)):
                x[:, i] = draw_states(beta * conditional(x, i), source)
            return x

        return annealed_importance(
            log_density,
            step,
            self._uniform(runs, seed_from(random_state)),
            log_z=float(np.log(list(self.sizes.values())).sum()),
            betas=betas,
            random_state=random_state,
        )


class FactorGraph(UndirectedModel):
    """Undirected model with explicit factors: one triple is not three pairs.

    See ``UndirectedModel`` for parameters and methods.

    Examples
    --------
    >>> graph = FactorGraph({("a", "b"): [[1.0, 0.0], [0.0, 1.0]]})
    >>> round(graph.log_partition(), 4), graph.belief_propagation().tree
    (2.0064, True)
    """


class MarkovRandomField(UndirectedModel):
    """Undirected graph of variables; neighbours share a clique with a potential.

    Given its neighbours a variable is independent of all others. See ``UndirectedModel`` for
    parameters and methods.

    Examples
    --------
    >>> alike = np.log([[10.0, 1.0], [1.0, 1.0]])
    >>> field = MarkovRandomField({("roommate", "you"): alike, ("you", "colleague"): alike})
    >>> field.separated("roommate", "colleague", given="you")
    True
    """

    @classmethod
    def ising(
        cls, rows: int, columns: int, *, coupling: float, field: Any = 0.0
    ) -> MarkovRandomField:
        """Return spins -1 and 1 on a grid: J s_i s_j between neighbours, h_i s_i at each.

        Parameters
        ----------
        rows, columns
            Size of the grid, without wrapping around.
        coupling
            J, above 0 where neighbours tend to agree.
        field
            h, one number or a grid of them.
        """
        spins = np.array([-1.0, 1.0])
        h = np.broadcast_to(np.asarray(field, dtype=float), (rows, columns))
        pair = coupling * np.outer(spins, spins)
        found: list[tuple[Sequence[str], Any]] = []
        for r in range(rows):
            for c in range(columns):
                found.append(((f"{r},{c}",), h[r, c] * spins))
                found += [((f"{r},{c}", f"{r},{c + 1}"), pair)] if c + 1 < columns else []
                found += [((f"{r},{c}", f"{r + 1},{c}"), pair)] if r + 1 < rows else []
        names = [f"{r},{c}" for r in range(rows) for c in range(columns)]
        return cls(found, dict.fromkeys(names, (-1, 1)))


def _places(owner: str, scope: Sequence[str], names: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the columns of a scope."""
    for name in scope:
        if name not in names:
            raise InvalidData(
                f"{owner}: scopes must name columns, {listing(names)}; got "
                f"{name!r}.{did_you_mean(str(name), names)}"
            )
    return tuple(names.index(name) for name in scope)


def _checked(owner: str, scope: Sequence[str], table: Any) -> Factor:
    names = (scope,) if isinstance(scope, str) else tuple(scope)
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != len(names) or len(set(names)) < len(names):
        raise InvalidData(
            f"{owner}: a potential must have one axis for each of its different variables; that of "
            f"{listing(names, 'and')} has shape {values.shape}."
        )
    if np.isnan(values).any() or np.isposinf(values).any() or not np.isfinite(values).any():
        raise InvalidData(
            f"{owner}: log-potentials must be numbers or minus infinity, not all of them; that of "
            f"{listing(names, 'and')} is not. Scale the weights down if they overflowed."
        )
    return Factor(names, values)


def _top(factor: Factor) -> float:
    return float(factor.table.max())
