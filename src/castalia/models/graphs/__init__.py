"""Estimators over graphs: nodes, whole graphs and links."""

from castalia.models.graphs.graph_estimators import GraphClassifier, GraphRegressor
from castalia.models.graphs.link_predictor import LinkPredictor
from castalia.models.graphs.node_estimators import NodeClassifier, NodeRegressor
from castalia.models.graphs.node_explanation import NodeExplanation

__all__ = [
    "GraphClassifier",
    "GraphRegressor",
    "LinkPredictor",
    "NodeClassifier",
    "NodeExplanation",
    "NodeRegressor",
]
