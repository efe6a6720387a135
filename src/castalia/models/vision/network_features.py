"""The layers that style transfer compares images by, and images on the scale they expect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from castalia.base import Constraint
from castalia.data.images.image_collection import recoloured
from castalia.nets.vision import VGG
from castalia.utils.seeds import seed_scope

__all__ = ["Layers", "Network", "features_of", "seen_by"]

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of colours between 0 and 1
GREY = (0.449,), (0.226,)


class Network(Constraint):
    """A network with features."""

    def rule(self) -> str:
        """Say so."""
        return "a fitted classifier of images, a module with `features`, or None"

    def holds(self, value: Any) -> bool:
        """Whether there are layers to look into."""
        return not isinstance(value, type) and isinstance(_layers(value), nn.Sequential | None)


class Layers(Constraint):
    """Names of layers."""

    def rule(self) -> str:
        """Say so."""
        return "a tuple of names of layers, or None"

    def holds(self, value: Any) -> bool:
        """Whether it is a sequence of words, and not one word."""
        listed = isinstance(value, tuple | list) and len(value) > 0
        return value is None or (listed and all(isinstance(name, str) for name in value))


def _layers(network: Any) -> Any:
    """Return the layers in order of an estimator's network, of a module, or None of None."""
    if network is None or isinstance(network, nn.Sequential):
        return network
    return getattr(getattr(network, "module_", network), "features", "none")


def features_of(network: Any, seed: int) -> nn.Sequential:
    """Return the layers in order; without a network those of a small random VGG."""
    if network is not None:
        found: nn.Sequential = _layers(network)
        return found
    with seed_scope(seed):
        return VGG(3, 2, depth=13, width=0.25).features


def seen_by(network: Any, x: Tensor, channels: int) -> Tensor:  # (B, 3, H, W), 0 to 1
    """Return images as the network knows them: its channels, on the scale it was trained on.

    Classifiers of bytes have learnt means and deviations on 0 to 255, those of floats on their own
    scale, taken as 0 to 1; modules are taken to want ImageNet's.
    """
    adapter = getattr(network, "adapter_", None)
    mean, deviation = IMAGENET if channels == 3 else GREY
    if adapter is not None:
        mean, deviation = adapter.mean, adapter.deviation
    white = 255.0 if float(np.max(mean)) > 1 else 1.0
    pixels = white * recoloured(x, channels)
    return (pixels - _column(mean, x)) / _column(deviation, x)


def _column(values: Sequence[float] | np.ndarray, like: Tensor) -> Tensor:
    return torch.as_tensor(np.asarray(values), dtype=like.dtype, device=like.device).view(-1, 1, 1)
