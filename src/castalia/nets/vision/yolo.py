"""YOLO: one pass over the image gives a grid of boxes, each with a confidence, and classes.

The image is cut into S x S cells. Each cell answers B boxes (x, y, sqrt w, sqrt h, confidence) and
C class scores, S S (5 B + C) numbers from a linear last layer. x and y are counted in cells from
the cell's corner, w and h in images.  Shapes: B batch, C channels or classes, N = S S B boxes.
Reference: 2016, Redmon, Divvala, Girshick, Farhadi, You only look once, arXiv 1506.02640.
Departs from it: the roots of the sizes are answered, as in the authors' code; layers, grid and
batch norm by argument; the last bias starts in the middle of cells, with a different size for
each of a cell's boxes, so that they specialise.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter

__all__ = ["YOLO", "YOLO_LAYERS", "ConvBlock", "cell_grid", "slim_layers"]

Layer = tuple[int, ...] | str

# The paper's figure 3: (width, kernel) or (width, kernel, stride), and 2 x 2 max-pooling. The first
# 20 convolutions were pre-trained on ImageNet; the last 4 were added for detection.
YOLO_LAYERS: tuple[Layer, ...] = (
    *((64, 7, 2), "pool"),
    *((192, 3), "pool"),
    *((128, 1), (256, 3), (256, 1), (512, 3), "pool"),
    *((256, 1), (512, 3)) * 4,
    *((512, 1), (1024, 3), "pool"),
    *((512, 1), (1024, 3)) * 2,
    *((1024, 3), (1024, 3, 2)),
    *((1024, 3), (1024, 3)),
)


def slim_layers(width: int, depth: int, stride: int) -> tuple[Layer, ...]:
    """Return a list of layers as in the paper: halve and widen, then reduce and restore.

    Parameters
    ----------
    width
        Channels of the first layer; they double with every halving.
    depth
        Pairs of a 1 x 1 reduction and a 3 x 3 convolution after every halving but the first.
    stride
        Pixels of a cell, a power of two.

    Examples
    --------
    >>> slim_layers(8, 1, 4)
    ((8, 3, 2), (16, 3, 2), (8, 1), (16, 3))
    """
    layers: list[Layer] = [(width, 3, 2)]
    for level in range(1, stride.bit_length() - 1):
        wide = width * 2**level
        layers += [(wide, 3, 2), *((wide // 2, 1), (wide, 3)) * depth]
    return tuple(layers)


class ConvBlock(nn.Sequential):
    """Convolution, batch norm or a bias, leaky ReLU of slope 0.1."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, norm: bool = True
    ) -> None:
        conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=not norm)
        nn.init.kaiming_normal_(conv.weight, a=0.1)
        super().__init__(conv, *([nn.BatchNorm2d(outputs)] if norm else []), nn.LeakyReLU(0.1))


def cell_grid(rows: int, columns: int, each: int, x: Tensor) -> Tensor:
    """Return the cell of every box as (cx, cy, w, h) in shares of the image, (N, 4).

    They lie where x does, in its dtype if that is float32 or better.

    >>> cell_grid(1, 2, 1, torch.zeros(()))
    tensor([[0.2500, 0.5000, 0.5000, 1.0000],
            [0.7500, 0.5000, 0.5000, 1.0000]])
    """
    dtype = torch.promote_types(x.dtype, torch.float32)
    down, across = (
        (torch.arange(n, dtype=dtype, device=x.device) + 0.5) / n for n in (rows, columns)
    )
    cy, cx = torch.meshgrid(down, across, indexing="ij")
    cells = torch.stack(
        [cx, cy, torch.full_like(cx, 1 / columns), torch.full_like(cx, 1 / rows)], dim=-1
    )
    return cells.flatten(0, 1).repeat_interleave(each, dim=0)


