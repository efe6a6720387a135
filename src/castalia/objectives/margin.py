"""Losses of the margin m = y f(x), y = +1 or -1: positive when the answer is right.

hinge max(0, 1 - m), logistic ln(1 + e^-m), perceptron max(0, -m), and the 0-1 loss 1[m <= 0] they
stand for.  Shapes: B batch, K outputs.
References: 2001, Crammer, Singer, On the algorithmic implementation of multiclass kernel-based
vector machines, JMLR 2. 2006, Bartlett, Jordan, McAuliffe, Convexity, classification, and risk
bounds, JASA 101.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.objectives.supervised import Supervised
from castalia.protocols import Phase

__all__ = ["Hinge", "Logistic", "MarginLoss", "PerceptronLoss", "ZeroOne", "margins"]

ONE_VS_REST, CRAMMER_SINGER = "one_vs_rest", "crammer_singer"


def margins(outputs: Tensor, targets: Tensor, multiclass: str = ONE_VS_REST) -> Tensor:
    """Return the margins of each row, (B, K), or (B, 1) for ``"crammer_singer"``.

    Parameters
    ----------
    outputs
        Scores (B, K); one column is a single yes/no score.
    targets
        Class codes (B,), whole numbers; or signs of the shape of the outputs, where 1 says yes and
        0 or -1 says no. With one column of scores, codes are 0 and 1 and signs may be (B,) too.
    multiclass
        With class codes: ``"one_vs_rest"`` gives every output its own margin, positive for the
        true class and negative for the others; ``"crammer_singer"`` gives the lead of the true
        class over its best rival.

    Examples
    --------
    >>> margins(torch.tensor([[2.0, -1.0, 0.5]]), torch.tensor([0]))
    tensor([[ 2.0000,  1.0000, -0.5000]])
    >>> margins(torch.tensor([[2.0, -1.0, 0.5]]), torch.tensor([0]), "crammer_singer")
    tensor([[1.5000]])
    """
    if outputs.ndim == 2 and outputs.shape[1] == 1 and targets.ndim == 1:
        targets = targets.unsqueeze(1)  # one score: codes 0 and 1 are signs already
    if targets.ndim == outputs.ndim - 1 == 1 and not targets.is_floating_point():
        truth = F.one_hot(targets.long(), outputs.shape[1]).bool()  # (B, K)
        if multiclass == CRAMMER_SINGER:
            rival = outputs.masked_fill(truth, -torch.inf).amax(dim=1, keepdim=True)
            return outputs.gather(1, targets.long().unsqueeze(1)) - rival
    elif targets.shape == outputs.shape:
        truth = targets > 0
    else:
        raise ShapeMismatch(
            f"margins: targets must be whole class codes ({len(outputs)},) or signs of the shape "
            f"of the outputs, {tuple(outputs.shape)}; got {targets.dtype} of shape "
            f"{tuple(targets.shape)}."
        )
    return torch.where(truth, outputs, -outputs)


class MarginLoss(Supervised):
    """A loss that falls with the margin; summed over the outputs of a row.

    Parameters
    ----------
    multiclass
        How class codes become margins, ``"one_vs_rest"`` or ``"crammer_singer"``; see ``margins``.
    """

    def __init__(self, *, multiclass: str = ONE_VS_REST) -> None:
        if multiclass not in (ONE_VS_REST, CRAMMER_SINGER):
            raise InvalidParameter(
                f"{type(self).__name__}: `multiclass` must be '{ONE_VS_REST}' or "
                f"'{CRAMMER_SINGER}'; got {multiclass!r}."
            )
        self.multiclass = multiclass

    def of_margin(self, margin: Tensor) -> Tensor:
        """Return the loss of each margin."""
        raise NotImplementedError

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each row, the sum over its margins."""
        return self.of_margin(margins(outputs, targets, self.multiclass)).flatten(1).sum(dim=1)


class Hinge(MarginLoss):
    """max(0, 1 - m), the loss of support vector machines: no cost beyond a margin of 1.

    Parameters
    ----------
    multiclass
        How class codes become margins, ``"one_vs_rest"`` or ``"crammer_singer"``; see ``margins``.
    squared
        Take max(0, 1 - m)^2, which is smooth.

    Examples
    --------
    >>> Hinge().of_margin(torch.tensor([-1.0, 0.0, 1.0, 2.0]))
    tensor([2., 1., 0., 0.])
    """

    def __init__(self, *, multiclass: str = ONE_VS_REST, squared: bool = False) -> None:
        super().__init__(multiclass=multiclass)
        self.squared = squared

    def of_margin(self, margin: Tensor) -> Tensor:
        """Return max(0, 1 - m), or its square."""
        short = (1 - margin).clamp_min(0)
        return short.square() if self.squared else short


class Logistic(MarginLoss):
    """ln(1 + e^-m): the binary cross-entropy of labels +1 and -1.

    Divided by ln 2 it lies above the 0-1 loss.

    Examples
    --------
    >>> Logistic().of_margin(torch.zeros(1))
    tensor([0.6931])
    """

    def of_margin(self, margin: Tensor) -> Tensor:
        """Return ln(1 + e^-m)."""
        return F.softplus(-margin)


class PerceptronLoss(MarginLoss):
    """max(0, -m): only mistakes cost; a gradient step on one row is the perceptron rule.

    A margin of exactly zero counts as a mistake, so learning can start from weights zero.

    Examples
    --------
    >>> PerceptronLoss().of_margin(torch.tensor([-2.0, -0.5, 2.0]))
    tensor([2.0000, 0.5000, 0.0000])
    """

    def of_margin(self, margin: Tensor) -> Tensor:
        """Return max(0, -m)."""
        return (-margin).clamp_min(0)


class ZeroOne(Supervised):
    """1 for a mistake and 0 otherwise: what is meant, and what gradients cannot minimise.

    The answer is the largest output for class codes, and the sign of each output (0 says no) for
    yes/no targets; with several of those, a row's loss is the fraction that is wrong.

    Examples
    --------
    >>> ZeroOne().rows(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0]))
    tensor([0., 1.])
    """

    def phases(self, net: nn.Module) -> list[Phase]:
        """Refuse to train."""
        raise InvalidParameter(
            "ZeroOne: a loss to train with must have a gradient, and the 0-1 loss is flat. "
            "Train with Hinge(), Logistic() or CrossEntropy() and measure with ZeroOne()."
        )

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return 1 for each row answered wrongly."""
        if targets.ndim == 1 and outputs.shape[1] > 1:
            return (outputs.argmax(dim=1) != targets).to(outputs.dtype)
        wrong = (outputs > 0) != (targets.reshape(outputs.shape) > 0)
        return wrong.to(outputs.dtype).flatten(1).mean(dim=1)
