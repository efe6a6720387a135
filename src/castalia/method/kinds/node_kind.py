"""Nodes of a graph: a list of edges, a table of nodes, a column to predict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from castalia.data import Graph
from castalia.data.graphs import GraphNodes, NodeAdapter, graph_profile, read_graph
from castalia.data.tables.table_reader import read_table
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.answer_scores import Answers, answers_of
from castalia.method.blend import Blend
from castalia.method.classic_model import ClassicModel
from castalia.method.fit_plan import FitPlan
from castalia.method.graphs.graph_view import (
    drawn_part,
    edges_between,
    reasons,
    scores_by_share,
)
from castalia.method.graphs.node_baselines import (
    KnownLabels,
    NodeColumns,
    label_propagation,
    node_baseline,
)
from castalia.method.kinds.graph_kind import GraphKind
from castalia.method.kinds.kind import Asked, NewRows, refuse
from castalia.method.table_baselines import answer
from castalia.method.task import find_task
from castalia.method.train_test_split import LEAST_ROWS, REPEATS, Part, make_parts
from castalia.method.verdict import Verdict
from castalia.models.graphs.partial_targets import labelled_targets
from castalia.utils.text import plural

__all__ = ["Nodes"]

NAMES = {
    "guess": "Guessing",
    "linear": "Features alone, linear",
    "labels": "Label propagation",
    "boosting": "Boosting, neighbours",
}


class Nodes(GraphKind):
    """Nodes of one graph; those without a target take part as neighbours."""

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        refuse(plan, ("group", "time", "text"), "nodes of a graph")
        if plan.target is None:
            raise InvalidParameter(
                "fit: `target` must name the column of the nodes to predict; got none."
            )
        self.target = plan.target
        self.graph = read_graph(plan.data, plan.nodes, target=plan.target, encoding=plan.encoding)
        _, known = labelled_targets("fit", self.graph, self.graph.y, negative=False)
        rows = np.flatnonzero(known)
        if len(rows) < LEAST_ROWS:
            raise InvalidData(
                f"fit: {plan.nodes} must have {LEAST_ROWS} nodes with a target at least; got "
                f"{len(rows)}."
            )
        table = read_table(plan.nodes, target=plan.target, encoding=plan.encoding).take(rows)
        self.task = replace(find_task(table, plan.task), unit="node")
        self.X = GraphNodes(self.graph, rows)
        self.parts, more = make_parts(table, self.task, plan, repeats=REPEATS)
        self.profile = graph_profile(self.graph)
        self.notes = [*self._remarks(), *more]

    def _remarks(self) -> list[str]:
        found, p = [], self.profile
        unknown = len(self.graph) - len(self.X)
        if unknown:
            found.append(f"{plural(unknown, 'node')} without a target take part as neighbours.")
        if p.homophily is not None and p.expected is not None:
            found.append(
                f"{100 * p.homophily:.0f} % of the edges join nodes of the same class; "
                f"{100 * p.expected:.0f} % would if classes did not matter."
            )
        if p.isolated:
            found.append(f"{plural(p.isolated, 'node')} have no edge.")
        if p.twins:
            found.append(f"{plural(p.twins, 'node')} have a twin with equal features and edges.")
        return found

    @staticmethod
    def holds(plan: FitPlan) -> bool:
        """Whether a plan names a table of nodes."""
        return plan.nodes is not None

    def facts(self) -> dict[str, Any]:
        """Count nodes and edges."""
        p = self.profile
        what = f"{plural(p.nodes, 'node')}, {plural(p.edges, 'edge')}, in {p.components} components"
        return {"source": f"{self.plan.data} and {self.plan.nodes}", "what": what}

    @property
    def baselines(self) -> dict[str, str]:
        """Guessing, features alone, labels alone, and summaries of neighbours."""
        classes = self.task.kind == "classification"
        return {key: name for key, name in NAMES.items() if classes or key != "labels"}

    def baseline(self, key: str, part: Part) -> tuple[Any, Answers]:
        """Fit a baseline on nodes."""
        train, test = self.X.take(part.train), self.X.take(part.test)
        y, seed = self.task.y[part.train], self.plan.seed + part.seed
        if key == "labels":
            begin = time.perf_counter()
            model = label_propagation(train, y, seed)
            return model, answers_of(model, test, self.task, time.perf_counter() - begin)
        model = node_baseline(key, self.task.kind, self.plan.boosting_rounds, seed)
        return model, answer(model, train, y, test, self.task)

    def baseline_note(self, key: str) -> str:
        """Say what a baseline sees."""
        notes = {
            "linear": "knows no edges",
            "labels": "knows no features",
            "boosting": "features, degree, and the means of the neighbours",
        }
        return notes.get(key) or super().baseline_note(key)

    def usual_model(self) -> str:
        """Return the estimator of nodes for the task."""
        return "NodeClassifier" if self.task.kind == "classification" else "NodeRegressor"

    @property
    def title(self) -> str:
        """Heading of the report."""
        return f"Nodes of {self.plan.name}"

    def advice(self, verdict: Verdict) -> list[str]:
        """Say what classes that do not keep together suggest."""
        p = self.profile
        if p.homophily is None or p.expected is None or p.homophily > p.expected + 0.1:
            return []
        return [
            "Neighbours are hardly of the same class: a network that keeps a node's own features "
            "apart may do better (--set network=sage)."
        ]

    def described(self) -> dict[str, Any]:
        """Return the profile of the graph."""
        p = self.profile
        facts = {
            "Nodes": f"{p.nodes:,}, {len(self.X):,} with a target",
            "Edges": f"{p.edges:,}, {p.loops:,} of them loops",
            "Components": f"{p.components:,}; {p.isolated:,} nodes without an edge",
            "Edges of a node": f"{p.degree_median:g} in the middle, {p.degree_largest:,} at most",
        }
        if p.homophily is not None:
            facts["Edges inside a class"] = f"{100 * p.homophily:.0f} %"
        return {"facts": facts}

    def shown(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return the name of each node and how many edges it has."""
        nodes, degrees = self.X.index[rows], self.graph.degrees
        return [{"row": {"node": str(self.graph.ids[n]), "edges": int(degrees[n])}} for n in nodes]

    def sections(self, model: Any, tested: np.ndarray, answers: Answers) -> dict[str, Any]:
        """Draw a part of the graph, mistakes along its edges, and which neighbours mattered."""
        nodes, classes = self.X.index[tested], self.task.classes
        kinds = np.full(len(self.graph), -1)
        if not len(classes):
            bounds = np.quantile(self.task.y, (0.25, 0.5, 0.75))
            kinds[self.X.index] = np.searchsorted(bounds, self.task.y)
            cuts = [f"{bound:.3g}" for bound in bounds]
            names = [f"to {cuts[0]}", f"to {cuts[1]}", f"to {cuts[2]}", "above"]
            part = drawn_part(self.graph, kinds, kinds == len(names), int(nodes[0]))
            return {"network": {"part": part, "classes": names}}
        kinds[self.X.index] = self.task.codes
        right, wrong = answers.prediction == kinds[nodes], np.zeros(len(self.graph), dtype=bool)
        wrong[nodes[~right]] = True
        first = int(nodes[(~right).argmax()])
        found = {
            "classes": classes.tolist(),
            "part": drawn_part(self.graph, kinds, wrong, first),
            "between": edges_between(self.graph, kinds, len(classes)),
            "by_share": scores_by_share(self.graph, kinds, nodes, right),
            "reasons": reasons(model, self.graph, kinds, self._chosen(nodes, right, answers)),
        }
        return {"network": found}

    def _chosen(self, nodes: np.ndarray, right: np.ndarray, answers: Answers) -> dict[int, str]:
        """Return nodes to explain: the surest right and wrong ones, and the least sure right."""
        sure = np.max(answers.probability, axis=1) if answers.probability is not None else right
        linked = self.graph.degrees[nodes] > 0
        wanted = {
            "surest, right": np.where(right & linked, sure, -1.0),
            "surest, wrong": np.where(~right & linked, sure, -1.0),
            "least sure, right": np.where(right & linked, 1 - sure, -1.0),
        }
        found: dict[int, str] = {}
        for words, order in wanted.items():
            row = int(np.argmax(order))
            if order[row] >= 0:
                said = self.task.classes[answers.prediction[row]]
                found.setdefault(
                    int(nodes[row]), f"{words}:\n{self.graph.ids[nodes[row]]} is {said}"
                )
        return found

    @staticmethod
    def answered_by(model: Any) -> bool:
        """Whether a model takes nodes."""
        model = model.first if isinstance(model, Blend) else model
        classic = isinstance(model, ClassicModel) and isinstance(
            model.features, NodeColumns | KnownLabels
        )
        return classic or isinstance(getattr(model, "adapter_", None), NodeAdapter)

    @staticmethod
    def new_rows(model: Any, data: Sequence[Any], asked: Asked) -> NewRows:
        """Read a list of edges and, as a second file, a table of nodes."""
        graph = _read(data, asked)
        return NewRows(graph[:], {"node": graph.ids.astype(str)}, [], unit="node")

    @staticmethod
    def known_rows(model: Any, data: Any, asked: Asked) -> NewRows:
        """Read nodes whose target is known."""
        target = asked.known_target()
        graph = _read(data if isinstance(data, list | tuple) else [data], asked, target)
        y, known = labelled_targets("evaluate", graph, graph.y, negative=False)
        rows = np.flatnonzero(known)
        return NewRows(GraphNodes(graph, rows), {}, [], [], target, y[rows], "node")


def _read(data: Sequence[Any], asked: Asked, target: str | None = None) -> Graph:
    """Read edges and nodes; the target of nodes to predict is no feature."""
    nodes = data[1] if len(data) > 1 else None
    names = [] if nodes is None else read_table(nodes, encoding=asked.encoding).columns
    known = target or (asked.target if asked.target in names else None)
    return read_graph(data[0], nodes, target=known, encoding=asked.encoding)
