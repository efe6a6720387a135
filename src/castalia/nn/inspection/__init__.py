"""What passes through a network: outputs and gradients of layers, inputs that matter."""

from castalia.nn.inspection.influence import influence
from castalia.nn.inspection.layer_signals import layer_gradients, recording, saturation, slopes

__all__ = ["influence", "layer_gradients", "recording", "saturation", "slopes"]
