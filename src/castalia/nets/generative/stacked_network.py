"""Stacked autoencoder: x -> e_1 -> ... -> e_L = code -> d_L -> ... -> d_1.

Shapes: B batch, D numbers of a row, K code.
Reference: 2006, Hinton, Salakhutdinov, Science 313; 2007, Bengio et al., NIPS 19.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from castalia.nets.dense import MLP
from castalia.nn import activation as make_activation

__all__ = ["StackedNetwork"]


class StackedNetwork(nn.Module):
    """Pairs of one layer up and one layer down, which can be trained one after the other.

    Parameters
    ----------
    inputs
        Numbers D of a row.
    hidden
        Widths of the layers; the last is the code.
    activation
        Name of the non-linearity of every layer up, and of all layers down but the last.

    Examples
    --------
    >>> import torch
    >>> net = StackedNetwork(6, (4, 2))
    >>> net.encode(torch.zeros(3, 6)).shape, net(torch.zeros(3, 6)).shape
    (torch.Size([3, 2]), torch.Size([3, 6]))
    """

    def __init__(
        self, inputs: int, hidden: Sequence[int] = (64, 16), *, activation: str = "sigmoid"
    ) -> None:
        super().__init__()
        self.widths, self.activation = (inputs, *hidden), activation
        pairs = list(zip(self.widths, self.widths[1:], strict=False))
        self.encoders = nn.ModuleList(
            nn.Sequential(nn.Linear(a, b), make_activation(activation)) for a, b in pairs
        )
        self.decoders = nn.ModuleList(
            nn.Sequential(nn.Linear(b, a), make_activation(activation if i else "identity"))
            for i, (a, b) in enumerate(pairs)
        )

    def below(self, x: Tensor, level: int) -> Tensor:
        """Return what layer ``level`` is given, (B, D_l)."""
        h = x.flatten(1)
        for layer in self.encoders[:level]:
            h = layer(h)
        return h

    def encode(self, x: Tensor) -> Tensor:
        """Return the codes, (B, K)."""
        return self.below(x, len(self.encoders))

    def decode(self, z: Tensor) -> Tensor:
        """Return rows, (B, D)."""
        for layer in reversed(self.decoders):
            z = layer(z)
        return z

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows that come back."""
        return self.decode(self.encode(x))

    def classifier(self, outputs: int) -> MLP:
        """Return a dense network whose hidden layers are a copy of the layers up."""
        inputs, *hidden = self.widths
        net = MLP(inputs, outputs, hidden=hidden, activation=self.activation)
        linear = [layer for layer in net.layers if isinstance(layer, nn.Linear)]
        for layer, pair in zip(linear, self.encoders, strict=False):
            layer.load_state_dict(pair[0].state_dict())  # type: ignore[index]
        return net.to(next(self.parameters()))
