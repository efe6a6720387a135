"""Separable convolution: one kernel for each channel, then a mixing of channels at each position.

z_o = b_o + sum_c p_oc (d_c * x_c).  The two layers are one convolution with the kernel
W_oc = p_oc d_c, of C f + O C numbers instead of O C f.

Shapes: B batch, C inputs, O outputs, f taps.
Reference: 2017, Chollet, Xception: deep learning with depthwise separable convolutions, CVPR,
arXiv 1610.02357.
"""

from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["SeparableConv1d", "SeparableConv2d"]


class _Separable(nn.Module):
    """Both layers; ``conv`` is torch's convolution with as many axes."""

    conv: Any

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int | tuple[int, int],
        *,
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str = 0,
        dilation: int | tuple[int, int] = 1,
        border: str = "zeros",
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.depthwise = self.conv(
            inputs,
            inputs,
            kernel,
            stride,
            padding,
            dilation,
            groups=inputs,
            bias=False,
            padding_mode=border,
        )
        self.pointwise = self.conv(inputs, outputs, 1, bias=bias)

    def forward(self, x: Tensor) -> Tensor:  # (B, C, n...)
        """Return (B, O, m...)."""
        out: Tensor = self.pointwise(self.depthwise(x))
        return out

    @torch.no_grad()
    def fused(self) -> nn.Conv1d | nn.Conv2d:
        """Return the one convolution that computes the same, with weights of its own."""
        depth, point = self.depthwise, self.pointwise
        whole = self.conv(
            depth.in_channels,
            point.out_channels,
            depth.kernel_size,
            depth.stride,
            depth.padding,
            depth.dilation,
            bias=point.bias is not None,
            padding_mode=depth.padding_mode,
            device=depth.weight.device,
            dtype=depth.weight.dtype,
        )
        whole.weight.copy_(point.weight * depth.weight.transpose(0, 1))  # (O, C, 1) (1, C, f)
        if point.bias is not None and whole.bias is not None:
            whole.bias.copy_(point.bias)
        return whole  # type: ignore[no-any-return]


class SeparableConv1d(_Separable):
    """Depthwise, then pointwise convolution of signals.

    Parameters
    ----------
    inputs, outputs
        Channels that go in and come out.
    kernel, stride, padding, dilation
        Of the depthwise convolution, as in ``torch.nn.Conv1d``.
    border
        What the padding holds: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
    bias
        Whether the pointwise convolution adds a bias; the depthwise one has none.

    Examples
    --------
    Four channels, three taps, six outputs: 36 weights instead of 72.

    >>> layer = SeparableConv1d(4, 6, kernel=3, bias=False)
    >>> sum(p.numel() for p in layer.parameters()), layer.fused().weight.numel()
    (36, 72)
    """

    conv = nn.Conv1d


class SeparableConv2d(_Separable):
    """Depthwise, then pointwise convolution of images.

    Parameters
    ----------
    inputs, outputs
        Channels that go in and come out.
    kernel, stride, padding, dilation
        Of the depthwise convolution, as in ``torch.nn.Conv2d``.
    border
        What the padding holds: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
    bias
        Whether the pointwise convolution adds a bias; the depthwise one has none.

    Examples
    --------
    >>> layer = SeparableConv2d(3, 8, kernel=3, padding=1)
    >>> x = torch.randn(2, 3, 5, 5)
    >>> torch.allclose(layer(x), layer.fused()(x), atol=1e-6)
    True
    """

    conv = nn.Conv2d
