"""Weights of one network as the start of another: transfer and pre-training."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["CopiedWeights", "copy_weights"]


@dataclass(frozen=True)
class CopiedWeights:
    """Which tensors of the target were copied, by name.

    Attributes
    ----------
    copied
        Of one name and shape in both.
    reshaped
        Of one name but another shape, such as a head with other classes; left as they were.
    missing
        Not in the source; left as they were.
    unused
        In the source only.
    """

    copied: tuple[str, ...]
    reshaped: tuple[str, ...]
    missing: tuple[str, ...]
    unused: tuple[str, ...]


@torch.no_grad()
def copy_weights(source: nn.Module | Mapping[str, Tensor], target: nn.Module) -> CopiedWeights:
    """Copy every weight and buffer that has the same name and shape in both; report the others.

    Parameters
    ----------
    source
        A module or its state dict, on any device.
    target
        Changed in place.

    Examples
    --------
    >>> old = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> new = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> found = copy_weights(old, new)
    >>> found.copied, found.reshaped
    (('0.weight', '0.bias'), ('2.weight', '2.bias'))
    """
    given = source.state_dict() if isinstance(source, nn.Module) else source
    mine = target.state_dict()
    both = [name for name in mine if name in given]
    copied = [name for name in both if mine[name].shape == given[name].shape]
    for name in copied:
        mine[name].copy_(given[name])
    return CopiedWeights(
        copied=tuple(copied),
        reshaped=tuple(name for name in both if name not in copied),
        missing=tuple(name for name in mine if name not in given),
        unused=tuple(name for name in given if name not in mine),
    )
