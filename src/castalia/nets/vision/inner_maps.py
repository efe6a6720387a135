"""The maps inside a network: what named layers give, computed no further than needed."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn import recording
from castalia.utils.text import did_you_mean, listing

__all__ = ["Taps", "scale_layers"]


class Taps(nn.Module):
    """A copy of the first layers of a network that gives the maps of some of them.

    Parameters
    ----------
    features
        Layers in order, such as ``features`` of the classifiers; those after the last tap are left
        out. Images of any size fit that leave a map there.
    layers
        Names in ``features.named_modules()``.

    Examples
    --------
    >>> from castalia.nets.vision import VGG
    >>> taps = Taps(VGG(3, 2, depth=11, width=0.1).features, ["relu1_1", "conv2_1"])
    >>> {name: tuple(maps.shape) for name, maps in taps(torch.zeros(1, 3, 8, 8)).items()}
    {'relu1_1': (1, 6, 8, 8), 'conv2_1': (1, 13, 4, 4)}
    """

    def __init__(self, features: nn.Sequential, layers: Sequence[str]) -> None:
        super().__init__()
        self.layers = tuple(layers)
        names = [name for name, _ in features.named_modules() if name]
        for layer in self.layers:
            if layer not in names:
                raise InvalidParameter(
                    f"Taps: a layer must be one of the network's, {listing(names, most=12)}; got "
                    f"{layer!r}.{did_you_mean(layer, names)}"
                )
        children = list(features.named_children())
        tapped = {layer.split(".")[0] for layer in self.layers}
        last = max(i for i, (name, _) in enumerate(children) if name in tapped)
        self.features = nn.Sequential()
        for name, child in children[: last + 1]:
            self.features.add_module(name, deepcopy(child))

    def forward(self, x: Tensor) -> dict[str, Tensor]:  # (B, C, H, W)
        """Return the maps of every tapped layer, by name."""
        with recording(self.features, self.layers) as seen:
            self.features(x)
        return {name: maps for name, _, maps in seen}


def scale_layers(
    features: nn.Sequential, channels: int, size: Sequence[int], least: int = 4
) -> list[list[str]]:
    """Return the activations of a network by scale: one list for each size of maps, in order.

    Parameters
    ----------
    features
        Layers in order.
    channels, size
        Of the images.
    least
        Height and width of the smallest maps that count.

    Examples
    --------
    >>> from castalia.nets.vision import VGG
    >>> scale_layers(VGG(3, 2, depth=11, width=0.1).features, 3, (16, 16))
    [['relu1_1'], ['relu2_1'], ['relu3_1', 'relu3_2']]
    """
    shapes = deepcopy(features).to("meta").eval()
    x = torch.empty(1, channels, *size, device="meta")
    with recording(shapes) as seen:
        for layer in shapes:
            x = layer(x)
            if min(x.shape[2:]) < least:
                break
    found: dict[tuple[int, ...], list[str]] = {}
    for name, _, maps in seen:
        if min(maps.shape[2:]) >= least:
            found.setdefault(tuple(maps.shape[2:]), []).append(name)
    return list(found.values())
