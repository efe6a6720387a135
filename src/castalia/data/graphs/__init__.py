"""Graphs: one with its nodes, many side by side, read from files and from other libraries."""

from castalia.data.graphs.foreign_graphs import as_graph
from castalia.data.graphs.graph import Graph
from castalia.data.graphs.graph_adapters import GraphSetAdapter, LinkAdapter, NodeAdapter
from castalia.data.graphs.graph_colours import refined_colours
from castalia.data.graphs.graph_profile import GraphProfile, graph_profile
from castalia.data.graphs.graph_reader import holds_graph, holds_graphs, read_graph, read_graphs
from castalia.data.graphs.graph_rows import GraphSetRows, WholeGraphRows
from castalia.data.graphs.graph_set import Graphs
from castalia.data.graphs.graph_views import GraphNodes, GraphPairs, GraphRowsView
from castalia.data.graphs.neighbour_rows import NeighbourRows

__all__ = [
    "Graph",
    "GraphNodes",
    "GraphPairs",
    "GraphProfile",
    "GraphRowsView",
    "GraphSetAdapter",
    "GraphSetRows",
    "Graphs",
    "LinkAdapter",
    "NeighbourRows",
    "NodeAdapter",
    "WholeGraphRows",
    "as_graph",
    "graph_profile",
    "holds_graph",
    "holds_graphs",
    "read_graph",
    "read_graphs",
    "refined_colours",
]
