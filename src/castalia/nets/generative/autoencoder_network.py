"""Autoencoder: h = g(W x + b), x_hat = decode(h); with tied weights x_hat = W^T h + c.

Shapes: B batch, D numbers of a row, K code, P outputs for a row.
References: 1986, Rumelhart, Hinton, Williams. 2006, Hinton, Salakhutdinov, Reducing the
dimensionality of data with neural networks, Science 313.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.nn import activation as make_activation

__all__ = ["AutoencoderNetwork", "TiedAutoencoder"]


class AutoencoderNetwork(nn.Module):
    """An encoder, what is done to its code, and a decoder.

    Parameters
    ----------
    encoder, decoder
        From rows to codes, and back to the outputs of a row.
    code_activation
        Non-linearity of the code, by name; ``"identity"`` leaves it linear.
    dropout
        Probability of zeroing a unit of the code in training.
    noise
        Deviation of normal noise on the code in training: p_enc(h | x) = N(f(x), noise^2).
    spreads
        Number of log-deviations of outputs that are learnt and do not depend on the code.

    Examples
    --------
    >>> net = AutoencoderNetwork(nn.Linear(3, 2), nn.Linear(2, 3))
    >>> net(torch.zeros(5, 3)).shape, net.encode(torch.zeros(5, 3)).shape
    (torch.Size([5, 3]), torch.Size([5, 2]))
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        *,
        code_activation: str = "identity",
        dropout: float = 0.0,
        noise: float = 0.0,
        spreads: int = 0,
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.noise = encoder, decoder, noise
        self.code = nn.Sequential(make_activation(code_activation), nn.Dropout(dropout))
        self.spread = nn.Parameter(torch.zeros(spreads)) if spreads else None

    def encode(self, x: Tensor) -> Tensor:
        """Return the codes, (B, K)."""
        return self.code(self.encoder(x))

    def decode(self, z: Tensor) -> Tensor:
        """Return the outputs of rows, (B, P)."""
        if self.spread is None:
            return self.decoder(z)
        return torch.cat([self.decoder(z), self.spread.expand(len(z), -1)], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of the row that comes back."""
        z = self.encode(x)
        if self.noise and self.training:
            z = z + self.noise * torch.randn_like(z)
        return self.decode(z)


class TiedAutoencoder(nn.Module):
    """Dense autoencoder whose decoder is its encoder transposed: W_l^T, with biases of its own.

    Parameters
    ----------
    inputs
        Numbers D of a row.
    code
        Width K of the code.
    hidden
        Widths of the hidden layers.
    activation, code_activation
        Names of the non-linearities of hidden layers and of the code.
    dropout
        Probability of zeroing a unit of the code in training.
    """

    def __init__(
        self,
        inputs: int,
        code: int,
        *,
        hidden: Sequence[int] = (),
        activation: str = "relu",
        code_activation: str = "identity",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        widths = [inputs, *hidden, code]
        self.layers = nn.ModuleList(
            nn.Linear(a, b) for a, b in zip(widths, widths[1:], strict=False)
        )
        self.biases = nn.ParameterList(torch.zeros(a) for a in widths[:-1])
        self.activation = make_activation(activation)
        self.code = nn.Sequential(make_activation(code_activation), nn.Dropout(dropout))

    def encode(self, x: Tensor) -> Tensor:
        """Return the codes, (B, K)."""
        h = x.flatten(1)
        for layer in self.layers[:-1]:
            h = self.activation(layer(h))
        return self.code(self.layers[-1](h))

    def decode(self, z: Tensor) -> Tensor:
        """Return rows, (B, D)."""
        for i in reversed(range(len(self.layers))):
            z = F.linear(z, self.layers[i].weight.t(), self.biases[i])  # type: ignore[union-attr, operator]
            z = self.activation(z) if i else z
        return z

    def forward(self, x: Tensor) -> Tensor:
        """Return the row that comes back."""
        return self.decode(self.encode(x))
