"""Vision transformer: an image is a sentence of patches.

Patches of P x P pixels become vectors by one linear map, a class token goes before them and learnt
positions are added; then blocks x <- x + attention(norm(x)), x <- x + mlp(norm(x)); the class token
is read.  Shapes: B batch, C channels, H height, W width, N patches, D dimensions, K classes.
Reference: 2021, Dosovitskiy et al., An image is worth 16x16 words, arXiv 2010.11929.
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.image_network import ImageNetwork, check_size

__all__ = ["ViT"]

EPS = 1e-6  # of the norms
SMALL_IMAGES, SMALL_PATCH, PATCH = 64, 4, 16  # pixels


class Patches(nn.Module):
    """Images as class token and patches, with their places."""

    def __init__(self, channels: int, dim: int, patch: int, count: int) -> None:
        super().__init__()
        self.project = nn.Conv2d(channels, dim, patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, dim))
        self.places = nn.Parameter(torch.empty(1, 1 + count, dim))

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return vectors, (B, 1 + N, D)."""
        patches = self.project(x).flatten(2).mT
        return torch.cat([self.token.expand(x.shape[0], -1, -1), patches], dim=1) + self.places


class Block(nn.Module):
    """Attention, then two dense layers, each after a norm and around a shortcut."""

    def __init__(self, dim: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=EPS), nn.LayerNorm(dim, eps=EPS)
        self.attention = nn.MultiheadAttention(dim, heads, dropout=dropout, batch_first=True)
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.gelu, self.dropout = nn.GELU(), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:  # (B, N, D)
        """Return the vectors after one block, (B, N, D)."""
        h = self.norm1(x)
        x = x + self.dropout(self.attention(h, h, h, need_weights=False)[0])
        h = self.dropout(self.gelu(self.up(self.norm2(x))))
        return x + self.dropout(self.down(h))


class FirstToken(nn.Module):
    """The class token of a sequence."""

    def forward(self, x: Tensor) -> Tensor:  # (B, N, D)
        """Return the first vector, (B, D)."""
        return x[:, 0]


class ViT(ImageNetwork):
    """Vision transformer with a class token.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of scores.
    size
        Height and width of the images, multiples of the patch.
    patch
        Height and width of a patch; None: 4 pixels for images up to 64, else 16.
    dim
        Size of the vectors.
    depth
        Number of blocks.
    heads
        Attention heads.
    hidden
        Width of the dense layers; None: four times ``dim``.
    dropout
        Probability of zeroing an output of each part in training.

    Examples
    --------
    >>> net = ViT(3, 10, size=(32, 32), dim=24, depth=2, heads=2)
    >>> net(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        size: Sequence[int],
        patch: int | None = None,
        dim: int = 192,
        depth: int = 12,
        heads: int = 3,
        hidden: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        patch = patch or (SMALL_PATCH if max(size) <= SMALL_IMAGES else PATCH)
        self.channels, self.least = channels, patch
        _check(size, patch, dim, heads)
        count = (size[0] // patch) * (size[1] // patch)
        layers: dict[str, nn.Module] = {"patches": Patches(channels, dim, patch, count)}
        for i in range(depth):
            layers[f"block{i}"] = Block(dim, heads, hidden or 4 * dim, dropout)
        layers["norm"] = nn.LayerNorm(dim, eps=EPS)
        self.features = nn.Sequential(OrderedDict(layers))
        self.head = nn.Sequential(OrderedDict(token=FirstToken(), classes=nn.Linear(dim, classes)))
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif parameter.ndim >= 2 and not name.endswith("token"):
                nn.init.trunc_normal_(parameter, std=0.02)


def _check(size: Sequence[int], patch: int, dim: int, heads: int) -> None:
    check_size("ViT", size, patch)
    if size[0] % patch or size[1] % patch:
        raise InvalidParameter(
            f"ViT: `patch` must divide the size of the images, {size[0]} x {size[1]}; got {patch}. "
            "Bring images to a multiple of it with `image_size`."
        )
    if dim % heads:
        raise InvalidParameter(f"ViT: `heads` must divide `dim`, {dim}; got {heads}.")
