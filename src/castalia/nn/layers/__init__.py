"""Layers and blocks that torch lacks, and batch normalisation by all the data.

``castalia.nn`` exports them.
"""

__all__: list[str] = []
