"""Random changes of a batch, on its device, that leave the meaning of rows alone.

``Rotate(10) | Shift(0.1) | Recolor()`` is one transform. ``castalia.objectives.Augmented`` applies
it in training.
"""

from castalia.data.augment.augmentation import Augment, Augmentation, Geometric, geometry, warp
from castalia.data.augment.geometric_augmentations import (
    AlternatingFlip,
    Crop,
    Flip,
    Rotate,
    Shift,
    Zoom,
)
from castalia.data.augment.label_augmentations import CutMix, LabelNoise, Mixup
from castalia.data.augment.policy_augmentations import RandAugment, TrivialAugment
from castalia.data.augment.target_augmentations import WithBoxes, WithMasks
from castalia.data.augment.value_augmentations import Cutout, Mask, Noise, Recolor

__all__ = [
    "AlternatingFlip",
    "Augment",
    "Augmentation",
    "Crop",
    "CutMix",
    "Cutout",
    "Flip",
    "Geometric",
    "LabelNoise",
    "Mask",
    "Mixup",
    "Noise",
    "RandAugment",
    "Recolor",
    "Rotate",
    "Shift",
    "TrivialAugment",
    "WithBoxes",
    "WithMasks",
    "Zoom",
    "geometry",
    "warp",
]
