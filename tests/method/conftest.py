"""Whole fits, whose figures are not rendered."""

from tests.unrendered import _unrendered

__all__ = ["_unrendered"]
