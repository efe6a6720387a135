"""What is inside a network, layer by layer: sizes, weights, cost, receptive field."""

from castalia.nn.architecture.network_summary import summary
from castalia.nn.architecture.summary_records import Layer, Summary

__all__ = ["Layer", "Summary", "summary"]
