"""Dilated segmentation network: wide context without losing resolution.

(F *_l k)(p) = sum over s + l t = p of F(s) k(t).  A stack of 3 x 3 convolutions with dilations
d_1 … d_n sees 1 + 2 (d_1 + … + d_n) pixels each way: dilations that double see exponentially far
with linearly many weights, and nothing is pooled. (1, 2, 4) sees 15 pixels, the context module
below, (1, 1, 2, 4, 8, 16, 1), sees 67.  Shapes: B batch, C channels, H height, W width, K classes.
Reference: 2016, Yu, Koltun, Multi-scale context aggregation by dilated convolutions, ICLR, arXiv
1511.07122.
Departs from it: the context module has a width of its own instead of one map a class, batch norm
instead of its identity start, and the front end's scores are not trained apart.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.segmentation_stages import BilinearUp, conv_stage, pad_to_multiple

__all__ = ["DilatedNet", "context_module", "receptive_field"]

CONTEXT = (1, 1, 2, 4, 8, 16, 1)


def receptive_field(dilations: Sequence[int], kernel: int = 3) -> int:
    """Return how many pixels each way a stack of dilated convolutions sees.

    >>> receptive_field((1, 2, 4)), receptive_field(CONTEXT)
    (15, 67)
    """
    return 1 + (kernel - 1) * sum(dilations)


def context_module(channels: int, width: int, dilations: Sequence[int] = CONTEXT) -> nn.Sequential:
    """Return one 3 x 3 convolution a dilation; height and width are kept."""
    return nn.Sequential(
        *(
            conv_stage(width if i else channels, width, 1, dilation=dilation)
            for i, dilation in enumerate(dilations)
        )
    )


class DilatedNet(nn.Module):
    """Front end with its last poolings replaced by dilation, then a context module.

    Parameters
    ----------
    channels
        Channels of an image.
    classes
        Number of classes.
    widths
        Channels of the front end's stages.
    depth
        Convolutions of a stage.
    stride
        1, 2, 4 or 8: what height and width are divided by inside, log2(stride) poolings. Stages
        that would come after further poolings are dilated by 2, 4, … instead.
    hidden
        Channels of the context module.
    dilations
        Dilations of the context module; see ``receptive_field``.
    dropout
        Probability of zeroing a map before the scores in training.

    Examples
    --------
    >>> import torch
    >>> net = DilatedNet(3, 11, widths=(8, 16, 16), hidden=16)
    >>> net(torch.zeros(2, 3, 45, 60)).shape
    torch.Size([2, 11, 45, 60])
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        widths: Sequence[int] = (64, 128, 256, 512, 512),
        depth: int = 2,
        stride: int = 8,
        hidden: int = 128,
        dilations: Sequence[int] = CONTEXT,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if stride not in (1, 2, 4, 8):
            raise InvalidParameter(f"DilatedNet: `stride` must be 1, 2, 4 or 8; got {stride!r}.")
        if not widths or not dilations:
            raise InvalidParameter(
                "DilatedNet: `widths` and `dilations` must hold one size or more; got "
                f"{tuple(widths)} and {tuple(dilations)}."
            )
        pools = min(stride.bit_length() - 1, len(widths) - 1)
        layers: list[nn.Module] = []
        for i, (a, b) in enumerate(zip([channels, *widths], widths, strict=False)):
            layers.append(conv_stage(a, b, depth, dilation=2 ** max(0, i - pools)))
            layers += [nn.MaxPool2d(2)] if i < pools else []
        self.front = nn.Sequential(*layers)
        self.context = context_module(widths[-1], hidden, dilations)
        self.dropout = nn.Dropout2d(dropout)
        self.score = nn.Conv2d(hidden, classes, 1)
        self.stride = 2**pools
        self.up = BilinearUp(classes, self.stride)

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return scores of the classes for every pixel."""
        height, width = x.shape[2:]
        h = self.context(self.front(pad_to_multiple(x, self.stride)))  # (B, hidden, H/s, W/s)
        scores = self.score(self.dropout(h))
        return self.up(scores)[:, :, :height, :width]  # (B, K, H, W)
