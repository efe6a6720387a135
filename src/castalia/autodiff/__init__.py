"""Computation graphs one can see, and derivatives one can ask for and check."""

from castalia.autodiff.check import check_gradients
from castalia.autodiff.conditioning import condition_number, critical_point
from castalia.autodiff.curvature import hessian, hvp
from castalia.autodiff.density import SpectralDensity, hessian_density
from castalia.autodiff.derivatives import gradient, jacobian, jvp, vjp
from castalia.autodiff.differences import finite_difference
from castalia.autodiff.findings import GradientCheck, Mismatch
from castalia.autodiff.spectrum import Spectrum, hessian_spectrum

__all__ = [
    "GradientCheck",
    "Mismatch",
    "SpectralDensity",
    "Spectrum",
    "check_gradients",
    "condition_number",
    "critical_point",
    "finite_difference",
    "gradient",
    "hessian",
    "hessian_density",
    "hessian_spectrum",
    "hvp",
    "jacobian",
    "jvp",
    "vjp",
]
