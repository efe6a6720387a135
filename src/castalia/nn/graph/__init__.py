"""Layers over graphs: convolutions, attention, recurrences and readouts, each usable alone."""

from castalia.nn.graph.adjacency import Adjacency
from castalia.nn.graph.chebyshev_convolution import ChebyshevConv
from castalia.nn.graph.edge_messages import edge_map, edge_terms, neighbour_sum
from castalia.nn.graph.gated_graph import GatedGraphConv
from castalia.nn.graph.gcn_convolution import GCNConv
from castalia.nn.graph.gin_convolution import GINConv
from castalia.nn.graph.graph_attention import GATConv, edge_softmax
from castalia.nn.graph.graph_recurrence import GraphRecurrence
from castalia.nn.graph.graph_spectrum import (
    GraphBasis,
    fourier_basis,
    graph_fourier,
    laplacian,
    walk_counts,
)
from castalia.nn.graph.nn4g_convolution import NN4GConv
from castalia.nn.graph.packed_graph import PackedGraph
from castalia.nn.graph.readouts import (
    READOUTS,
    AttentionReadout,
    Readout,
    UniversalReadout,
    readout,
)
from castalia.nn.graph.sage_convolution import SAGEConv
from castalia.nn.graph.sparse_features import SparseFeatures, dense_features, dropped, linear
from castalia.nn.graph.spectral_convolution import SpectralConv

__all__ = [
    "READOUTS",
    "Adjacency",
    "AttentionReadout",
    "ChebyshevConv",
    "GATConv",
    "GCNConv",
    "GINConv",
    "GatedGraphConv",
    "GraphBasis",
    "GraphRecurrence",
    "NN4GConv",
    "PackedGraph",
    "Readout",
    "SAGEConv",
    "SparseFeatures",
    "SpectralConv",
    "UniversalReadout",
    "dense_features",
    "dropped",
    "edge_map",
    "edge_softmax",
    "edge_terms",
    "fourier_basis",
    "graph_fourier",
    "laplacian",
    "linear",
    "neighbour_sum",
    "readout",
    "walk_counts",
]
