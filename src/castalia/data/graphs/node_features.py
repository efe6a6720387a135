"""Features of nodes as a network takes them: scaled as was learnt, or who each node is."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, issparse

from castalia.data.graphs.graph import Graph
from castalia.data.tables.dataset import Dataset
from castalia.data.tables.table_encoder import TableEncoder
from castalia.data.tables.table_reader import read_table
from castalia.errors import InvalidData
from castalia.utils.text import did_you_mean

__all__ = ["NodeFeatures"]

MOSTLY = 0.5  # share of zeros above which features count as occurrences
FEW = 0.1  # share of values that are not zero below which features are kept sparse


class NodeFeatures:
    """How the features of nodes become numbers.

    Parameters
    ----------
    scaling
        ``"columns"``: mean 0 and deviation 1, missing values flagged, words as categories;
        ``"rows"``: each node's features sum to one, for counts and occurrences; ``None``: as they
        are; ``"auto"``: rows where features are mostly zero and never negative, columns otherwise.
    named
        Whether nodes without features are known by their names, each with a vector that is learnt;
        otherwise by the number of their edges.
    """

    def __init__(self, scaling: str | None = "auto", *, named: bool = True) -> None:
        self.scaling, self.named = scaling, named
        self.encoder: TableEncoder | None = None
        self.ids: np.ndarray | None = None
        self.columns: int | None = None  # of x; None: it had none
        self.names: list[str] | None = None  # of its columns, where it was a table

    @property
    def inputs(self) -> int:
        """Width of a node's encoded features."""
        if self.encoder is not None:
            return self.encoder.inputs
        if self.columns is None:
            return 1 if self.named else 2
        return self.columns

    @property
    def categories(self) -> tuple[int, ...]:
        """Sizes of the categorical columns, the last ones; names of nodes are one."""
        if self.encoder is not None:
            return tuple(self.encoder.categories)
        return () if self.ids is None else (len(self.ids) + 1,)

    def fit(self, graphs: list[Graph]) -> Self:
        """Learn from the features of all nodes, labelled or not."""
        first = graphs[0].x
        if first is None:
            self.ids = np.sort(graphs[0].ids) if self.named else None
            return self
        self.columns = graphs[0].width
        table = not issparse(first) and not isinstance(first, np.ndarray)
        if self.scaling == "auto":
            self.scaling = "columns" if table or not _occurrences(graphs) else "rows"
        if table or self.scaling == "columns":
            self.encoder = TableEncoder()
            self.names = list(map(str, first.columns)) if table else None
            self.encoder.fit(_joined(graphs) if table else _stacked(graphs))
        return self

    def check(self, graph: Graph, owner: str) -> None:
        """Refuse a graph whose nodes are described otherwise than those learnt from."""
        if self.names is not None and hasattr(graph.x, "columns"):
            _check_columns(graph, self.names, owner)
            return
        width = None if graph.x is None else graph.width
        if width != self.columns:
            raise InvalidData(
                f"{owner}: nodes must have {self.columns or 'no'} features, as in fit; got "
                f"{width or 'none'}."
            )
        if self.ids is not None:
            unknown = ~np.isin(graph.ids, self.ids)
            if unknown.any():
                raise InvalidData(
                    f"{owner}: nodes must have been in the graph of fit, as they have no features "
                    f"to be known by; got {graph.ids[unknown].tolist()[0]!r} and "
                    f"{int(unknown.sum()) - 1:,} others. Give features x to predict for new nodes."
                )

    def encode(self, graph: Graph, dtype: Any) -> Any:
        """Return the features of nodes, (N, inputs); a scipy matrix where few are not 0."""
        if graph.x is None:
            return self._without(graph, dtype)
        if self.encoder is not None:
            x = graph.x.toarray() if issparse(graph.x) else graph.x
            named = x if self.names is None else _table(x).select(self.names)
            return self.encoder.encode(named, dtype)
        x = graph.x.astype(dtype)
        if not issparse(x) and np.count_nonzero(x) < FEW * x.size:
            x = csr_array(x)
        if self.scaling == "rows":
            total = np.asarray(abs(x).sum(axis=1)).reshape(-1, 1)
            scale = (1 / np.where(total > 0, total, 1)).astype(dtype)
            x = csr_array(x * scale) if issparse(x) else x * scale
        return x

    def _without(self, graph: Graph, dtype: Any) -> np.ndarray:
        if self.ids is not None:  # 0 is for values that were not seen
            return (np.searchsorted(self.ids, graph.ids) + 1).astype(dtype)[:, None]
        degree = np.log1p(graph.degrees).astype(dtype)
        return np.stack([np.ones_like(degree), degree], axis=1)

    def state(self) -> dict[str, Any]:
        """Return what saving needs."""
        encoder = None if self.encoder is None else self.encoder.state()
        return {**vars(self), "encoder": encoder}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> NodeFeatures:
        """Return features from their saved state."""
        made = cls()
        vars(made).update(state)
        if made.encoder is not None:
            made.encoder = TableEncoder.from_state(state["encoder"])
        return made


def _table(x: Any) -> Dataset:
    return x if isinstance(x, Dataset) else read_table(x)


def _check_columns(graph: Graph, names: list[str], owner: str) -> None:
    """Refuse a table of nodes that lacks a column of the one learnt from; others are left aside."""
    here = list(map(str, graph.x.columns))
    missing = [name for name in names if name not in here]
    if missing:
        raise InvalidData(
            f"{owner}: nodes must have every column used in fit; `{missing[0]}` is missing."
            f"{did_you_mean(missing[0], here)}"
        )


def _joined(graphs: list[Graph]) -> Any:
    """Return the tables of the nodes of all graphs as one."""
    if len(graphs) == 1:
        return graphs[0].x
    return pa.concat_tables([_table(graph.x).table() for graph in graphs])


def _stacked(graphs: list[Graph]) -> np.ndarray:
    parts = [graph.x.toarray() if issparse(graph.x) else graph.x for graph in graphs]
    return np.concatenate(parts) if len(parts) > 1 else np.asarray(parts[0])


def _occurrences(graphs: list[Graph]) -> bool:
    """Whether features are mostly zero and never negative."""
    values = [g.x.data if issparse(g.x) else g.x for g in graphs]
    size = sum(int(np.prod(g.x.shape)) for g in graphs)
    filled = sum(int(np.count_nonzero(part)) for part in values)
    return filled < (1 - MOSTLY) * size and all((part >= 0).all() for part in values)
