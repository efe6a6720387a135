"""Dense networks."""

from castalia.nets.dense.mlp import MLP
from castalia.nets.dense.mlp_ensemble import MLPEnsemble

__all__ = ["MLP", "MLPEnsemble"]
