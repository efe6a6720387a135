"""Derivatives one can see: adjoints of implicit equations and of differential equations."""

from castalia.autodiff.implicit import (
    FixedPoint,
    adjoint_gradient,
    adjoint_multipliers,
    fixed_point,
)
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
