"""What passes through a network: outputs and gradients of layers, inputs that matter.

``castalia.nn`` exports them.
"""

__all__: list[str] = []
