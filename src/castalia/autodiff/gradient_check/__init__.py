"""Gradients held against finite differences."""

from castalia.autodiff.gradient_check.gradient_checker import check_gradients
from castalia.autodiff.gradient_check.gradient_mismatch import GradientCheck, Mismatch

__all__ = ["GradientCheck", "Mismatch", "check_gradients"]
