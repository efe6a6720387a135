"""Networks over graphs: from features of nodes and edges to scores or states of the nodes."""

from castalia.nets.graphs.chebyshev_network import ChebyshevNetwork
from castalia.nets.graphs.gat import GAT
from castalia.nets.graphs.gated_graph_network import GatedGraphNetwork
from castalia.nets.graphs.gcn import GCN
from castalia.nets.graphs.gin import GIN
from castalia.nets.graphs.graph_heads import SCORES, GraphHead, LinkHead, NodeHead, NodeInputs
from castalia.nets.graphs.graph_sage import GraphSAGE
from castalia.nets.graphs.nn4g import NN4G
from castalia.nets.graphs.scarselli import ScarselliNetwork
from castalia.nets.graphs.spectral_network import SpectralNetwork

__all__ = [
    "GAT",
    "GCN",
    "GIN",
    "NN4G",
    "SCORES",
    "ChebyshevNetwork",
    "GatedGraphNetwork",
    "GraphHead",
    "GraphSAGE",
    "LinkHead",
    "NodeHead",
    "NodeInputs",
    "ScarselliNetwork",
    "SpectralNetwork",
]
