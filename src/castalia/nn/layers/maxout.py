"""Maxout layer: every unit is the largest of a few affine maps, so it learns its own activation.

h_j = max_k (W x + b)_jk.  Shapes: B batch, D inputs, H outputs, P pieces.
Reference: 2013, Goodfellow, Warde-Farley, Mirza, Courville, Bengio, Maxout networks, arXiv
1302.4389.
"""

from torch import Tensor, nn

from castalia.errors import InvalidParameter

__all__ = ["Maxout"]


class Maxout(nn.Module):
    """A layer of maxout units; takes the place of an affine layer and its activation.

    A unit can be any convex piecewise linear function with up to ``pieces`` pieces: two make ReLU,
    leaky ReLU or the absolute value.

    Parameters
    ----------
    inputs
        Width D of a row.
    outputs
        Number H of units.
    pieces
        Affine maps P in each unit; the layer has P times the weights of an affine one.

    Examples
    --------
    >>> import torch
    >>> Maxout(4, 3, pieces=5)(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(self, inputs: int, outputs: int, pieces: int = 2) -> None:
        super().__init__()
        if pieces < 1:
            raise InvalidParameter(f"Maxout: `pieces` must be at least 1; got {pieces}.")
        self.pieces = pieces
        self.affine = nn.Linear(inputs, outputs * pieces)

    def forward(self, x: Tensor) -> Tensor:  # (…, D)
        """Return the largest piece of every unit."""
        return self.affine(x).unflatten(-1, (-1, self.pieces)).amax(dim=-1)  # (…, H)
