"""Gradients held against finite differences."""

from castalia.autodiff.checking.check import check_gradients
from castalia.autodiff.checking.findings import GradientCheck, Mismatch

__all__ = ["GradientCheck", "Mismatch", "check_gradients"]
