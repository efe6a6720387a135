"""Ordinary differential equations: solvers, dense output, events and gradients."""

from castalia.autodiff.ode.odeint import odeint
from castalia.autodiff.ode.options import METHODS
from castalia.autodiff.ode.solution import ODESolution, ODEStats, solve

__all__ = ["METHODS", "ODESolution", "ODEStats", "odeint", "solve"]
