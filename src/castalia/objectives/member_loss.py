"""The loss of several networks that are trained side by side on the same batches."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.supervised import Supervised
from castalia.protocols import Batch, Phase

__all__ = ["MemberLoss"]


class MemberLoss(Objective):
    """The mean of the members' losses, each on its own share of the rows.

    Shapes: M members, B batch, K outputs.

    Parameters
    ----------
    loss
        Compares the outputs of one member with the targets.

    Notes
    -----
    ``batch.weight`` may have a column a member, (B, M): 0 keeps a row from a member, which can then
    be judged by it.

    Examples
    --------
    >>> import torch
    >>> from castalia.objectives import SquaredError
    >>> outputs = torch.tensor([[[0.0]], [[2.0]]])  # two members, one row
    >>> MemberLoss(SquaredError()).rows(outputs, torch.tensor([[0.0]]))
    tensor([[0.],
            [4.]])
    """

    def __init__(self, loss: Supervised) -> None:
        self.loss = loss

    def phases(self, net: nn.Module) -> list[Phase]:
        """One phase; the members' axis does not make a matrix of a bias."""
        trained = [p for p in net.parameters() if p.requires_grad]
        return [Phase("train", trained, decayed=[p.ndim >= 3 for p in trained])]

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:  # (M, B, K)
        """Return the loss of each row by each member, (M, B)."""
        members = len(outputs)
        return self.loss.rows(outputs.flatten(0, 1), _repeated(targets, members)).view(members, -1)

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the weighted mean over members and rows."""
        outputs = net.member_outputs(batch.x)
        weight = _member_weight(batch.weight, len(outputs))
        return {"loss": weighted_mean(self.rows(outputs, batch.y).flatten(), weight)}

    def judged(self, net: Any, batch: Batch, phase: str) -> tuple[Tensor, Tensor | None]:  # (M,)
        """Return the loss of each member, and what its rows weigh."""
        each, weight = self._judged_rows(net, batch)
        total = weight.sum(dim=1)
        tiny = torch.finfo(total.dtype).tiny
        return (each * weight).sum(dim=1) / total.clamp_min(tiny), total

    def _judged_rows(self, net: Any, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the loss of each row that a member is judged by, and its weight, (M, R) each."""
        if batch.weight is None or batch.weight.ndim == 1:
            each = self.rows(net.member_outputs(batch.x), batch.y)
            return each, torch.ones_like(each) if batch.weight is None else batch.weight.expand_as(
                each
            )
        rows = _own_rows(batch.weight)
        outputs = net.member_outputs(batch.x, rows).flatten(0, 1)
        each = self.loss.rows(outputs, batch.y[rows].flatten(0, 1)).view_as(rows)
        return each, batch.weight.T.gather(1, rows)

    def loss_gradient(self, outputs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the loss and its gradient by the outputs, (M, B, K)."""
        members = len(outputs)
        each = Batch(None, _repeated(batch.y, members), _member_weight(batch.weight, members))
        gradients: Any = self.loss
        loss, gradient = gradients.loss_gradient(outputs.flatten(0, 1), each)
        return loss, gradient.view_as(outputs)


def _own_rows(weight: Tensor) -> Tensor:  # (B, M)
    """Return the places of each member's rows, (M, R), filled up with rows that weigh nothing."""
    own = (weight.T > 0).to(torch.uint8)
    most = max(int(own.sum(dim=1).max()), 1)
    return own.argsort(dim=1, descending=True, stable=True)[:, :most]


def _repeated(targets: Tensor, members: int) -> Tensor:
    """Return the targets once for each member, (M B, …)."""
    return targets.expand(members, *targets.shape).flatten(0, 1)


def _member_weight(weight: Tensor | None, members: int) -> Tensor | None:
    """Return the weights of every member's rows, one member after the other, (M B,)."""
    if weight is None:
        return None
    return weight.T.flatten() if weight.ndim == 2 else weight.repeat(members)
