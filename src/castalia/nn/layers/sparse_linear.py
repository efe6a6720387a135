"""Affine layer in which only some connections exist.

y = (M * W) x + b with a fixed mask M of zeros and ones.  Shapes: B batch, D inputs, H outputs.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidData, ShapeMismatch

__all__ = ["SparseLinear"]


class SparseLinear(nn.Linear):
    """Affine layer whose missing connections are zero and stay zero.

    A missing weight starts at zero and has no gradient, so no optimizer and no decay moves it.

    Parameters
    ----------
    mask
        (H, D), 1 where an output sees an input and 0 where it does not.
    bias
        Whether to add b.

    Attributes
    ----------
    mask : Tensor (H, D)
        Saved with the weights.

    Notes
    -----
    Weights start uniform in plus or minus one over the root of the connections of their output, as
    ``torch.nn.Linear`` does with all of them. The product costs what a dense one costs.

    Examples
    --------
    >>> layer = SparseLinear(torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
    >>> abs(layer.weight[0, 1].item())
    0.0
    """

    mask: Tensor

    def __init__(self, mask: Tensor, *, bias: bool = True) -> None:
        if mask.ndim != 2:
            raise ShapeMismatch(
                f"SparseLinear: `mask` must be (outputs, inputs); got {tuple(mask.shape)}."
            )
        if not bool(((mask == 0) | (mask == 1)).all()):
            raise InvalidData("SparseLinear: `mask` must hold only 0 and 1.")
        super().__init__(mask.shape[1], mask.shape[0], bias=bias)
        self.register_buffer("mask", mask.to(self.weight.dtype))
        seen = self.mask.sum(dim=1, keepdim=True).clamp_min(1)  # (H, 1)
        with torch.no_grad():
            self.weight.mul_(self.mask * (mask.shape[1] / seen).sqrt())

    def forward(self, x: Tensor) -> Tensor:  # (…, D)
        """Return (M * W) x + b."""
        return F.linear(x, self.weight * self.mask, self.bias)  # (…, H)
