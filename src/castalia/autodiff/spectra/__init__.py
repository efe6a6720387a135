"""Eigenvalues of Hessians from products alone: extremes, densities, condition numbers."""

from castalia.autodiff.spectra.condition import ConditionNumber, condition_number
from castalia.autodiff.spectra.critical_points import critical_point
from castalia.autodiff.spectra.density import SpectralDensity, hessian_density
from castalia.autodiff.spectra.spectrum import Spectrum, hessian_spectrum

__all__ = [
    "ConditionNumber",
    "SpectralDensity",
    "Spectrum",
    "condition_number",
    "critical_point",
    "hessian_density",
    "hessian_spectrum",
]
