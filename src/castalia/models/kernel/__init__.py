"""Kernel machines and their kin: clusters, mixtures, random features."""

from castalia.models.kernel.kmeans import KMeans
from castalia.models.kernel.mixture import GaussianMixture

__all__ = ["GaussianMixture", "KMeans"]
