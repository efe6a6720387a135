"""Probabilities of words from a hidden vector: in full, along a tree, or against noise."""

from castalia.nn.words.full_softmax import FullSoftmax
from castalia.nn.words.hierarchical_softmax import HierarchicalSoftmax
from castalia.nn.words.huffman_tree import huffman_paths
from castalia.nn.words.negative_sampling import NegativeSampling

__all__ = ["FullSoftmax", "HierarchicalSoftmax", "NegativeSampling", "huffman_paths"]
