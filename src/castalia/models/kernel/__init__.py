"""Kernel machines and their kin: Gaussian processes, clusters, mixtures, random features."""

from castalia.models.kernel.covariance_kernels import (
    RBF,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    White,
)
from castalia.models.kernel.feature_sweep import Sweep
from castalia.models.kernel.gaussian_process_classifier import GaussianProcessClassifier
from castalia.models.kernel.gaussian_process_regressor import GaussianProcessRegressor
from castalia.models.kernel.kernel_algebra import Constant, Kernel
from castalia.models.kernel.kernel_machines import (
    KernelRidge,
    LogisticKernelMachine,
    SupportVectorMachine,
)
from castalia.models.kernel.kmeans import KMeans
from castalia.models.kernel.mixture import GaussianMixture
from castalia.models.kernel.random_features_regressor import RandomFeatureRegression
from castalia.models.kernel.sparse_gaussian_process import SparseGaussianProcess

__all__ = [
    "RBF",
    "Constant",
    "GaussianMixture",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "KMeans",
    "Kernel",
    "KernelRidge",
    "Linear",
    "LogisticKernelMachine",
    "Matern",
    "Periodic",
    "RandomFeatureRegression",
    "RationalQuadratic",
    "SparseGaussianProcess",
    "SupportVectorMachine",
    "Sweep",
    "White",
]
