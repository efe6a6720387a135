"""Dense networks on tables."""

from castalia.models.dense.distribution import DistributionRegressor
from castalia.models.dense.mlp import MLPClassifier, MLPRegressor

__all__ = ["DistributionRegressor", "MLPClassifier", "MLPRegressor"]
