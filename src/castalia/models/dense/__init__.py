"""Dense networks on tables."""

from castalia.models.dense.distribution_regressor import DistributionRegressor
from castalia.models.dense.mlp_estimators import MLPClassifier, MLPRegressor
from castalia.models.dense.tabular_estimators import TabularClassifier, TabularRegressor

__all__ = [
    "DistributionRegressor",
    "MLPClassifier",
    "MLPRegressor",
    "TabularClassifier",
    "TabularRegressor",
]
