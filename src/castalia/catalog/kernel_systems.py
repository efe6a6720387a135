"""Kernel machines and their kin."""

from castalia.catalog.records import System

__all__ = ["KERNEL"]

KERNEL = (
    System(
        name="KMeans",
        path="castalia.models.kernel:KMeans",
        family="kernel",
        tasks=("clustering", "features"),
        data="table",
        summary="Clusters around centres: every row belongs to the nearest one",
        reference="1982, Lloyd, Least squares quantization in PCM",
        small={"n_clusters": 3},
        toy="blobs",
        pass_mark=0.9,
        rows=("PAR-03",),
    ),
    System(
        name="GaussianMixture",
        path="castalia.models.kernel:GaussianMixture",
        family="kernel",
        tasks=("clustering", "density"),
        data="table",
        summary="Density as a weighted sum of normal distributions, one a cluster",
        reference="1977, Dempster, Laird, Rubin, Maximum likelihood via the EM algorithm",
        small={"n_components": 3},
        toy="blobs",
        pass_mark=0.9,
        rows=("PAR-03",),
    ),
    System(
        name="RandomFeatureRegression",
        path="castalia.models.kernel:RandomFeatureRegression",
        family="kernel",
        tasks=("regression", "multioutput"),
        data="table",
        summary="Least squares on random waves of the inputs; of all best fits, the shortest",
        reference="2007, Rahimi, Recht, Random features for large-scale kernel machines",
        small={"n_frequencies": 50, "alpha": 1e-3},
        toy="sine",
        pass_mark=0.95,
        rows=("REG-37", "KER-02"),
    ),
)
