"""A convolution of stride 2 as one of stride 1 over blocks of 2 x 2 pixels.

out[o] = sum over j of  w[j] x[2 o + j - p],  p = (k - 1) / 2.
With a zero beside w its k + 1 weights begin at an even pixel and make whole blocks; four times as
many channels are convolved by a quarter as many weights, and the numbers are the same. An image
has three channels, of which tensor cores make eight to work with; of twelve they make sixteen.
Shapes: B batch, C channels, H height, W width, O outputs, k x k kernel.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["BlockConv2d", "convolve_blocks"]

ALIGNED = 8  # channels that tensor cores take together


class BlockConv2d(nn.Conv2d):
    """``torch.nn.Conv2d`` that goes over blocks of pixels where that is faster.

    It does so in ``torch.compile`` on a GPU, with stride 2, an odd kernel, padding (k - 1) / 2 and
    images of even sides.
    """

    def forward(self, input: Tensor) -> Tensor:  # (B, C, H, W)
        """Return the convolution, (B, O, …)."""
        even = input.shape[2] % 2 == 0 and input.shape[3] % 2 == 0
        if input.is_cuda and torch.compiler.is_compiling() and even and self._halves():
            return convolve_blocks(input, self.weight, self.bias)
        return super().forward(input)

    def _halves(self) -> bool:
        """Whether its settings are those that ``convolve_blocks`` has."""
        kernel, k = self.kernel_size, self.kernel_size[0]
        plain = self.dilation == (1, 1) and self.groups == 1 and self.padding_mode == "zeros"
        square = k % 2 == 1 and kernel == (k, k) and self.padding == (k // 2, k // 2)
        return plain and square and self.stride == (2, 2)


def convolve_blocks(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return the convolution of stride 2 and padding (k - 1) / 2.

    Parameters
    ----------
    x
        Images, (B, C, H, W), H and W even.
    weight
        (O, C, k, k), k odd.
    bias
        (O,) or None.

    Returns
    -------
    Tensor
        (B, O, H / 2, W / 2).

    Examples
    --------
    >>> import torch
    >>> x, weight = torch.randn(2, 3, 8, 6), torch.randn(5, 3, 7, 7)
    >>> plain = F.conv2d(x, weight, stride=2, padding=3)
    >>> torch.allclose(convolve_blocks(x, weight), plain, atol=1e-4)
    True
    """
    kernel = weight.shape[-1]
    front = kernel // 2 % 2  # where the zero goes
    before = (kernel // 2 + front) // 2  # blocks beyond the edge
    pixels, weights = _blocks(x), _blocks(F.pad(weight, (front, 1 - front) * 2))
    more = -pixels.shape[-1] % ALIGNED
    after = weights.shape[1] - 1 - before
    pixels = F.pad(pixels, (0, more, before, after, before, after))
    weights = F.pad(weights, (0, more))
    return F.conv2d(pixels.permute(0, 3, 1, 2), weights.permute(0, 3, 1, 2), bias)


def _blocks(x: Tensor) -> Tensor:  # (B, C, H, W)
    """Return the 4 C numbers of each block of 2 x 2 pixels, (B, H / 2, W / 2, 4 C)."""
    batch, channels, height, width = x.shape
    blocks = x.view(batch, channels, height // 2, 2, width // 2, 2).permute(0, 2, 4, 1, 3, 5)
    return blocks.reshape(batch, height // 2, width // 2, 4 * channels)
