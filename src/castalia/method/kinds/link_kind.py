"""Links of a graph: a list of edges, some of them hidden and to be found again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from castalia.data import Graph
from castalia.data.graphs import GraphPairs, LinkAdapter, graph_profile, read_graph
from castalia.data.tables.table_reader import read_table
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.answer_scores import Answers
from castalia.method.blend import Blend
from castalia.method.classic_model import ClassicModel
from castalia.method.fit_plan import FitPlan
from castalia.method.graphs.graph_view import drawn_part
from castalia.method.graphs.hidden_links import HiddenLinks, candidates, pairs_apart
from castalia.method.graphs.pair_baselines import PAIR_BASELINES, SharedNeighbours, pair_baseline
from castalia.method.kinds.graph_kind import GraphKind
from castalia.method.kinds.kind import Asked, NewRows, refuse
from castalia.method.table_baselines import answer
from castalia.method.task import Task
from castalia.method.train_test_split import LEAST_ROWS, REPEATS, Part, make_parts
from castalia.method.verdict import Verdict
from castalia.utils.text import plural

__all__ = ["Links"]

TARGET = "link"
SUGGESTED = 15  # links that the report names
ASKED = 1_000  # pairs that are answered where none are named


class Links(GraphKind):
    """Edges of a graph, and as many pairs of nodes without one."""

    tries: ClassVar = {"hidden": (64, 128), "link": ("mlp", "dot"), "network": ("sage", "gcn")}
    metric = "roc_auc"

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        refuse(plan, ("target", "task", "group", "time", "text"), "links of a graph")
        self.target = TARGET
        self.graph = read_graph(plan.data, plan.nodes, encoding=plan.encoding)
        count = int((self.graph.edges[:, 0] != self.graph.edges[:, 1]).sum())
        if count < LEAST_ROWS:
            raise InvalidData(
                f"fit: {plan.name} must have {LEAST_ROWS} edges between two nodes at least; got "
                f"{count}."
            )
        apart = pairs_apart(self.graph, count, plan.seed)
        if len(apart) < LEAST_ROWS:
            raise InvalidData(
                f"fit: {plan.name} must leave {LEAST_ROWS} pairs of nodes without an edge to part "
                f"links from; got {len(apart)}, nearly all nodes have one."
            )
        self.X = HiddenLinks(self.graph, apart)
        why = "edges are links, and pairs without one are drawn beside them"
        self.task = Task("classification", why, self.X.y, np.array([0, 1]), "pair")
        self.parts, more = make_parts(self.X, self.task, plan, repeats=REPEATS)
        self.X.tests = [part.test for part in self.parts]
        self.profile = graph_profile(self.graph)
        self.notes = ["Links that are tested pass no messages.", *more]
        if self.profile.isolated:
            self.notes.append(f"{plural(self.profile.isolated, 'node')} have no edge.")

    @staticmethod
    def holds(plan: FitPlan) -> bool:
        """Whether a plan asks for links."""
        return plan.links

    def facts(self) -> dict[str, Any]:
        """Count nodes and edges."""
        p = self.profile
        what = f"{plural(p.nodes, 'node')}, {plural(p.edges, 'edge')}, in {p.components} components"
        return {"source": self.plan.name, "what": what}

    @property
    def baselines(self) -> dict[str, str]:
        """Guessing, and the neighbours that two nodes share."""
        return dict(PAIR_BASELINES)

    def baseline(self, key: str, part: Part) -> tuple[Any, Answers]:
        """Fit a baseline on pairs."""
        model = pair_baseline(key)
        return model, answer(model, *self.rows(part.train), self.X.take(part.test), self.task)

    def baseline_note(self, key: str) -> str:
        """Say what a baseline counts."""
        notes = {"common": "neighbours that both have", "adamic": "the same, rare ones count more"}
        return notes.get(key) or "no pair before another"

    def usual_model(self) -> str:
        """Return the estimator of links."""
        return "LinkPredictor"

    @property
    def title(self) -> str:
        """Heading of the report."""
        return f"Links of {self.plan.name}"

    def advice(self, verdict: Verdict) -> list[str]:
        """Say what nodes without features suggest."""
        if self.graph.x is not None:
            return []
        return ["Features of nodes (--nodes nodes.csv) say more about nodes with few edges."]

    def described(self) -> dict[str, Any]:
        """Return the profile of the graph."""
        p = self.profile
        facts = {
            "Nodes": f"{p.nodes:,}",
            "Edges": f"{p.edges:,}, {p.loops:,} of them loops",
            "Components": f"{p.components:,}; {p.isolated:,} nodes without an edge",
            "Edges of a node": f"{p.degree_median:g} in the middle, {p.degree_largest:,} at most",
        }
        return {"facts": facts}

    def shown(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return the names of the two nodes of each pair."""
        pairs = self.graph.ids[self.X.index[rows]]
        return [{"row": {"source": str(u), "target": str(v)}} for u, v in pairs]

    def sections(self, model: Any, tested: np.ndarray, answers: Answers) -> dict[str, Any]:
        """Draw hidden links, found and missed, and name links that may be missing."""
        links = tested < len(self.X.edges)
        found = answers.prediction[links] == 1
        first = int(self.X.index[tested[links][(~found).argmax()]][0])
        nobody = np.zeros(len(self.graph), dtype=bool)
        part = drawn_part(self.graph, np.full(len(self.graph), -1), nobody, first)
        place = np.full(len(self.graph), -1)
        place[part.pop("nodes")] = np.arange(len(part["places"]))
        ends = place[self.X.index[tested[links]]]
        here = (ends >= 0).all(axis=1)
        part |= {"found": ends[here & found], "missed": ends[here & ~found]}
        part["words"] = f"{100 * found.mean():.0f} % of the hidden links were found."
        return {"network": {"part": part}, "panels": self._suggested(model)}

    def _suggested(self, model: Any) -> list[dict[str, Any]]:
        """Return the likeliest links among pairs without one that share neighbours."""
        pairs = candidates(self.graph, ASKED)
        if not len(pairs):
            return []
        likely = model.predict_proba(GraphPairs(self.graph, pairs))[:, 1]
        best = np.argsort(-likely, kind="stable")[:SUGGESTED]
        rows = [
            [str(u), str(v), round(float(p), 3)]
            for (u, v), p in zip(self.graph.ids[pairs[best]], likely[best], strict=True)
        ]
        words = f"Likeliest of {len(pairs):,} pairs without an edge that share neighbours."
        heads = ["source", "target", "probability"]
        return [
            {"title": "Links that may be missing", "words": words, "heads": heads, "rows": rows}
        ]

    @staticmethod
    def answered_by(model: Any) -> bool:
        """Whether a model takes pairs of nodes."""
        model = model.first if isinstance(model, Blend) else model
        classic = isinstance(model, ClassicModel) and isinstance(model.features, SharedNeighbours)
        return classic or isinstance(getattr(model, "adapter_", None), LinkAdapter)

    @staticmethod
    def new_rows(model: Any, data: Sequence[Any], asked: Asked) -> NewRows:
        """Read a list of edges, a table of nodes where the model needs one, and pairs to score."""
        graph, rest = _graph(model, data, asked)
        notes = []
        if rest:
            view = graph.pairs(_pairs(rest[0], asked))
        else:
            view = GraphPairs(graph, candidates(graph, ASKED))
            notes = [
                "No pairs are named: those without an edge that share neighbours are answered."
            ]
        u, v = graph.ids[view.index].astype(str).T
        return NewRows(view, {"source": u, "target": v}, notes, unit="pair")

    @staticmethod
    def known_rows(model: Any, data: Any, asked: Asked) -> NewRows:
        """Read pairs with a column that says 1 for links and 0 for others."""
        graph, rest = _graph(model, data if isinstance(data, list | tuple) else [data], asked)
        if not rest:
            raise InvalidParameter(
                f"evaluate: a table of pairs with the column `{TARGET}` must follow the edges."
            )
        table = read_table(rest[0], target=TARGET, encoding=asked.encoding)
        view = graph.pairs(_pairs(rest[0], asked))
        return NewRows(view, {}, [], [], TARGET, table.labels(), "pair")

    @staticmethod
    def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
        """Return 1 or 0 for each pair, and the probability of a link."""
        p = model.predict_proba(X)[:, 1]
        return {"prediction": (p > 0.5).astype(int), "probability": p.astype(np.float64)}


def _graph(model: Any, data: Sequence[Any], asked: Asked) -> tuple[Graph, list[Any]]:
    """Read the edges, with the nodes where the model knows their features; and what is left."""
    model = model.first if isinstance(model, Blend) else model
    features = getattr(getattr(model, "adapter_", None), "features", None)
    described = features is not None and features.columns is not None and len(data) > 1
    nodes, rest = (data[1], data[2:]) if described else (None, data[1:])
    return read_graph(data[0], nodes, encoding=asked.encoding), list(rest)


def _pairs(source: Any, asked: Asked) -> np.ndarray:
    """Return the names of the nodes of each pair of a table, (n, 2)."""
    found = read_graph(source, directed=True, encoding=asked.encoding)
    return found.ids[found.edges]
