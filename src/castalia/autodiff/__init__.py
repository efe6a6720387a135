"""Derivatives one can see: computation graphs of any PyTorch code."""

from castalia.autodiff.boxes import Box, Source
from castalia.autodiff.cost import BoxCost, Cost
from castalia.autodiff.graph import Graph
from castalia.autodiff.trace import trace

__all__ = ["Box", "BoxCost", "Cost", "Graph", "Source", "trace"]
