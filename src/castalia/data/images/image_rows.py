"""Images as rows of a training: bytes on the device, floats a batch at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from castalia.data.batches import TensorRows

__all__ = ["ImageRows", "images_at"]


def images_at(x: Tensor, index: Tensor) -> Tensor:
    """Return some images, laid out as all of them are: channels first or last.

    Examples
    --------
    >>> x = torch.zeros(5, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    >>> images_at(x, torch.tensor([4, 2])).is_contiguous(memory_format=torch.channels_last)
    True
    """
    if x.is_contiguous() or not x.is_contiguous(memory_format=torch.channels_last):
        return x.index_select(0, index)
    return x.permute(0, 2, 3, 1).index_select(0, index).permute(0, 3, 1, 2)


class ImageRows(TensorRows):
    """Rows (N, C, H, W) in one tensor; a batch is (x - mean) / deviation, channel by channel.

    Bytes take a quarter of the memory of floats, so four times as many images stay on the device.

    Parameters
    ----------
    x
        Pixels, bytes or floats.
    mean, deviation
        Of each channel, (C,), floats of the format that batches have.

    Examples
    --------
    >>> rows = ImageRows(torch.tensor([[[[0, 2]]]], dtype=torch.uint8), *torch.ones(2, 1))
    >>> rows.take(torch.tensor([0]))
    tensor([[[[-1.,  1.]]]])
    """

    def __init__(self, x: Tensor, mean: Tensor, deviation: Tensor) -> None:
        super().__init__(x)
        self.mean, self.deviation = mean, deviation
        self._mean = mean.view(-1, 1, 1)
        self._factor = deviation.reciprocal().view(-1, 1, 1)
        self._shift = -self._mean * self._factor

    def take(self, index: Tensor, width: int | None = None) -> Tensor:
        """Return the images at these positions, normalised, (B, C, H, W)."""
        x = images_at(self.x, index)
        if x.is_cuda:  # one kernel; on a CPU all bytes would become floats before it
            return torch.addcmul(self._shift, x, self._factor)
        return torch.sub(x, self._mean).mul_(self._factor)

    def to(self, device: Any) -> ImageRows:
        """Return the same rows on a device; on a GPU with channels last, as its kernels want."""
        x = self.x.to(device)
        layout = torch.channels_last if x.is_cuda else torch.contiguous_format
        x = x.contiguous(memory_format=layout)
        return ImageRows(x, self.mean.to(device), self.deviation.to(device))
