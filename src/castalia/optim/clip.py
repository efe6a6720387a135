"""Gradient clipping: by the norm of the whole gradient, or each of its numbers.

By norm: g <- v g / |g| where |g| > v. The direction stays; a step at a cliff is cut short.
By value: g_i <- min(max(g_i, -v), v). The direction may turn.
Reference: 2013, Pascanu, Mikolov, Bengio, On the difficulty of training recurrent neural networks,
arXiv 1211.5063.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_value_, get_total_norm

from castalia.errors import InvalidParameter

__all__ = ["clip_by_norm", "clip_by_value", "clip_gradients", "gradient_norm"]


def gradient_norm(parameters: Tensor | Iterable[Tensor]) -> Tensor:
    """Norm of the gradient of all parameters together, on the device: reading it waits.

    >>> w = torch.zeros(2, requires_grad=True)
    >>> w.grad = torch.tensor([3.0, 4.0])
    >>> gradient_norm([w])
    tensor(5.)
    """
    norm: Any = get_total_norm([p.grad for p in _with_gradients(parameters)])  # type: ignore
    return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # gathered where sharded


@torch.no_grad()
def clip_by_norm(parameters: Tensor | Iterable[Tensor], threshold: float) -> Tensor:
    """Shrink the whole gradient to the norm ``threshold`` where it is longer.

    A gradient that is not longer keeps every bit; torch's ``clip_grad_norm_`` shrinks one that
    touches the threshold.

    Returns
    -------
    Tensor
        The norm before.

    Examples
    --------
    >>> w = torch.zeros(2, requires_grad=True)
    >>> w.grad = torch.tensor([3.0, 4.0])
    >>> clip_by_norm([w], 1.0), w.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    _check("clip_by_norm", threshold)
    parameters = _with_gradients(parameters)
    norm = gradient_norm(parameters)
    scale = torch.where(norm > threshold, threshold / norm, 1.0)
    for device in {p.device for p in parameters}:
        gradients = [p.grad for p in parameters if p.grad is not None and p.device == device]
        torch._foreach_mul_(gradients, scale.to(device))
    return norm


def clip_by_value(parameters: Tensor | Iterable[Tensor], threshold: float) -> None:
    """Cut every number of the gradient to the range from ``-threshold`` to ``threshold``.

    Examples
    --------
    >>> w = torch.zeros(2, requires_grad=True)
    >>> w.grad = torch.tensor([3.0, -0.2])
    >>> clip_by_value([w], 0.5)
    >>> w.grad
    tensor([ 0.5000, -0.2000])
    """
    _check("clip_by_value", threshold)
    found = _with_gradients(parameters)
    if found:
        clip_grad_value_(found, threshold)


def clip_gradients(parameters: Tensor | Iterable[Tensor], clip: Any) -> None:
    """Clip as ``Training(clip=…)`` says: None, a norm, or ``("value", threshold)``."""
    if isinstance(clip, tuple):
        clip_by_value(parameters, clip[1])
    elif clip is not None:
        clip_by_norm(parameters, clip)


def _with_gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    """List what has a gradient; one tensor may stand for itself, as in torch."""
    found = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p for p in found if p.grad is not None]


def _check(owner: str, threshold: float) -> None:
    if not threshold >= 0:  # a negative one would turn the gradient round
        raise InvalidParameter(f"{owner}: `threshold` must be at least 0; got {threshold!r}.")
