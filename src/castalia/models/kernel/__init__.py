"""Kernel machines and their kin: clusters, mixtures, random features."""

from castalia.models.kernel.feature_sweep import Sweep
from castalia.models.kernel.kmeans import KMeans
from castalia.models.kernel.mixture import GaussianMixture
from castalia.models.kernel.random_features_regressor import RandomFeatureRegression

__all__ = ["GaussianMixture", "KMeans", "RandomFeatureRegression", "Sweep"]
