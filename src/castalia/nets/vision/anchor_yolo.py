"""YOLO with anchors: every cell has a few typical sizes and answers how each must be changed.

cx = x_cell + (2 s(t_x) - 1) w_cell,  w = w_anchor (2 s(t_w))^2,  s the logistic function; the same
down. At t = 0 the box is its anchor in the middle of the cell: the prior. A centre reaches one cell
to each side, so that neighbouring cells can find it too. Confidence and classes are logits.
Fine grids find small things, coarse grids large ones; they share what the coarse ones see.
Shapes: B batch, C channels or classes, A anchors of a cell, N boxes of all cells and grids.
References: 2016, Redmon, Farhadi, YOLO9000, arXiv 1612.08242; 2018, Redmon, Farhadi, YOLOv3, arXiv
1804.02767; 2020, Bochkovskiy, Wang, Liao, YOLOv4, arXiv 2004.10934 (centres beyond the cell).
Departs from them: widths and depth by argument, bounded growth of sizes instead of exp(t).
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nets.vision.yolo import ConvBlock, cell_grid

__all__ = ["AnchorYOLO"]

RARE = 0.01  # share of boxes that hold something, as the confidence has it before training


class ReduceRestore(nn.Module):
    """x + f(x): a 1 x 1 reduction to half the channels, then a 3 x 3 convolution."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            ConvBlock(width, width // 2, 1), ConvBlock(width // 2, width, 3)
        )

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        return x + self.layers(x)


class Stage(nn.Sequential):
    """Halves the resolution, then refines."""

    def __init__(self, inputs: int, outputs: int, depth: int) -> None:
        super().__init__(
            ConvBlock(inputs, outputs, 3, stride=2),
            *(ReduceRestore(outputs) for _ in range(depth)),
        )


