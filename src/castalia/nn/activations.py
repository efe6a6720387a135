"""Activations: torch's where torch has them, the missing ones here, and all of them by name.

Sign and step are flat almost everywhere: nothing below them learns by gradients, so they have no
name in ``ACTIVATIONS``; they serve networks whose weights are set by hand or by the perceptron
rule.
"""

import torch
from torch import Tensor, nn
from torch.nn import (
    ELU,
    Identity,
    LeakyReLU,
    PReLU,
    ReLU,
    Sigmoid,
    Softmax,
    Softplus,
    Tanh,
)
from torch.nn import SiLU as Swish

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = [
    "ACTIVATIONS",
    "ELU",
    "Clipped",
    "Cosine",
    "Identity",
    "LeakyReLU",
    "PReLU",
    "ReLU",
    "Sigmoid",
    "Sign",
    "Softmax",
    "Softplus",
    "Step",
    "Swish",
    "Tanh",
    "activation",
]


class Sign(nn.Module):
    """+1, 0 or -1 for z > 0, z = 0 and z < 0; its slope is zero.

    Examples
    --------
    >>> Sign()(torch.tensor([-3.0, 0.0, 0.5]))
    tensor([-1.,  0.,  1.])
    """

    def forward(self, z: Tensor) -> Tensor:
        """Return the sign of each entry."""
        return torch.sign(z)


class Step(nn.Module):
    """1 for z >= 0, else 0: the threshold unit of McCulloch and Pitts; its slope is zero.

    Examples
    --------
    >>> Step()(torch.tensor([-3.0, 0.0, 0.5]))
    tensor([0., 1., 1.])
    """

    def forward(self, z: Tensor) -> Tensor:
        """Return 1[z >= 0]."""
        return torch.sign(torch.sign(z) + 1)  # unlike a comparison, keeps the (zero) gradient


class Cosine(nn.Module):
    """cos(z): any differentiable function can be a hidden unit.

    Examples
    --------
    >>> Cosine()(torch.zeros(1))
    tensor([1.])
    """

    def forward(self, z: Tensor) -> Tensor:
        """Return the cosine of each entry."""
        return torch.cos(z)


class Clipped(nn.Module):
    """max(0, min(1, z)): linear between 0 and 1, flat outside.

    As an output unit for a probability it is a bad choice: a wrong answer outside (0, 1) has no
    gradient and is never mended. ``Sigmoid`` with ``BinaryCrossEntropy`` has one everywhere.

    Examples
    --------
    >>> Clipped()(torch.tensor([-3.0, 0.25, 7.0]))
    tensor([0.0000, 0.2500, 1.0000])
    """

    def forward(self, z: Tensor) -> Tensor:
        """Return each entry clipped to [0, 1]."""
        return nn.functional.hardtanh(z, 0.0, 1.0)


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": ReLU,
    "tanh": Tanh,
    "sigmoid": Sigmoid,
    "leaky_relu": LeakyReLU,
    "prelu": PReLU,
    "elu": ELU,
    "selu": nn.SELU,
    "gelu": nn.GELU,
    "swish": Swish,
    "mish": nn.Mish,
    "softplus": Softplus,
    "cosine": Cosine,
    "clipped": Clipped,
    "identity": Identity,
}


def activation(name: str) -> nn.Module:
    """Return a fresh activation module.

    Parameters
    ----------
    name
        A key of ``ACTIVATIONS``. ``"prelu"`` learns one slope for the whole layer;
        ``PReLU(units)`` learns one a unit.

    Examples
    --------
    >>> activation("relu")
    ReLU()
    """
    if name not in ACTIVATIONS:
        raise InvalidParameter(
            f"nn: `activation` must be {listing(ACTIVATIONS, most=len(ACTIVATIONS))}; got "
            f"{name!r}.{did_you_mean(str(name), ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]()
