"""Information measures, in nats or bits, of discrete distributions and of Gaussians.

I(x) = -log P(x),  H(P) = E_P I,  H(P, Q) = -E_P log Q,  KL(P || Q) = H(P, Q) - H(P).
A discrete distribution is its probabilities along the last dimension; any other is an object of
``torch.distributions``, whose differential entropy may be negative. Outcomes of probability zero
add nothing; where Q rules out what P allows, H(P, Q) and KL are infinite.
Reference: 1948, Shannon, A mathematical theory of communication, Bell System Technical Journal 27.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch import distributions as td
from torch.distributions import Distribution

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch

__all__ = ["cross_entropy", "entropy", "kl_divergence", "self_information"]


def self_information(p: Any, *, base: float | None = None) -> Tensor:
    """Surprise -log p of an outcome of probability p.

    Parameters
    ----------
    p
        Probabilities, each on its own.
    base
        Of the logarithm: None gives nats, 2 gives bits.

    Examples
    --------
    >>> self_information([0.5, 0.125], base=2)
    tensor([1., 3.], dtype=torch.float64)
    """
    p = as_numbers(p)
    if not bool(((p >= 0) & (p <= 1)).all()):
        raise InvalidData(
            f"self_information: a probability must lie between 0 and 1; got {_first(p, 0, 1)}."
        )
    return -p.log() / _unit("self_information", base)


def entropy(p: Any, *, base: float | None = None) -> Tensor:
    """Entropy of a distribution: the mean surprise of its outcomes.

    Parameters
    ----------
    p
        Probabilities (…, K), or a ``torch.distributions`` object.
    base
        Of the logarithm: None gives nats, 2 gives bits.

    Examples
    --------
    >>> entropy([0.25, 0.25, 0.25, 0.25], base=2)
    tensor(2., dtype=torch.float64)
    >>> entropy(td.Normal(0.0, 1.0))  # 1/2 ln(2 pi e)
    tensor(1.4189)
    """
    unit = _unit("entropy", base)
    if isinstance(p, Distribution):
        return p.entropy() / unit
    return torch.special.entr(as_probabilities("entropy", p)).sum(dim=-1) / unit


def cross_entropy(p: Any, q: Any, *, base: float | None = None) -> Tensor:
    """Mean surprise of one who believes q where p holds.

    Parameters
    ----------
    p, q
        Probabilities (…, K), or ``torch.distributions`` objects.
    base
        Of the logarithm: None gives nats, 2 gives bits.

    Examples
    --------
    >>> cross_entropy([0.5, 0.5], [0.25, 0.75], base=2)
    tensor(1.2075, dtype=torch.float64)
    """
    unit = _unit("cross_entropy", base)
    if _both_objects("cross_entropy", p, q):
        return (p.entropy() + td.kl_divergence(p, q)) / unit
    p, q = _pair("cross_entropy", p, q)
    return -torch.special.xlogy(p, q).sum(dim=-1) / unit


def kl_divergence(p: Any, q: Any, *, base: float | None = None) -> Tensor:
    """Extra surprise of one who believes q where p holds: zero only if they are equal.

    Parameters
    ----------
    p, q
        Probabilities (…, K), or ``torch.distributions`` objects. The order matters.
    base
        Of the logarithm: None gives nats, 2 gives bits.

    Examples
    --------
    >>> kl_divergence([0.5, 0.5], [0.25, 0.75], base=2)
    tensor(0.2075, dtype=torch.float64)
    >>> kl_divergence(td.Normal(0.0, 1.0), td.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    unit = _unit("kl_divergence", base)
    if _both_objects("kl_divergence", p, q):
        return td.kl_divergence(p, q) / unit
    p, q = _pair("kl_divergence", p, q)
    return (torch.special.xlogy(p, p) - torch.special.xlogy(p, q)).sum(dim=-1) / unit


def as_numbers(values: Any) -> Tensor:
    """Return a tensor as it is, anything else in double precision."""
    if isinstance(values, Tensor):
        return values if values.is_floating_point() else values.double()
    return torch.as_tensor(values, dtype=torch.float64)


def as_probabilities(owner: str, values: Any) -> Tensor:
    """Return probabilities along the last dimension, or say why they are none."""
    p = as_numbers(values)
    if p.ndim == 0:
        raise ShapeMismatch(
            f"{owner}: probabilities must be (…, K), one for each outcome; got one number, "
            f"{float(p):g}. Write [p, 1 - p] for a coin."
        )
    if bool((p < 0).any()):
        raise InvalidData(f"{owner}: probabilities must not be negative; got {_first(p, 0)}.")
    total = p.sum(dim=-1)
    off = (total - 1).abs()
    if not bool((off <= max(1e-5, 10 * torch.finfo(p.dtype).eps)).all()):
        worst = total.flatten()[off.flatten().argmax()]
        raise InvalidData(
            f"{owner}: probabilities must sum to 1; got {float(worst):g}. Divide by their sum."
        )
    return p


def _pair(owner: str, p: Any, q: Any) -> tuple[Tensor, Tensor]:
    p, q = as_probabilities(owner, p), as_probabilities(owner, q)
    if p.shape[-1] != q.shape[-1]:
        raise ShapeMismatch(
            f"{owner}: both distributions must have the same outcomes; got {p.shape[-1]} and "
            f"{q.shape[-1]}."
        )
    return p, q


def _both_objects(owner: str, p: Any, q: Any) -> bool:
    """Whether both are distribution objects; one alone cannot be compared with probabilities."""
    kinds = [isinstance(side, Distribution) for side in (p, q)]
    if kinds[0] != kinds[1]:
        raise InvalidParameter(
            f"{owner}: `p` and `q` must both be probabilities or both `torch.distributions` "
            f"objects; got {type(p).__name__} and {type(q).__name__}."
        )
    return kinds[0]


def _unit(owner: str, base: float | None) -> float:
    if base is None:
        return 1.0
    if base <= 1:
        raise InvalidParameter(f"{owner}: `base` must be above 1, or None for nats; got {base}.")
    return math.log(base)


def _first(p: Tensor, low: float, high: float = math.inf) -> str:
    """Return the first value outside the bounds, for a message."""
    return f"{float(p[~((p >= low) & (p <= high))].flatten()[0]):g}"
