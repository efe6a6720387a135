"""Many graphs with a class or a number each: a folder of the TU collection, of GraphML or GML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from castalia.data import Graphs
from castalia.data.graphs import GraphSetAdapter, holds_graphs, read_graphs
from castalia.data.tables.table_reader import read_table
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.answer_scores import Answers
from castalia.method.blend import Blend
from castalia.method.classic_model import ClassicModel
from castalia.method.fit_plan import FitPlan
from castalia.method.graphs.graph_baselines import (
    GRAPH_BASELINES,
    ColourCounts,
    GraphSummaries,
    graph_baseline,
)
from castalia.method.graphs.graph_view import gallery
from castalia.method.kinds.graph_kind import GraphKind
from castalia.method.kinds.kind import Asked, NewRows, refuse
from castalia.method.table_baselines import answer
from castalia.method.task import find_task
from castalia.method.train_test_split import LEAST_ROWS, REPEATS, Part, make_parts
from castalia.method.verdict import Verdict
from castalia.utils.text import plural

__all__ = ["GraphSets"]

LABEL = "label"  # what the target is called where nobody says


class GraphSets(GraphKind):
    """Graphs as rows."""

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        refuse(plan, ("nodes", "group", "time", "text"), "graphs")
        self.target = plan.target or LABEL
        graphs = _known(plan.data, self.target, "fit")
        if len(graphs) < LEAST_ROWS:
            raise InvalidData(
                f"fit: {plan.name} must have {LEAST_ROWS} graphs at least to train and test; got "
                f"{len(graphs)}."
            )
        table = read_table(pa.table({self.target: graphs.y, "graph": list(graphs.names)}))
        task = find_task(table.with_target(self.target), plan.task)
        self.task = type(task)(task.kind, task.why, task.y, task.classes, "graph")
        self.X = graphs
        self.parts, self.notes = make_parts(table, self.task, plan, repeats=REPEATS)

    @staticmethod
    def holds(plan: FitPlan) -> bool:
        """Whether a plan names a folder of graphs."""
        return isinstance(plan.data, Graphs) or holds_graphs(plan.data)

    def facts(self) -> dict[str, Any]:
        """Count graphs and their nodes."""
        return {"source": self.plan.name, "what": self._sizes()}

    def _sizes(self) -> str:
        nodes = [len(graph) for graph in self.X]
        return f"{plural(len(self.X), 'graph')} of {min(nodes):,} to {max(nodes):,} nodes"

    @property
    def baselines(self) -> dict[str, str]:
        """Guessing, boosting on summaries, and counts of colours."""
        return dict(GRAPH_BASELINES)

    def baseline(self, key: str, part: Part) -> tuple[Any, Answers]:
        """Fit a baseline."""
        rounds, seed = self.plan.boosting_rounds, self.plan.seed + part.seed
        model = graph_baseline(key, self.task.kind, rounds, seed)
        return model, answer(model, *self.rows(part.train), self.X.take(part.test), self.task)

    def baseline_note(self, key: str) -> str:
        """Say what a baseline sees."""
        notes = {
            "boosting": "numbers of nodes and edges, degrees, and means of features",
            "colours": "counts of neighbourhoods up to three hops, linear",
        }
        return notes.get(key) or super().baseline_note(key)

    def usual_model(self) -> str:
        """Return the estimator of graphs for the task."""
        return "GraphClassifier" if self.task.kind == "classification" else "GraphRegressor"

    @property
    def title(self) -> str:
        """Heading of the report."""
        return f"Graphs of {self.plan.name}"

    def advice(self, verdict: Verdict) -> list[str]:
        """Say what few graphs suggest."""
        if len(self.X) >= 500:
            return []
        return ["With few graphs scores vary: --cv 10 tests every graph once."]

    def described(self) -> dict[str, Any]:
        """Return the sizes of the graphs."""
        nodes = np.array([len(graph) for graph in self.X])
        edges = np.array([len(graph.edges) for graph in self.X])
        first = self.X.graphs[0]
        return {
            "facts": {
                "Graphs": f"{len(self.X):,}, {'directed' if first.directed else 'undirected'}",
                "Nodes": f"{nodes.min():,} to {nodes.max():,}, {nodes.mean():.1f} on average",
                "Edges": f"{edges.min():,} to {edges.max():,}, {edges.mean():.1f} on average",
                "Features of a node": f"{first.width:,}" if first.width else "none but its degree",
            }
        }

    def shown(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return the name and the size of each graph."""
        return [
            {
                "row": {
                    "graph": str(self.X.names[row]),
                    "nodes": len(self.X.graphs[row]),
                    "edges": len(self.X.graphs[row].edges),
                }
            }
            for row in rows
        ]

    def sections(self, model: Any, tested: np.ndarray, answers: Answers) -> dict[str, Any]:
        """Draw a few graphs of each class, or of each quarter of the numbers."""
        return {"network": {"gallery": gallery(self.X, self.task)}}

    @staticmethod
    def answered_by(model: Any) -> bool:
        """Whether a model takes graphs."""
        model = model.first if isinstance(model, Blend) else model
        classic = isinstance(model, ClassicModel) and isinstance(
            model.features, ColourCounts | GraphSummaries
        )
        return classic or isinstance(getattr(model, "adapter_", None), GraphSetAdapter)

    @staticmethod
    def new_rows(model: Any, data: Sequence[Any], asked: Asked) -> NewRows:
        """Read a folder of graphs."""
        graphs = _read(data[0], None)
        return NewRows(graphs, {"graph": graphs.names}, [], unit="graph")

    @staticmethod
    def known_rows(model: Any, data: Any, asked: Asked) -> NewRows:
        """Read graphs whose target is known."""
        target = asked.known_target()
        graphs = _known(data, target, "evaluate")
        return NewRows(graphs, {}, [], [], target, graphs.y, "graph")


def _read(data: Any, target: str | None) -> Graphs:
    return data if isinstance(data, Graphs) else read_graphs(Path(data), target=target)


def _known(data: Any, target: str, caller: str) -> Graphs:
    """Read graphs with their targets."""
    graphs = _read(data, target)
    if graphs.y is None:
        raise InvalidParameter(f"{caller}: graphs must have targets; got `Graphs` without y.")
    return graphs