class AnchorYOLO(nn.Module):
    """Fully convolutional detector with anchors on one or several grids.

    Parameters
    ----------
    channels
        Channels of an image.
    classes
        Number of classes.
    anchors
        Width and height of typical boxes in shares of the image: for each stride, the finest
        first, the same number of pairs.
    strides
        Pixels of a cell on each grid, powers of two that rise.
    width
        Channels of the first stage; they double with every halving up to 16 times that.
    depth
        Residual pairs of convolutions in every stage after the first.

    Shapes
    ------
    (B, channels, H, W) -> (B, N, 5 + classes): cx, cy, w, h in shares of the image, the logit of
    the confidence, logits of the classes. H and W may be any size.

    Examples
    --------
    >>> anchors = [[(0.1, 0.1), (0.2, 0.1)], [(0.5, 0.5), (0.9, 0.4)]]
    >>> net = AnchorYOLO(3, 2, anchors=anchors, width=8)
    >>> net(torch.zeros(1, 3, 64, 96)).shape  # 2 (4 x 6 + 2 x 3) boxes
    torch.Size([1, 60, 7])
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        anchors: Sequence[Sequence[Sequence[float]]],
        strides: Sequence[int] = (16, 32),
        width: int = 32,
        depth: int = 1,
    ) -> None:
        super().__init__()
        sizes = torch.tensor(anchors, dtype=torch.get_default_dtype())
        if sizes.ndim != 3 or sizes.shape[::2] != (len(strides), 2):
            raise ShapeMismatch(
                "AnchorYOLO: `anchors` must be (strides, anchors of a cell, 2); got "
                f"{tuple(sizes.shape)} for strides {tuple(strides)}."
            )
        self.classes, self.strides = classes, _checked(strides)
        self.anchors: Tensor
        self.register_buffer("anchors", sizes, persistent=False)  # given, not learnt
        last = self.strides[-1].bit_length() - 1  # halvings down to the coarsest grid
        widths = [width * 2 ** min(level, 4) for level in range(last)]
        self.stages = nn.ModuleList(
            Stage(a, b, depth if level else 0)
            for level, (a, b) in enumerate(pairwise([channels, *widths]))
        )
        seen = [widths[stride.bit_length() - 2] for stride in self.strides]
        # From a coarser grid to the next finer one: reduced, enlarged, joined.
        self.reductions = nn.ModuleList(ConvBlock(b, a, 1) for a, b in pairwise(seen))
        self.joins = nn.ModuleList(
            nn.Sequential(ConvBlock(2 * a, a, 1), ConvBlock(a, a, 3)) for a in seen[:-1]
        )
        self.heads = nn.ModuleList(
            nn.Sequential(ConvBlock(a, a, 3), _last(a, sizes.shape[1], 5 + classes)) for a in seen
        )

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return the boxes of all grids, the finest first, (B, N, 5 + classes)."""
        raw = [self._answers(m, head) for m, head in zip(self._maps(x), self.heads, strict=True)]
        t = torch.cat(raw, dim=1)
        t = t.to(torch.promote_types(t.dtype, torch.float32))
        cells, priors = self.cells(x), self.priors(x)
        twice = 2 * t[..., :4].sigmoid()
        centre = cells[:, :2] + (twice[..., :2] - 1) * cells[:, 2:]
        return torch.cat([centre, priors[:, 2:] * twice[..., 2:].square(), t[..., 4:]], dim=-1)

    def _maps(self, x: Tensor) -> list[Tensor]:
        """Return the maps of each grid, the finest first, joined with those of the coarser ones."""
        maps = []
        for level, stage in enumerate(self.stages):
            x = stage(x)
            if 2 ** (level + 1) in self.strides:
                maps.append(x)
        for i in range(len(maps) - 2, -1, -1):
            coarser = F.interpolate(self.reductions[i](maps[i + 1]), size=maps[i].shape[2:])
            maps[i] = self.joins[i](torch.cat([maps[i], coarser], dim=1))
        return maps

    def _answers(self, seen: Tensor, head: nn.Module) -> Tensor:
        raw = head(seen).unflatten(1, (-1, 5 + self.classes))  # (B, A, 5 + classes, rows, columns)
        return raw.permute(0, 3, 4, 1, 2).flatten(1, 3)

    def cells(self, x: Tensor) -> Tensor:
        """Return the cell of each box for images x as (cx, cy, w, h), (N, 4)."""
        each = self.anchors.shape[1]
        return torch.cat([cell_grid(*shape, each, x) for shape in self._shapes(x)])

    def priors(self, x: Tensor) -> Tensor:
        """Return each box as it is at t = 0 for images x, (cx, cy, w, h), (N, 4)."""
        shapes = self._shapes(x)
        sizes = [a.repeat(math.prod(s), 1) for a, s in zip(self.anchors, shapes, strict=True)]
        cells = self.cells(x)
        return torch.cat([cells[:, :2], torch.cat(sizes).to(cells.dtype)], dim=-1)

    def _shapes(self, x: Tensor) -> list[tuple[int, int]]:
        """Return rows and columns of each grid."""
        height, width = x.shape[-2:]
        return [(-(-height // stride), -(-width // stride)) for stride in self.strides]

    def scores(self, outputs: Tensor) -> Tensor:  # (B, N, 5 + classes)
        """Return P(class | object) times the confidence, (B, N, classes)."""
        return outputs[..., 4:5].sigmoid() * outputs[..., 5:].sigmoid()


def _checked(strides: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, if they are powers of two that rise."""
    rising = all(a < b for a, b in pairwise(strides))
    if not strides or not rising or any(s < 2 or s & (s - 1) for s in strides):
        raise InvalidParameter(
            "AnchorYOLO: `strides` must be powers of two from 2 up, rising; got "
            f"{tuple(strides)}. (16, 32) suits most images."
        )
    return tuple(strides)


@torch.no_grad()
def _last(width: int, anchors: int, numbers: int) -> nn.Module:
    """Begin with the priors, and with little confidence: most boxes hold nothing."""
    conv = nn.Conv2d(width, anchors * numbers, 1)
    nn.init.normal_(conv.weight, std=0.01)
    bias = torch.zeros(anchors, numbers)
    bias[:, 4] = math.log(RARE / (1 - RARE))
    conv.bias = nn.Parameter(bias.flatten())
    return conv
