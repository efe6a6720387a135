"""Variational autoencoder: q(z | x) = N(mu(x), s(x)^2), p(x | z) by a decoder's outputs.

Shapes: B batch, K code, P outputs for a row, S of them spreads that all rows share, Y classes.
Reference: 2014, Kingma, Welling, Auto-encoding variational Bayes, arXiv 1312.6114.
Conditional: 2015, Sohn, Lee, Yan, NIPS 28; encoder and decoder also see the class. Where it may be
unknown, q(y | x) is a network of its own: 2014, Kingma, Rezende, Mohamed, Welling, arXiv 1406.5298.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["VariationalNetwork"]


class VariationalNetwork(nn.Module):
    """Encoder of rows (and Y columns) to 2 K numbers, decoder of K (+ Y) numbers to P - S outputs.

    Parameters
    ----------
    encoder, decoder
        The two networks.
    spreads
        Number S of log-deviations that are learnt and do not depend on the code.
    shared
        Whether they are all the same.
    classes
        Number Y of classes, as Y columns or planes before those of a row; 0: none.
    classifier
        From rows to the log-odds of their classes; None: classes are given.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        *,
        spreads: int = 0,
        shared: bool = False,
        classes: int = 0,
        classifier: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.classifier = encoder, decoder, classifier
        self.spreads, self.classes = spreads, classes
        self.spread = nn.Parameter(torch.zeros(1 if shared else spreads)) if spreads else None

    def posterior(self, x: Tensor, y: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance of q(z | x, y), (B, K) each; y None: over all classes."""
        if self.classes:
            share = x.new_full((len(x), self.classes), 1 / self.classes)
            hot = share if y is None else F.one_hot(y, self.classes).to(x.dtype)
            hot = hot.view(*hot.shape, *[1] * (x.ndim - 2)).expand(-1, -1, *x.shape[2:])
            x = torch.cat([hot, x], dim=1)  # columns, or planes of an image
        found = self.encoder(x)
        mean, log_variance = found.chunk(2, dim=1)
        return mean, log_variance

    def log_classes(self, x: Tensor) -> Tensor:
        """Return log q(y | x) of rows, (B, Y)."""
        if self.classifier is None:
            raise ValueError("VariationalNetwork.log_classes: there is no classifier.")
        return self.classifier(x).log_softmax(dim=1)

    def encode(self, x: Tensor) -> Tensor:
        """Return the means, (B, K)."""
        return self.posterior(x)[0]

    def decode(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the outputs of rows, (B, P), given codes and class numbers."""
        if self.classes:
            if y is None:
                raise ValueError("VariationalNetwork.decode: `y` must be given.")
            z = torch.cat([z, F.one_hot(y, self.classes).to(z.dtype)], dim=1)
        outputs = self.decoder(z)
        if self.spread is None:
            return outputs
        return torch.cat([outputs, self.spread.expand(len(z), self.spreads)], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the means of the codes."""
        return self.encode(x)
