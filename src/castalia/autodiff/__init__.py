"""Computation graphs one can see, and derivatives one can ask for and check."""

from castalia.autodiff.derivatives import gradient, jacobian, jvp, vjp
from castalia.autodiff.differences import finite_difference
from castalia.autodiff.fixed_point import FixedPoint, fixed_point
from castalia.autodiff.gradient_check.gradient_checker import check_gradients
from castalia.autodiff.gradient_check.gradient_mismatch import GradientCheck, Mismatch
from castalia.autodiff.graphs.box import Box, Source
from castalia.autodiff.graphs.computation_graph import Graph
from castalia.autodiff.graphs.cost import BoxCost, Cost
from castalia.autodiff.graphs.trace import trace
from castalia.autodiff.hessians import hessian, hvp
from castalia.autodiff.implicit import adjoint_gradient, adjoint_multipliers
from castalia.autodiff.ode import ODESolution, ODEStats, odeint, solve
from castalia.autodiff.rtrl import RealTimeGradient, real_time_gradient
from castalia.autodiff.spectra.condition import ConditionNumber, condition_number
from castalia.autodiff.spectra.critical_points import critical_point
from castalia.autodiff.spectra.density import SpectralDensity, hessian_density
from castalia.autodiff.spectra.spectrum import Spectrum, hessian_spectrum

__all__ = [
    "Box",
    "BoxCost",
    "ConditionNumber",
    "Cost",
    "FixedPoint",
    "GradientCheck",
    "Graph",
    "Mismatch",
    "ODESolution",
    "ODEStats",
    "RealTimeGradient",
    "Source",
    "SpectralDensity",
    "Spectrum",
    "adjoint_gradient",
    "adjoint_multipliers",
    "check_gradients",
    "condition_number",
    "critical_point",
    "finite_difference",
    "fixed_point",
    "gradient",
    "hessian",
    "hessian_density",
    "hessian_spectrum",
    "hvp",
    "jacobian",
    "jvp",
    "odeint",
    "real_time_gradient",
    "solve",
    "trace",
    "vjp",
]
