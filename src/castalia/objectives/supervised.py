"""Losses between a network's outputs and given targets."""

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.objectives.objective import Objective, weighted_mean
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


def _check_shapes(owner: object, outputs: Tensor, targets: Tensor) -> None:
    """Refuse shapes that differ: torch would pair every output with every target."""
    if outputs.shape != targets.shape:
        raise ShapeMismatch(
            f"{type(owner).__name__}: targets must have the shape of the outputs, "
            f"{tuple(outputs.shape)}; got {tuple(targets.shape)}. Reshape the targets."
        )


class SquaredError(Supervised):
    """Squared error, averaged over rows: the likelihood of a Gaussian of fixed width.

    Parameters
    ----------
    scale
        What a row with T outputs costs: ``"mean"`` (torch's) is (1/T) ||f(x) - y||^2, ``"sum"`` is
        ||f(x) - y||^2, and ``"half"`` is 1/2 ||f(x) - y||^2, whose gradient is f(x) - y. The three
        differ by constants only.

    Notes
    -----
    Rows are always averaged, so that the loss and a good learning rate do not depend on the batch
    size. The sum of squared errors over a data set is ``SquaredError(scale="sum").rows(…).sum()``,
    N times the loss.

    Examples
    --------
    >>> outputs, targets = torch.tensor([[1.0, 4.0]]), torch.tensor([[0.0, 2.0]])
    >>> [float(SquaredError(scale=s).rows(outputs, targets)) for s in ("mean", "sum", "half")]
    [2.5, 5.0, 2.5]
    """

    scale = "mean"  # also of a subclass whose constructor does not call this one

    def __init__(self, *, scale: str = "mean") -> None:
        if scale not in ("mean", "sum", "half"):
            raise InvalidParameter(
                f"SquaredError: `scale` must be 'mean', 'sum' or 'half'; got {scale!r}."
            )
        self.scale = scale

    def _reduce(self, squares: Tensor) -> Tensor:  # (B, T)
        """Return what each row costs, (B,)."""
        if self.scale == "mean":
            return squares.mean(dim=1)
        return squares.sum(dim=1) if self.scale == "sum" else squares.sum(dim=1) / 2

    def loss_gradient(self, outputs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the loss and its gradient by the outputs, (2/T, 2 or 1) times f - y per row."""
        _check_shapes(self, outputs, batch.y)
        gap = outputs - batch.y
        loss = weighted_mean(self._reduce(gap.square()), batch.weight)
        factor = {"mean": 2 / gap.shape[1], "sum": 2.0, "half": 1.0}[self.scale]
        return loss, gap.mul_(factor).mul_(_share(gap, batch.weight))

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the squared error of each row."""
        _check_shapes(self, outputs, targets)
        return self._reduce((outputs - targets).square().flatten(1))


class AbsoluteError(Supervised):
    """Mean over outputs of |f(x) - y|: estimates the conditional median."""

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the absolute error of each row."""
        _check_shapes(self, outputs, targets)
        return (outputs - targets).abs().flatten(1).mean(dim=1)


class CrossEntropy(Supervised):
    """-log softmax(z)_y for exclusive classes.

    Targets are class codes (B,) or, as floats, a distribution over the classes (B, K). Of maps,
    such as a class for every pixel (outputs (B, K, …), targets (B, …)), a row's mean is taken.

    Parameters
    ----------
    label_smoothing
        Mass taken from the true class, at least 0 and below 1.
    convention
        How that mass is spread over K classes: ``"torch"`` gives eps/K to every class, the true one
        included; ``"others"`` gives eps/(K-1) to each of the others, so the true class keeps 1 -
        eps.

    Examples
    --------
    >>> CrossEntropy().rows(torch.zeros(1, 4), torch.tensor([2])).exp()
    tensor([4.])
    """

    def __init__(self, *, label_smoothing: float = 0.0, convention: str = "torch") -> None:
        convention = _known_convention("CrossEntropy", convention)
        if not 0 <= label_smoothing < 1:
            raise InvalidParameter(
                "CrossEntropy: `label_smoothing` must be at least 0 and below 1; got "
                f"{label_smoothing}."
            )
        self.label_smoothing, self.convention = label_smoothing, convention

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:  # (B, K, …), (B, …)
        """Return the cross-entropy of each row."""
        smoothing = self.label_smoothing
        if smoothing and self.convention == "others":
            targets, smoothing = self._smoothed(outputs, targets), 0.0
        loss = F.cross_entropy(outputs, targets, reduction="none", label_smoothing=smoothing)
        return loss if loss.ndim == 1 else loss.flatten(1).mean(dim=1)

    def _smoothed(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the distribution over classes that the outputs are held against, (B, K, …)."""
        classes, eps = outputs.shape[1], self.label_smoothing
        return smooth_labels(targets, classes, eps, self.convention, dtype=outputs.dtype)

    def loss_gradient(self, outputs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the loss and its gradient by the outputs (B, K), softmax(z) - t per row."""
        log_p = torch.log_softmax(outputs, dim=1)
        if self.label_smoothing or batch.y.is_floating_point():
            targets = self._smoothed(outputs, batch.y)
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
        if batch.weight is None and not (self.label_smoothing and self.convention == "others"):
            loss = F.cross_entropy(net(batch.x), batch.y, label_smoothing=self.label_smoothing)
            return {"loss": loss}
        return super().terms(net, batch, phase)


class BinaryCrossEntropy(Supervised):
    """softplus(z) - y z, averaged over independent yes/no outputs; y is 0, 1 or between."""

    def loss_gradient(self, outputs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the loss and its gradient by the outputs, (sigmoid(z) - y) / L per row."""
        loss = weighted_mean(self.rows(outputs, batch.y), batch.weight)
        gradient = (torch.sigmoid(outputs) - batch.y).div_(outputs.shape[1])
        return loss, gradient.mul_(_share(outputs, batch.weight))

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean binary cross-entropy of each row."""
        _check_shapes(self, outputs, targets)
        loss = F.binary_cross_entropy_with_logits(outputs, targets, reduction="none")
        return loss.flatten(1).mean(dim=1)


def class_loss(several: bool, label_smoothing: float = 0.0) -> Supervised:
    """Return the loss of a classifier: of one class a row, or of several labels at once.

    Parameters
    ----------
    several
        Whether a row may have several labels, or none.
    label_smoothing
        Share of a label's mass that is spread over all classes, where a row has one.

    Examples
    --------
    >>> type(class_loss(True)).__name__, type(class_loss(False, 0.1)).__name__
    ('BinaryCrossEntropy', 'CrossEntropy')
    """
    return BinaryCrossEntropy() if several else CrossEntropy(label_smoothing=label_smoothing)


def smooth_labels(
    targets: Tensor,
    classes: int,
    eps: float = 0.0,
    convention: str = "others",
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return one-hot targets (B, K, …), smoothed by ``eps``.

    Targets are class codes (B, …), or already distributions over the classes (B, K, …).

    >>> smooth_labels(torch.tensor([0]), 3)
    tensor([[1., 0., 0.]])
    >>> smooth_labels(torch.tensor([0]), 3, 0.1)
    tensor([[0.9000, 0.0500, 0.0500]])
    """
    convention = _known_convention("smooth_labels", convention)
    hard = targets if targets.is_floating_point() else F.one_hot(targets, classes).movedim(-1, 1)
    hard = hard.to(dtype or torch.get_default_dtype())
    if convention == "torch":
        return hard * (1 - eps) + eps / classes
    return hard * (1 - eps) + (1 - hard) * eps / (classes - 1)


def _known_convention(owner: str, convention: str) -> str:
    """Return how mass is spread over classes, by its name of today."""
    if convention == "notes":
        warnings.warn(
            f"{owner}: convention='notes' is called 'others' now and ends with the next version.",
            FutureWarning,
            stacklevel=3,
        )
        return "others"
    if convention not in ("torch", "others"):
        raise InvalidParameter(
            f"{owner}: `convention` must be 'torch' or 'others'; got {convention!r}."
        )
    return convention
