"""Computation graphs one can see, and derivatives one can ask for and check."""

from castalia.autodiff.boxes import Box, Source
from castalia.autodiff.check import check_gradients
from castalia.autodiff.conditioning import condition_number, critical_point
from castalia.autodiff.cost import BoxCost, Cost
from castalia.autodiff.curvature import hessian, hvp
from castalia.autodiff.density import SpectralDensity, hessian_density
from castalia.autodiff.derivatives import gradient, jacobian, jvp, vjp
from castalia.autodiff.differences import finite_difference
from castalia.autodiff.findings import GradientCheck, Mismatch
from castalia.autodiff.fixed_point import FixedPoint, fixed_point
from castalia.autodiff.graph import Graph
from castalia.autodiff.implicit import adjoint_gradient, adjoint_multipliers
from castalia.autodiff.ode import ODESolution, ODEStats, odeint, solve
from castalia.autodiff.spectrum import Spectrum, hessian_spectrum
from castalia.autodiff.trace import trace

__all__ = [
    "Box",
    "BoxCost",
    "Cost",
    "FixedPoint",
    "GradientCheck",
    "Graph",
    "Mismatch",
    "ODESolution",
    "ODEStats",
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
    "solve",
    "trace",
    "vjp",
]
