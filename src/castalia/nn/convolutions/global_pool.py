"""Global pooling: one number a channel, whatever the size of the input.

Shapes: B batch, C channels, n positions (any number of axes).
Reference: 2014, Lin, Chen, Yan, Network in network, ICLR, arXiv 1312.4400.
"""

from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.utils.text import did_you_mean, listing

__all__ = ["GlobalPool"]

HOW = ("mean", "max")


class GlobalPool(nn.Module):
    """Mean or maximum over every position of a channel.

    The layer that lets one network take images of any size, and a head of a few weights where
    flattening would give it a weight for every position.

    Parameters
    ----------
    how
        ``"mean"`` asks how much of a feature there is, ``"max"`` whether it is anywhere.

    Examples
    --------
    >>> import torch
    >>> GlobalPool("max")(torch.arange(12.0).view(1, 2, 2, 3))
    tensor([[ 5., 11.]])
    """

    def __init__(self, how: str = "mean") -> None:
        super().__init__()
        if how not in HOW:
            raise InvalidParameter(
                f"GlobalPool: `how` must be {listing(HOW)}; got {how!r}.{did_you_mean(how, HOW)}"
            )
        self.how = how

    def forward(self, x: Tensor) -> Tensor:  # (B, C, n...)
        """Return (B, C)."""
        if x.ndim < 3:
            raise ShapeMismatch(
                "GlobalPool: the input must be (B, C, n...) with one axis of positions or more; "
                f"got {tuple(x.shape)}."
            )
        axes = tuple(range(2, x.ndim))
        return x.mean(dim=axes) if self.how == "mean" else x.amax(dim=axes)

    def extra_repr(self) -> str:
        """Say how."""
        return repr(self.how)
