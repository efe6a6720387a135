"""Kernel machines and their kin: clusters, mixtures, random features."""

from castalia.models.kernel.kmeans import KMeans

__all__ = ["KMeans"]