class YOLO(nn.Module):
    """Grid detector without anchors.

    Parameters
    ----------
    channels
        Channels of an image.
    classes
        Number of classes.
    size
        Height and width of an image.
    boxes
        Boxes of a cell.
    layers
        (width, kernel) or (width, kernel, stride) of each convolution, ``"pool"`` to halve. The
        grid has a cell for each place the last one leaves.
    hidden
        Units of the dense layer before the last one, which is then dense as well; 0 makes the last
        layer a 1 x 1 convolution, the same for every cell.
    dropout
        Probability of zeroing one of those units.
    norm
        Batch norm in the convolutions, which the paper does without.

    Shapes
    ------
    (B, channels, H, W) -> (B, N, 5 + classes): cx, cy, w, h in shares of the image, confidence,
    class scores; the boxes of a cell share the latter.

    Examples
    --------
    >>> net = YOLO(3, 20, size=(64, 64), layers=slim_layers(8, 1, 16))
    >>> net(torch.zeros(2, 3, 64, 64)).shape, net.grid
    (torch.Size([2, 32, 25]), (4, 4))
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        size: Sequence[int] = (448, 448),
        boxes: int = 2,
        layers: Sequence[Layer] = YOLO_LAYERS,
        hidden: int = 4096,
        dropout: float = 0.5,
        norm: bool = False,
    ) -> None:
        super().__init__()
        self.boxes, self.classes = boxes, classes
        self.body, width, stride = _body(channels, layers, norm)
        rows, columns = (-(-side // stride) for side in size)
        self.grid = (rows, columns)
        each = 5 * boxes + classes  # numbers of a cell
        last: nn.Linear | nn.Conv2d
        if hidden:
            last = nn.Linear(hidden, rows * columns * each)
            self.head = nn.Sequential(
                nn.Flatten(),
                nn.Linear(width * rows * columns, hidden),
                nn.LeakyReLU(0.1),
                nn.Dropout(dropout),
                last,
                nn.Unflatten(1, (each, rows, columns)),
            )
        else:
            last = nn.Conv2d(width, each, 1)
            self.head = nn.Sequential(last)
        _start(last, boxes, classes)

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return the boxes of all cells, row by row, (B, N, 5 + classes)."""
        raw = self.head(self.body(x)).movedim(1, -1)  # (B, rows, columns, 5 boxes + classes)
        raw = raw.to(torch.promote_types(raw.dtype, torch.float32))
        found, classes = raw.split([5 * self.boxes, self.classes], dim=-1)
        found = found.unflatten(-1, (self.boxes, 5))
        classes = classes[..., None, :].expand(*found.shape[:-1], self.classes)
        found, classes = found.flatten(1, 3), classes.flatten(1, 3)  # (B, N, …)
        cells = self.cells(x)
        corner = cells[:, :2] - cells[:, 2:] / 2
        centre = corner + found[..., :2] * cells[:, 2:]
        return torch.cat([centre, found[..., 2:4].square(), found[..., 4:], classes], dim=-1)

    def cells(self, x: Tensor) -> Tensor:
        """Return the cell of each box for images x as (cx, cy, w, h), (N, 4)."""
        return cell_grid(*self.grid, self.boxes, x)

    def scores(self, outputs: Tensor) -> Tensor:  # (B, N, 5 + classes)
        """Return P(class | object) times the confidence, (B, N, classes)."""
        return outputs[..., 4:5].clamp(0, 1) * outputs[..., 5:].clamp(0, 1)


def _body(channels: int, layers: Sequence[Layer], norm: bool) -> tuple[nn.Module, int, int]:
    """Return the convolutions, the channels they end with, and the pixels of a cell."""
    body, width, stride = nn.Sequential(), channels, 1
    for layer in layers:
        if isinstance(layer, str):
            if layer != "pool":
                raise InvalidParameter(
                    "YOLO: `layers` must hold (width, kernel), (width, kernel, stride) and 'pool'; "
                    f"got {layer!r}."
                )
            body.append(nn.MaxPool2d(2, ceil_mode=True))
            stride *= 2
        else:
            outputs, kernel, step = (*layer, 1)[:3]
            body.append(ConvBlock(width, outputs, kernel, step, norm))
            width, stride = outputs, stride * step
    return body, width, stride


@torch.no_grad()
def _start(last: nn.Linear | nn.Conv2d, boxes: int, classes: int) -> None:
    """Let the last layer begin with a guess in the middle of every cell, of several sizes."""
    roots = (torch.arange(boxes) + 1) / (boxes + 1)
    half, none = torch.full((boxes,), 0.5), torch.zeros(boxes)
    guess = torch.stack([half, half, roots, roots, none], dim=1).flatten()
    guess = torch.cat([guess, torch.full((classes,), 1 / classes)])
    nn.init.normal_(last.weight, std=0.01)
    if last.bias is not None:  # of a dense layer each number once a cell
        last.bias.copy_(guess.repeat_interleave(last.bias.numel() // len(guess)))
