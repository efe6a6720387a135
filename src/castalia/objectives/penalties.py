"""Penalties on parameters; norms spare biases and normalisation scales.

Omega(w) = alpha/2 sum w^2 (L2), alpha sum |w| (L1) or alpha sum |w|^q (Lq). Texts differ by a
factor 1/2: ``half`` puts it in or leaves it out.
"""

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.objectives.objective import Penalty
from castalia.utils.text import did_you_mean, listing

__all__ = ["L1", "L2", "Lq", "Tied"]


def weights(net: nn.Module) -> list[Tensor]:
    """Return the trainable weight matrices: parameters with two or more dimensions."""
    return [p for p in net.parameters() if p.requires_grad and p.ndim >= 2]


def _total(net: nn.Module, parts: list[Tensor]) -> Tensor:
    """Add up; nothing to add is zero, where the network is."""
    if parts:
        return torch.stack(parts).sum()
    return torch.zeros((), device=next((p.device for p in net.parameters()), None))


class L2(Penalty):
    """alpha/2 times the sum of squared weights; its gradient is alpha w.

    Up to a constant it is the negative log of a Gaussian prior of variance 1/alpha.

    Parameters
    ----------
    alpha
        Strength; larger values draw weights closer to zero.
    half
        Keep the factor 1/2; without it the gradient is 2 alpha w.

    Examples
    --------
    >>> net = nn.Linear(2, 1)
    >>> _ = net.weight.data.copy_(torch.tensor([[1.0, -2.0]]))
    >>> [round(L2(0.1, half=half).value(net).item(), 4) for half in (True, False)]
    [0.25, 0.5]
    """

    name = "l2"

    def __init__(self, alpha: float, *, half: bool = True) -> None:
        self.alpha, self.half = alpha, half

    def value(self, net: nn.Module) -> Tensor:
        """Return alpha/2 sum w^2 (alpha sum w^2 with ``half=False``)."""
        factor = self.alpha / 2 if self.half else self.alpha
        return factor * _total(net, [w.square().sum() for w in weights(net)])


class L1(Penalty):
    """Alpha times the sum of absolute weights; its subgradient is alpha sign(w).

    Up to a constant it is the negative log of a Laplace prior of scale 1/alpha. It makes useless
    weights vanish, where L2 makes them small.

    Parameters
    ----------
    alpha
        Strength; larger values leave fewer weights.
    """

    name = "l1"

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def value(self, net: nn.Module) -> Tensor:
        """Return alpha sum |w|."""
        return self.alpha * _total(net, [w.abs().sum() for w in weights(net)])


class Lq(Penalty):
    """Alpha times the sum of |w|^q: L1 for q = 1, not convex below, ever more even weights above.

    Parameters
    ----------
    alpha
        Strength.
    q
        Exponent, above 0.
    half
        Put a factor 1/2 before it; then q = 2 is ``L2(alpha)``.

    Notes
    -----
    Below q = 1 the slope is infinite at zero: a weight that is exactly zero stays there.
    """

    name = "lq"

    def __init__(self, alpha: float, q: float, *, half: bool = False) -> None:
        if q <= 0:
            raise InvalidParameter(f"Lq: `q` must be above 0; got {q}.")
        self.alpha, self.q, self.half = alpha, q, half

    def value(self, net: nn.Module) -> Tensor:
        """Return alpha sum |w|^q (alpha/2 with ``half=True``)."""
        factor = self.alpha / 2 if self.half else self.alpha
        return factor * _total(net, [self._power(w) for w in weights(net)])

    def _power(self, w: Tensor) -> Tensor:
        size = w.abs()
        if self.q < 1:  # at zero the slope is 0 times infinity: leave zeros out
            size = torch.where(size > 0, size, 1.0)
            return (size.pow(self.q) * (w != 0)).sum()
        return size.pow(self.q).sum()


class Tied(Penalty):
    """Alpha times the squared distance ||w_A - w_B||^2 of two parts' parameters.

    Ties two tasks or two models that are thought to be alike: they may differ where the data ask
    for it. (Parts that must be equal share one module instead.)

    Parameters
    ----------
    first, second
        Parts of the network, by their names in ``net.named_modules()``, with the same parameters,
        biases included. ``second`` may also be a module outside the network, which is held fixed:
        a pre-trained model to stay near.
    alpha
        Strength; 0 leaves both free, larger values draw them together.

    Examples
    --------
    >>> net = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.Linear(1, 1)})
    >>> _ = [nn.init.zeros_(p) for p in net.parameters()]
    >>> _ = nn.init.constant_(net["a"].weight, 3.0)
    >>> Tied("a", "b", alpha=0.5).value(net).item()
    4.5
    """

    name = "tied"

    def __init__(self, first: str, second: str | nn.Module, *, alpha: float = 1.0) -> None:
        self.first, self.second, self.alpha = first, second, alpha

    def value(self, net: nn.Module) -> Tensor:
        """Return alpha ||w_A - w_B||^2."""
        ours = dict(_part(net, self.first).named_parameters())
        inside = isinstance(self.second, str)
        second = _part(net, self.second) if isinstance(self.second, str) else self.second
        others = {n: p if inside else p.detach() for n, p in second.named_parameters()}
        shapes = [{n: tuple(p.shape) for n, p in side.items()} for side in (ours, others)]
        if shapes[0] != shapes[1]:
            raise ShapeMismatch(
                f"Tied: both parts must have the same parameters; got {shapes[0]} and {shapes[1]}."
            )
        gaps = [(w - others[name].to(w)).square().sum() for name, w in ours.items()]
        return self.alpha * _total(net, gaps)


def _part(net: nn.Module, name: str) -> nn.Module:
    modules = dict(net.named_modules())
    if name not in modules:
        raise InvalidParameter(
            f"Tied: a part must be {listing([n for n in modules if n])}; got {name!r}."
            f"{did_you_mean(name, modules)}"
        )
    return modules[name]
