"""Random changes of a batch, on its device, that leave the meaning of rows alone.

``Rotate(10) | Shift(0.1) | Recolor()`` is one transform. ``castalia.objectives.Augmented`` applies
it in training.
"""

from castalia.data.augment.base import Augment, Augmentation, Geometric, geometry, warp
from castalia.data.augment.labels import LabelNoise, Mixup
from castalia.data.augment.places import Flip, Rotate, Shift, Zoom
from castalia.data.augment.values import Mask, Noise, Recolor

__all__ = [
    "Augment",
    "Augmentation",
    "Flip",
    "Geometric",
    "LabelNoise",
    "Mask",
    "Mixup",
    "Noise",
    "Recolor",
    "Rotate",
    "Shift",
    "Zoom",
    "geometry",
    "warp",
]
