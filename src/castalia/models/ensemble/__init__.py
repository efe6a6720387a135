"""Ensembles: several models that decide together."""

import castalia.models.ensemble.trees  # noqa: F401  (lets saved models hold decision trees)
from castalia.models.ensemble.adaboost import AdaBoost
from castalia.models.ensemble.bagging import Bagging
from castalia.models.ensemble.deep import DeepEnsemble
from castalia.models.ensemble.dropout import DropoutEnsemble
from castalia.models.ensemble.gradient_boost import GradientBoost
from castalia.models.ensemble.snapshot import SnapshotEnsemble
from castalia.models.ensemble.weight_average import WeightAverage

__all__ = [
    "AdaBoost",
    "Bagging",
    "DeepEnsemble",
    "DropoutEnsemble",
    "GradientBoost",
    "SnapshotEnsemble",
    "WeightAverage",
]
