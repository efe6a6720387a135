"""What is inside a network, layer by layer: sizes, weights, cost, receptive field."""

from castalia.nn.anatomy.summarise import summary
from castalia.nn.anatomy.table import Layer, Summary

__all__ = ["Layer", "Summary", "summary"]
