"""Dense networks on tables."""

from castalia.models.dense.distribution_regressor import DistributionRegressor
from castalia.models.dense.mlp_estimators import MLPClassifier, MLPRegressor

__all__ = ["DistributionRegressor", "MLPClassifier", "MLPRegressor"]
