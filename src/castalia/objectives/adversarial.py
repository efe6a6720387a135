"""Adversarial examples: small changes of the inputs that raise the loss most, and training on them.

FGSM: x' = x + eps sign(g) with g = dJ/dx, the worst point of the ball ||x' - x||_inf <= eps to
first order.  PGD repeats smaller steps, each projected back into the ball.
References: 2015, Goodfellow, Shlens, Szegedy, Explaining and harnessing adversarial examples, arXiv
1412.6572. 2018, Madry, Makelov, Schmidt, Tsipras, Vladu, Towards deep learning models resistant to
adversarial attacks, arXiv 1706.06083.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidData, InvalidParameter
from castalia.nn import evaluating
from castalia.objectives.norm_balls import BALLS
from castalia.objectives.objective import Objective, Wrapped
from castalia.protocols import Batch

__all__ = ["Adversarial", "fgsm", "pgd"]

Limits = tuple[float, float] | None
Loss = Any  # an objective with `rows(outputs, targets)`, or a function of outputs and targets


def fgsm(
    net: nn.Module,
    loss: Loss,
    x: Tensor,
    y: Tensor,
    eps: float,
    *,
    targeted: bool = False,
    limits: Limits = None,
) -> Tensor:
    """Change every input by eps in the direction that raises the loss: one gradient sign step.

    Parameters
    ----------
    net
        The network; it is called in evaluation mode and left as it was, gradients included.
    loss
        An objective with ``rows``, such as ``CrossEntropy()``, or a function of outputs and
        targets.
    x, y
        Inputs (B, …) and targets; with ``targeted`` the targets to be reached.
    eps
        Largest change of an input.
    targeted
        Lower the loss against ``y`` instead of raising it.
    limits
        Smallest and largest value an input can have, such as (0, 1) for pixels.

    Returns
    -------
    Tensor
        Inputs of the shape of x, detached.

    Examples
    --------
    >>> from castalia.objectives import SquaredError
    >>> net = nn.Linear(2, 1, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[1.0, -2.0]]))
    >>> fgsm(net, SquaredError(), torch.ones(1, 2), torch.zeros(1, 1), eps=0.1)
    tensor([[0.9000, 1.1000]])
    """
    _check("fgsm", x, eps, limits)
    with evaluating(net):
        step = eps * _gradient(net, loss, x, y).sign()
    return _clamp(x - step if targeted else x + step, limits)


def pgd(
    net: nn.Module,
    loss: Loss,
    x: Tensor,
    y: Tensor,
    eps: float,
    *,
    steps: int = 10,
    step: float | None = None,
    norm: str = "inf",
    targeted: bool = False,
    limits: Limits = None,
    random_start: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Search the ball of radius eps around each row for the highest loss, by projected ascent.

    Parameters
    ----------
    net, loss, x, y, targeted, limits
        As for ``fgsm``.
    eps
        Radius: of every input (``"inf"``) or of a whole row (``"l2"``).
    steps
        Gradient steps.
    step
        Their length; 2.5 eps / steps by default, enough to cross the ball.
    norm
        ``"inf"`` or ``"l2"``.
    random_start
        Start at a random point of the ball instead of at x. Turn it off where some inputs are codes
        and not quantities: those have no gradient and then stay as they are.
    generator
        Where the start is drawn from; torch's own by default.

    Returns
    -------
    Tensor
        Inputs of the shape of x, detached.
    """
    _check("pgd", x, eps, limits)
    if norm not in BALLS:
        raise InvalidParameter(f"pgd: `norm` must be 'inf' or 'l2'; got {norm!r}.")
    if steps < 1:
        raise InvalidParameter(f"pgd: `steps` must be at least 1; got {steps}.")
    uphill, project, draw = BALLS[norm]
    length = (2.5 * eps / steps if step is None else step) * (-1 if targeted else 1)
    near = _clamp(x + draw(x, eps, generator), limits) if random_start else x.detach()
    with evaluating(net):
        for _ in range(steps):
            near = near + length * uphill(_gradient(net, loss, near, y))
            near = _clamp(x + project(near - x, eps), limits)
    return near


