"""Computation graphs: traced from any PyTorch code, run, differentiated, priced and drawn."""

from castalia.autodiff.graphs.boxes import Box, Source
from castalia.autodiff.graphs.cost import BoxCost, Cost
from castalia.autodiff.graphs.graph import Graph
from castalia.autodiff.graphs.trace import trace

__all__ = ["Box", "BoxCost", "Cost", "Graph", "Source", "trace"]
