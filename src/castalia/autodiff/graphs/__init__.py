"""Computation graphs: traced from any PyTorch code, run, differentiated, priced and drawn."""

from castalia.autodiff.graphs.box import Box, Source
from castalia.autodiff.graphs.computation_graph import Graph
from castalia.autodiff.graphs.cost import BoxCost, Cost
from castalia.autodiff.graphs.trace import trace

__all__ = ["Box", "BoxCost", "Cost", "Graph", "Source", "trace"]
