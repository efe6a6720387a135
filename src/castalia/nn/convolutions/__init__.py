"""Convolution and pooling: the operations, the layers torch lacks, and the sizes they give.

``castalia.nn`` exports them.
"""

__all__: list[str] = []
