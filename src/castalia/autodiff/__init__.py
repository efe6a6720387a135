"""Derivatives one can see: adjoints of implicit equations and of differential equations."""

from castalia.autodiff.fixed_point import FixedPoint, fixed_point
from castalia.autodiff.implicit import adjoint_gradient, adjoint_multipliers
from castalia.autodiff.ode import ODESolution, ODEStats, odeint, solve

__all__ = [
    "FixedPoint",
    "ODESolution",
    "ODEStats",
    "adjoint_gradient",
    "adjoint_multipliers",
    "fixed_point",
    "odeint",
    "solve",
]
