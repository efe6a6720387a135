"""Dropout in its forms, and noise on inputs or hidden units.

``castalia.nn`` exports them.
"""

__all__: list[str] = []
