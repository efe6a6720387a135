"""Losses between a network's outputs and given targets."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.objectives.base import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["AbsoluteError", "BinaryCrossEntropy", "CrossEntropy", "SquaredError", "smooth_labels"]


class Supervised(Objective):
    """A loss that compares ``net(x)`` with y row by row."""

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each row, (B,)."""
        raise NotImplementedError

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the weighted mean of the row losses."""
        return {"loss": weighted_mean(self.rows(net(batch.x), batch.y), batch.weight)}


def _share(loss: Tensor, weight: Tensor | None) -> Tensor | float:
    """Return each row's share of the mean, (B, 1), or one number for all."""
    if weight is None:
        return 1.0 / loss.shape[0]
    return (weight / weight.sum()).unsqueeze(1)


class SquaredError(Supervised):
    """Mean over outputs of (f(x) - y)^2: the likelihood of a Gaussian of fixed width."""

    def loss_gradient(self, outputs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the loss and its gradient by the outputs, 2 (f - y) / T per row."""
        gap = outputs - batch.y
        loss = weighted_mean(gap.square().mean(dim=1), batch.weight)
        return loss, gap.mul_(2 / gap.shape[1]).mul_(_share(gap, batch.weight))

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the squared error of each row."""
        return (outputs - targets).square().mean(dim=1)


class AbsoluteError(Supervised):
    """Mean over outputs of |f(x) - y|: estimates the conditional median."""

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the absolute error of each row."""
        return (outputs - targets).abs().mean(dim=1)


class CrossEntropy(Supervised):
    """-log softmax(z)_y for exclusive classes.

    Parameters
    ----------
    label_smoothing
        Mass taken from the true class.
    convention
        How that mass is spread over K classes: ``"torch"`` gives eps/K to every class, the true one
        included; ``"notes"`` gives eps/(K-1) to each of the others, so the true class keeps 1 -
        eps.

    Examples
    --------
    >>> CrossEntropy().rows(torch.zeros(1, 4), torch.tensor([2])).exp()
    tensor([4.])
    """

    def __init__(self, *, label_smoothing: float = 0.0, convention: str = "torch") -> None:
        if convention not in ("torch", "notes"):
            raise InvalidParameter(
                f"CrossEntropy: `convention` must be 'torch' or 'notes'; got {convention!r}."
            )
        self.label_smoothing, self.convention = label_smoothing, convention

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:  # (B, K), (B,)
        """Return the cross-entropy of each row."""
        if self.label_smoothing and self.convention == "notes":
            spread, classes = self.label_smoothing, outputs.shape[1]
            targets = smooth_labels(targets, classes, spread, "notes", dtype=outputs.dtype)
            return F.cross_entropy(outputs, targets, reduction="none")
        return F.cross_entropy(
            outputs, targets, reduction="none", label_smoothing=self.label_smoothing
        )

    def loss_gradient(self, outputs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the loss and its gradient by the outputs, softmax(z) - t per row."""
        log_p = torch.log_softmax(outputs, dim=1)
        if self.label_smoothing:
            targets = smooth_labels(
                batch.y,
                outputs.shape[1],
                self.label_smoothing,
                self.convention,
                dtype=outputs.dtype,
            )
            loss = weighted_mean(-(targets * log_p).sum(dim=1), batch.weight)
            return loss, (log_p.exp_() - targets).mul_(_share(outputs, batch.weight))
        picked = F.nll_loss(
            log_p, batch.y, reduction="none" if batch.weight is not None else "mean"
        )
        loss = picked if batch.weight is None else weighted_mean(picked, batch.weight)
        gradient = log_p.exp_()
        minus = torch.full_like(batch.y, -1, dtype=outputs.dtype).unsqueeze(1)
        gradient.scatter_add_(1, batch.y.unsqueeze(1), minus)
        return loss, gradient.mul_(_share(outputs, batch.weight))

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the weighted mean, by torch's fused mean where every row counts the same."""
        if batch.weight is None and not (self.label_smoothing and self.convention == "notes"):
            loss = F.cross_entropy(net(batch.x), batch.y, label_smoothing=self.label_smoothing)
            return {"loss": loss}
        return super().terms(net, batch, phase)


class BinaryCrossEntropy(Supervised):
    """softplus(z) - y z, averaged over independent yes/no outputs."""

    def loss_gradient(self, outputs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the loss and its gradient by the outputs, (sigmoid(z) - y) / L per row."""
        loss = weighted_mean(self.rows(outputs, batch.y), batch.weight)
        gradient = (torch.sigmoid(outputs) - batch.y).div_(outputs.shape[1])
        return loss, gradient.mul_(_share(outputs, batch.weight))

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean binary cross-entropy of each row."""
        return F.binary_cross_entropy_with_logits(outputs, targets, reduction="none").mean(dim=1)


def smooth_labels(
    targets: Tensor,
    classes: int,
    eps: float,
    convention: str = "notes",
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return smoothed one-hot targets, (B, K).

    >>> smooth_labels(torch.tensor([0]), 3, 0.1)
    tensor([[0.9000, 0.0500, 0.0500]])
    """
    hard = F.one_hot(targets, classes).to(dtype or torch.get_default_dtype())
    if convention == "torch":
        return hard * (1 - eps) + eps / classes
    return hard * (1 - eps) + (1 - hard) * eps / (classes - 1)
