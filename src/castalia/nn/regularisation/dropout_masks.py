"""All masks of dropout at once, for as many units as can be enumerated.

Shapes: B batch, D inputs, K classes, M masks.
"""

import torch
from torch import Tensor

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn.regularisation.dropout_layers import check_keep

__all__ = ["all_masks", "geometric_ensemble"]

MOST_UNITS = 20  # 2^20 masks take seconds; every further unit doubles that
CHUNK = 4096  # masks at a time


def all_masks(units: int, *, like: Tensor | None = None) -> Tensor:
    """Return every mask of so many units, (2^units, units).

    >>> all_masks(2)
    tensor([[0., 0.],
            [1., 0.],
            [0., 1.],
            [1., 1.]])
    """
    if not 0 <= units <= MOST_UNITS:
        raise InvalidParameter(
            f"all_masks: `units` must be between 0 and {MOST_UNITS}; got {units}. "
            "Sample masks instead, with `MonteCarloDropout`."
        )
    device, dtype = (None, None) if like is None else (like.device, like.dtype)
    numbers = torch.arange(2**units, device=device)
    bits = numbers[:, None] >> torch.arange(units, device=device) & 1
    return bits.to(dtype or torch.get_default_dtype())


def geometric_ensemble(
    weight: Tensor, bias: Tensor, x: Tensor, *, keep: float = 0.5, root: float | None = None
) -> Tensor:
    """Normalised geometric mean of softmax regressions over all 2^D masks of their inputs.

    p~(y | x) = prod_mu p(y | x, mu)^P(mu) up to its sum over y, with p(y | x, mu) = softmax(W (mu *
    x) + b)_y. At keep = 1/2 every P(mu) is 2^-D: the 2^D-th root. It equals softmax(keep W x + b),
    which is why scaling weights works; here every mask is computed.

    Parameters
    ----------
    weight
        W, (K, D), as ``nn.Linear`` has it; at most 20 inputs.
    bias
        b, (K,).
    x
        Inputs, (B, D).
    keep
        Probability that an input is kept.
    root
        Degree of the root of the plain product instead of the weights P(mu). Some texts print D
        where 2^D is meant: that sharpens the answer far beyond any member's.

    Returns
    -------
    Tensor (B, K)
        Probabilities.

    Examples
    --------
    >>> weight, bias = torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.zeros(2)
    >>> geometric_ensemble(weight, bias, torch.ones(1, 2))
    tensor([[0.2689, 0.7311]])
    >>> torch.softmax(torch.tensor([1.0, 2.0]), dim=0)
    tensor([0.2689, 0.7311])
    """
    check_keep("geometric_ensemble", keep)
    if weight.ndim != 2 or x.ndim != 2 or weight.shape[1] != x.shape[1]:
        raise ShapeMismatch(
            "geometric_ensemble: `weight` must be (K, D) and `x` (B, D); got "
            f"{tuple(weight.shape)} and {tuple(x.shape)}."
        )
    log_p = torch.zeros(len(x), len(weight), dtype=x.dtype, device=x.device)
    for masks in all_masks(x.shape[1], like=x).split(CHUNK):
        logits = torch.einsum("md,bd,kd->mbk", masks, x, weight) + bias
        log_p += torch.einsum("m,mbk->bk", _shares(masks, keep, root), logits.log_softmax(dim=2))
    return log_p.softmax(dim=1)


def _shares(masks: Tensor, keep: float, root: float | None) -> Tensor:
    """Return the exponent of each mask's member, (M,)."""
    if root is not None:
        return torch.full_like(masks[:, 0], 1 / root)
    kept = masks.sum(dim=1)
    return keep**kept * (1 - keep) ** (masks.shape[1] - kept)
