"""Computation graphs one can see, and derivatives one can ask for and check."""

from castalia.autodiff.curvature import hessian, hvp
from castalia.autodiff.derivatives import gradient, jacobian, jvp, vjp

__all__ = ["gradient", "hessian", "hvp", "jacobian", "jvp", "vjp"]
