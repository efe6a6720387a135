"""Activations by name."""

from torch import nn

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["ACTIVATIONS", "activation"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "leaky_relu": nn.LeakyReLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "gelu": nn.GELU,
    "swish": nn.SiLU,
    "softplus": nn.Softplus,
    "identity": nn.Identity,
}


def activation(name: str) -> nn.Module:
    """Return a fresh activation module.

    Parameters
    ----------
    name
        A key of ``ACTIVATIONS``.

    Examples
    --------
    >>> activation("relu")
    ReLU()
    """
    if name not in ACTIVATIONS:
        raise InvalidParameter(
            f"nn: `activation` must be {listing(ACTIVATIONS)}; got "
            f"{name!r}.{did_you_mean(str(name), ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]()
