"""Dense networks."""

from castalia.nets.dense.mlp import MLP

__all__ = ["MLP"]
