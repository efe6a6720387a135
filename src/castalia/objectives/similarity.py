"""Embeddings in which like things lie close: losses on pairs and triplets of inputs.

A row of the batch is a whole pair or triplet, x of shape (B, 2, …) or (B, 3, …), so a mean over
rows is a mean over comparisons.  Shapes: B batch, E embedding.
References: 2006, Hadsell, Chopra, LeCun, Dimensionality reduction by learning an invariant mapping,
CVPR. 2015, Schroff, Kalenichenko, Philbin, FaceNet, arXiv 1503.03832.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.objectives.objective import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["Contrastive", "Triplet"]


class Compared(Objective):
    """A loss on the embeddings of the members of each row."""

    members = 0

    def __init__(self, margin: float = 1.0) -> None:
        if margin <= 0:
            raise InvalidParameter(
                f"{type(self).__name__}: `margin` must be above 0, or all embeddings may be equal; "
                f"got {margin}."
            )
        self.margin = margin

    def embed(self, net: nn.Module, x: Tensor) -> list[Tensor]:
        """Return the embeddings (B, E) of each member."""
        if x.ndim < 3 or x.shape[1] != self.members:
            raise ShapeMismatch(
                f"{type(self).__name__}: inputs must be (B, {self.members}, …), the members of a "
                f"row side by side; got {tuple(x.shape)}."
            )
        embedded: Tensor = net(x.flatten(0, 1))  # (B * members, E)
        return list(embedded.unflatten(0, x.shape[:2]).unbind(1))


class Triplet(Compared):
    """max(0, d(a, p) - d(a, n) + margin) for an anchor, one like it and one unlike it.

    Parameters
    ----------
    margin
        How much farther than the like one the unlike one shall be.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[[0.0], [1.0], [1.5]]])  # anchor 0, like 1, unlike 1.5
    >>> Triplet(margin=1.0).terms(nn.Identity(), Batch(x), "train")["loss"]
    tensor(0.5000)
    """

    members = 3

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over triplets; targets are not used."""
        anchor, like, unlike = self.embed(net, batch.x)
        loss = F.triplet_margin_loss(anchor, like, unlike, margin=self.margin, reduction="none")
        return {"loss": weighted_mean(loss, batch.weight)}


class Contrastive(Compared):
    """1/2 d^2 for a like pair (y = 1) and 1/2 max(0, margin - d)^2 for an unlike one (y = 0).

    Parameters
    ----------
    margin
        Distance beyond which unlike pairs cost nothing.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[[0.0], [3.0]], [[0.0], [0.5]]])
    >>> pairs = Batch(x, torch.tensor([1.0, 0.0]))
    >>> Contrastive().terms(nn.Identity(), pairs, "train")["loss"]  # (4.5 + 0.125) / 2
    tensor(2.3125)
    """

    members = 2

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over pairs."""
        left, right = self.embed(net, batch.x)
        distance = F.pairwise_distance(left, right)  # (B,)
        like = batch.y.reshape(distance.shape).to(distance.dtype)
        apart = (self.margin - distance).clamp_min(0)
        loss = 0.5 * (like * distance.square() + (1 - like) * apart.square())
        return {"loss": weighted_mean(loss, batch.weight)}
