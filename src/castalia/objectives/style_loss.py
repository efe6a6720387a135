"""Style transfer: one image's content, another's style, and smoothness, as a loss over pixels.

L(x) = a sum_l |F_l(x) - F_l(c)|^2 / |F_l(c)|^2  +  b sum_l w_l |G_l(x) - G_l(s)|^2 / |G_l(s)|^2
     + v TV(x),        G = F F^T / M
F_l are the maps of layer l with the places in a row, G_l the products of every two channels,
averaged over the places: what occurs together, wherever it is.
Shapes: B images, C channels, H height, W width, M = H W places.
Reference: 2016, Gatys, Ecker, Bethge, Image style transfer using convolutional neural networks,
CVPR, arXiv 1508.06576.
Departs from it: every distance is a share of its target's square, so that weights mean the same
for every network and layer.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.objectives.objective import Objective, weighted_mean
from castalia.protocols import Batch
from castalia.utils.text import did_you_mean, listing

__all__ = ["StyleLoss", "gram", "total_variation"]


def gram(maps: Tensor) -> Tensor:  # (B, C, H, W)
    """Return the products of every two channels summed over the places, F F^T, (B, C, C).

    Examples
    --------
    >>> gram(torch.tensor([[[[1.0, 2.0]], [[0.0, 3.0]]]]))
    tensor([[[5., 6.],
             [6., 9.]]])
    """
    rows = maps.flatten(2)  # (B, C, M)
    return rows @ rows.transpose(1, 2)


def total_variation(x: Tensor) -> Tensor:  # (B, C, H, W)
    """Return the mean squared difference of neighbouring pixels, (B,).

    Examples
    --------
    >>> total_variation(torch.tensor([[[[0.0, 1.0], [0.0, 1.0]]]]))
    tensor([1.])
    """
    across, down = x.diff(dim=3), x.diff(dim=2)
    return across.square().mean(dim=(1, 2, 3)) + down.square().mean(dim=(1, 2, 3))


class StyleLoss(Objective):
    """Distance to a content and to a style, as a network sees them.

    The network maps images to a dictionary of named maps. ``batch.x`` are the images being
    painted, (B, 3, H, W), and ``batch.y`` the maps of the contents, by layer; gradients by
    ``batch.x`` are what one is after.

    Parameters
    ----------
    grams
        Gram matrices of the style divided by the places, (C, C) for each layer.
    content_layers
        Layers at which contents are compared; all of ``batch.y`` need them.
    content_weight, style_weight, variation_weight
        Weights of the three terms.
    layer_weights
        Weight of each style layer; None gives all the same, summing to 1.

    Examples
    --------
    >>> from castalia.nets.vision import VGG, Taps
    >>> net = Taps(VGG(3, 2, depth=11, width=0.1).features, ["relu1_1", "relu2_1"])
    >>> c, s = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
    >>> grams = {name: gram(maps)[0].detach() / maps[0, 0].numel() for name, maps in net(s).items()}
    >>> loss = StyleLoss(grams, content_layers=["relu2_1"])
    >>> sorted(loss.terms(net, Batch(c, net(c)), "train"))
    ['content', 'loss', 'style', 'variation']
    """

    def __init__(
        self,
        grams: Mapping[str, Tensor],
        *,
        content_layers: Sequence[str],
        content_weight: float = 1.0,
        style_weight: float = 1.0,
        variation_weight: float = 0.0,
        layer_weights: Mapping[str, float] | None = None,
    ) -> None:
        self.grams, self.content_layers = dict(grams), tuple(content_layers)
        self.content_weight, self.style_weight = content_weight, style_weight
        self.variation_weight = variation_weight
        even = dict.fromkeys(self.grams, 1 / max(len(self.grams), 1))
        self.layer_weights = even if layer_weights is None else dict(layer_weights)
        for name in self.layer_weights:
            if name not in self.grams:
                raise InvalidParameter(
                    f"StyleLoss: `layer_weights` must name layers of `grams`, "
                    f"{listing(self.grams)}; got {name!r}.{did_you_mean(name, self.grams)}"
                )

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss and its three parts, means over the images, before their weights."""
        maps = net(batch.x)
        parts = {
            "content": self._content(maps, batch.y),
            "style": self._style(maps),
            "variation": total_variation(batch.x),
        }
        means = {name: weighted_mean(rows, batch.weight) for name, rows in parts.items()}
        loss = (
            self.content_weight * means["content"]
            + self.style_weight * means["style"]
            + self.variation_weight * means["variation"]
        )
        return {"loss": loss, **means}

    def _content(self, maps: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> Tensor:
        pairs = ((maps[name], wanted[name]) for name in self.content_layers)
        return sum(_share(f, target) for f, target in pairs)  # type: ignore[return-value]

    def _style(self, maps: Mapping[str, Tensor]) -> Tensor:
        shares = (
            weight * _share(gram(maps[name]) / maps[name][0, 0].numel(), self.grams[name][None])
            for name, weight in self.layer_weights.items()
        )
        return sum(shares)  # type: ignore[return-value]


def _share(found: Tensor, target: Tensor) -> Tensor:  # (B, …)
    """Return the squared distance of each row as a share of the target's square, (B,)."""
    square = target.square().flatten(1).sum(dim=1)
    least = torch.finfo(found.dtype).tiny
    return (found - target).square().flatten(1).sum(dim=1) / square.clamp_min(least)