class Adversarial(Wrapped):
    """An objective that is also minimised at the worst points near the rows.

    (1 - share) J(x) + share J(x'), with x' found again for every batch. In evaluation mode it is
    J(x): validation sees the rows as they are.

    Parameters
    ----------
    objective
        One with ``rows(outputs, targets)``, such as ``CrossEntropy()``. Add penalties outside:
        ``Adversarial(CrossEntropy(), 0.1) + L2(1e-4)``.
    eps
        Radius of the attack, in units of the network's inputs.
    steps
        1 is the gradient sign step; more is ``pgd``, stronger and as many times as dear.
    norm
        ``"inf"``, or ``"l2"`` with more than one step.
    share
        Weight of the attacked rows.
    limits
        Smallest and largest value an input can have.

    Examples
    --------
    >>> from castalia.objectives import SquaredError
    >>> net = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.ones_(net.weight)
    >>> batch = Batch(torch.ones(1, 1), torch.zeros(1, 1))
    >>> terms = Adversarial(SquaredError(), eps=1.0).terms(net, batch, "train")
    >>> {name: value.item() for name, value in terms.items()}
    {'loss': 2.5, 'clean': 1.0, 'adversarial': 4.0}
    """

    def __init__(
        self,
        objective: Objective,
        eps: float,
        *,
        steps: int = 1,
        norm: str = "inf",
        share: float = 0.5,
        limits: Limits = None,
    ) -> None:
        if not hasattr(objective, "rows"):
            raise InvalidParameter(
                "Adversarial: `objective` must compare outputs with targets row by row (have a "
                f"method `rows`); got {type(objective).__name__}."
            )
        if steps == 1 and norm != "inf":
            raise InvalidParameter(
                f"Adversarial: `norm` must be 'inf' with steps=1; got {norm!r}. Set steps=5."
            )
        if not 0 < share <= 1:
            raise InvalidParameter(
                f"Adversarial: `share` must be above 0 and at most 1; got {share}."
            )
        super().__init__(objective)
        self.eps, self.steps = eps, steps
        self.norm, self.share, self.limits = norm, share, limits

    def attack(self, net: nn.Module, batch: Batch) -> Tensor:
        """Return the rows that the loss is also taken at."""
        given = (net, self.objective, batch.x, batch.y, self.eps)
        if self.steps == 1:
            return fgsm(*given, limits=self.limits)
        return pgd(*given, steps=self.steps, norm=self.norm, limits=self.limits)

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mixed loss and its two parts; in evaluation mode the objective's terms."""
        clean = self.objective.terms(net, batch, phase)
        if not net.training:
            return clean
        worse = batch._replace(x=self.attack(net, batch))
        there = self.objective.terms(net, worse, phase)["loss"]
        loss = (1 - self.share) * clean["loss"] + self.share * there
        return {**clean, "loss": loss, "clean": clean["loss"], "adversarial": there}


def _gradient(net: nn.Module, loss: Loss, x: Tensor, y: Tensor) -> Tensor:
    """Return the gradient of each row's loss by its inputs; parameters receive none."""
    with torch.enable_grad():  # validation and prediction run without gradients
        x = x.detach().requires_grad_()
        rows = loss.rows(net(x), y) if hasattr(loss, "rows") else loss(net(x), y)
        (gradient,) = torch.autograd.grad(rows.sum(), x)
    return gradient


def _clamp(x: Tensor, limits: Limits) -> Tensor:
    return (x if limits is None else x.clamp(*limits)).detach()


def _check(owner: str, x: Tensor, eps: float, limits: Limits) -> None:
    if not x.is_floating_point():
        raise InvalidData(
            f"{owner}: `x` must hold floats, or there is no gradient by it; got {x.dtype}. "
            "Use x.float()."
        )
    if eps < 0:
        raise InvalidParameter(f"{owner}: `eps` must be at least 0; got {eps}.")
    if limits is not None and not limits[0] < limits[1]:
        raise InvalidParameter(f"{owner}: `limits` must be (low, high); got {limits}.")
