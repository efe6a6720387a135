"""Bayesian networks against pgmpy: marginals, samples and structure of alarm and its like.

`CASTALIA_DATA` names a folder with `bayesnets/alarm.bif.gz` and others of the bnlearn repository;
without it a random network of 37 variables stands in. ``--propagation 1`` races pgmpy's
``BeliefPropagation`` too, which needs more than a minute and much memory.
"""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import (
    Bar,
    Contender,
    Report,
    Result,
    installed,
    main,
    race,
    ratio,
    table,
)

OTHERS = ("asia", "cancer", "earthquake", "survey", "sachs", "child")
Fit = Callable[[], Callable[[], float]]


@dataclass(frozen=True)
class Size:
    nodes: int
    samples: int
    rows: int
    rounds: int
    slow: bool = True  # whether pgmpy's sampling and search are raced too
    others: tuple[str, ...] = ()


SIZES = {
    "full": Size(37, 1_000_000, 10_000, 3, others=OTHERS),
    "quick": Size(37, 50_000, 2_000, 1, others=("asia",)),
    "tiny": Size(8, 500, 300, 1, slow=False),
}


def run(scale: str = "full", propagation: int = 0) -> Report:
    """Race marginals, sampling and structure search on one network; compare the others once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pgmpy, about its own names
        logging.getLogger("pgmpy").setLevel(logging.ERROR)
        return _run(SIZES[scale], bool(propagation))


def _run(size: Size, propagation: bool) -> Report:
    net, name = network("alarm", size.nodes)
    peer = pgmpy_network(net) if installed("pgmpy") else None
    texts, bars, figures = [], [], {}
    for what, contenders, rounds in _races(net, peer, size, propagation):
        found = race(contenders, rounds, warm_up=int(rounds > 1))
        print(what, {name: min(result.wall) for name, result in found.items()}, flush=True)
        texts.append(f"### {what}\n\n{table(found, 'castalia', 'score')}")
        bars += _bars(what, found)
        figures[what] = {key: vars(result) for key, result in found.items()}
    if peer is not None:
        texts.append(_agreement(size, bars))
    setting = f"{name}, {len(net.nodes_)} variables, {len(net.edges_)} edges, {size.rounds} rounds."
    return Report("bayesian_networks", setting, "\n\n".join(texts), bars, figures)


def network(name: str, nodes: int) -> tuple[Any, str]:
    """Return a network of the repository, or a random one, and what to call it."""
    from castalia import BayesianNetwork

    path = Path(os.environ.get("CASTALIA_DATA", "")) / "bayesnets" / f"{name}.bif.gz"
    if nodes >= 37 and path.is_file():
        return BayesianNetwork.read(path), name
    return random_network(nodes), "random tables"


def random_network(n: int) -> Any:
    """Return random tables over two to four states, each with up to three near parents."""
    from castalia.models.probabilistic import BayesianNetwork, TableNode

    random = np.random.default_rng(0)
    sizes, nodes = random.integers(2, 5, n), []
    for i in range(n):
        near = range(max(0, i - 6), i)
        count = int(random.integers(0, min(len(near), 3) + 1))
        above = sorted(random.choice(list(near), count, replace=False).tolist()) if near else []
        tables = random.dirichlet(np.ones(sizes[i]), size=[sizes[j] for j in above])
        states = tuple(f"s{k}" for k in range(sizes[i]))
        nodes.append(TableNode(f"v{i}", states, tables, tuple(f"v{j}" for j in above)))
    return BayesianNetwork.build(nodes)


def pgmpy_network(net: Any) -> Any:
    """Return the same network for pgmpy."""
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    made = DiscreteBayesianNetwork(net.edges_)
    made.add_nodes_from([name for name in net.nodes_ if name not in made.nodes()])
    for name, node in net.nodes_.items():
        k, q = len(node.states), int(np.prod(node.table.shape[:-1], dtype=int))
        states = {v: list(net.nodes_[v].states) for v in (name, *node.parents)}
        cards = [len(net.nodes_[v].states) for v in node.parents]
        values = node.table.reshape(q, k).T
        made.add_cpds(TabularCPD(name, k, values, list(node.parents), cards, state_names=states))
    return made


def _evidence(net: Any) -> dict[str, Any]:
    """Return the states of three variables of one sampled row."""
    row = net.sample(1, random_state=3)
    return {name: row.column(name)[0] for name in list(net.nodes_)[-3:]}


def _races(
    net: Any, peer: Any, size: Size, propagation: bool
) -> Iterable[tuple[str, list[Contender], int]]:
    evidence = _evidence(net)
    ours = [Contender("castalia", _marginals(net, evidence))]
    theirs = [] if peer is None else [Contender("pgmpy elimination", _elimination(peer, evidence))]
    yield "all marginals given three variables", [*ours, *theirs], max(size.rounds, 2)
    slow = peer is not None and size.slow
    if slow and propagation:
        theirs = [Contender("pgmpy propagation", _propagation(peer, evidence))]
        yield "all marginals by a junction tree", [*ours, *theirs], 1
    ours = [Contender("castalia", _samples(net, size.samples))]
    theirs = [Contender("pgmpy", _peer_samples(peer, size.samples))] if slow else []
    yield f"{size.samples:,} rows sampled", [*ours, *theirs], 1
    rows = net.sample(size.rows, random_state=1).table().to_pandas().astype(object)
    ours = [Contender("castalia", _search(rows))]
    theirs = [Contender("pgmpy", _peer_search(rows))] if slow else []
    yield f"structure from {size.rows:,} rows, BIC a row", [*ours, *theirs], 1


def _marginals(net: Any, evidence: dict[str, Any]) -> Fit:
    def fit() -> Callable[[], float]:
        found = net.marginals(evidence)
        return lambda: float(sum(max(p.values()) for p in found.values()))

    return fit


def _elimination(peer: Any, evidence: dict[str, Any]) -> Fit:
    from pgmpy.inference import VariableElimination

    asked = [name for name in peer.nodes() if name not in evidence]

    def fit() -> Callable[[], float]:
        engine = VariableElimination(peer)
        found = [engine.query([v], evidence=evidence, show_progress=False).values for v in asked]
        return lambda: float(sum(p.max() for p in found) + len(evidence))

    return fit


def _propagation(peer: Any, evidence: dict[str, Any]) -> Fit:
    """A calibrated junction tree and one marginal of it: a bound for the time of all."""
    from pgmpy.inference import BeliefPropagation

    asked = next(name for name in peer.nodes() if name not in evidence)

    def fit() -> Callable[[], float]:
        engine = BeliefPropagation(peer)
        engine.calibrate()
        found = engine.query([asked], evidence=evidence, show_progress=False)
        return lambda: float(found.values.max())

    return fit


def _samples(net: Any, n: int) -> Fit:
    def fit() -> Callable[[], float]:
        rows = net.sample(n, random_state=0)
        return lambda: float(len(rows))

    return fit


def _peer_samples(peer: Any, n: int) -> Fit:
    from pgmpy.sampling import BayesianModelSampling

    def fit() -> Callable[[], float]:
        engine = BayesianModelSampling(peer)
        rows = engine.forward_sample(n, show_progress=False, seed=0, n_jobs=1)
        return lambda: float(len(rows))

    return fit


def _search(rows: Any) -> Fit:
    from castalia import BayesianNetwork

    def fit() -> Callable[[], float]:
        net = BayesianNetwork(kinds="discrete").fit(rows)
        return lambda: bic(rows, net.edges_)

    return fit


def _peer_search(rows: Any) -> Fit:
    from pgmpy.estimators import HillClimbSearch

    def fit() -> Callable[[], float]:
        found = HillClimbSearch(rows).estimate("bic-d", max_indegree=4, show_progress=False)
        return lambda: bic(rows, list(found.edges()))

    return fit


def bic(rows: Any, edges: list[tuple[str, str]]) -> float:
    """Return the BIC of a graph, a row: the same arithmetic for both sides."""
    from castalia.models.probabilistic.family_scores import FamilyScores

    codes = {name: rows[name].astype("category").cat.codes.to_numpy() for name in rows}
    states = {name: int(code.max()) + 1 for name, code in codes.items()}
    score = FamilyScores(codes, states, np.ones(len(rows)))
    parents = {n: frozenset(p for p, c in edges if c == n) for n in rows}
    return sum(score(n, above) for n, above in parents.items()) / len(rows)


def skeleton_f1(found: Iterable[tuple[str, str]], true: Iterable[tuple[str, str]]) -> float:
    """Return the F1 score of undirected edges."""
    one, other = ({frozenset(edge) for edge in edges} for edges in (found, true))
    return 2 * len(one & other) / max(len(one) + len(other), 1)


def _bars(what: str, found: dict[str, Result]) -> list[Bar]:
    ours, bars = found["castalia"], []
    least = {"pgmpy elimination": 20.0, "pgmpy": 20.0, "pgmpy propagation": 5.0}
    for name, theirs in found.items():
        if name == "castalia":
            continue
        wanted = 10.0 if what.startswith("structure") else least[name]
        faster = ratio(theirs, ours, "wall").median
        bars.append(Bar(f"{what}: times as fast as {name}", faster, ">=", wanted))
        apart = abs(ours.score - theirs.score)
        if what.startswith("structure"):
            bars.append(Bar(f"{what}: below {name}'s", theirs.score - ours.score, "<=", 1e-6))
        elif name == "pgmpy elimination":
            bars.append(Bar(f"{what}: apart from {name}'s, summed", apart, "<=", 1e-9))
    return bars


def _agreement(size: Size, bars: list[Bar]) -> str:
    """Compare all marginals of further networks with pgmpy's, and report learnt skeletons."""
    from pgmpy.inference import VariableElimination

    from castalia import BayesianNetwork

    lines = [
        "| network | apart from pgmpy | skeleton F1 | directed edges | seconds |",
        "|---|---|---|---|---|",
    ]
    for name in ("alarm", *size.others):
        net, called = network(name, 37)
        if called != name:
            continue
        evidence, engine = _evidence(net), VariableElimination(pgmpy_network(net))
        exact = net.marginals(evidence)
        apart = 0.0
        for node in net.nodes_:
            if node not in evidence:
                found = engine.query([node], evidence=evidence, show_progress=False)
                names = found.state_names[node]
                apart = max(
                    apart,
                    max(abs(exact[node][s] - p) for s, p in zip(names, found.values, strict=True)),
                )
        rows = net.sample(size.rows, random_state=2).table().to_pandas().astype(object)
        start = time.perf_counter()
        learnt = BayesianNetwork(kinds="discrete").fit(rows)
        took = time.perf_counter() - start
        same = len(set(learnt.edges_) & set(net.edges_))
        f1 = skeleton_f1(learnt.edges_, net.edges_)
        lines.append(
            f"| {name} | {apart:.1e} | {f1:.3f} | {same} of {len(net.edges_)} | {took:.2f} |"
        )
        bars.append(Bar(f"{name}: marginals apart from pgmpy's", apart, "<=", 1e-9))
    return "### Other networks, marginals given three variables and graphs learnt\n\n" + "\n".join(
        lines
    )


if __name__ == "__main__":
    main(run, propagation=int)
