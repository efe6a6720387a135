"""A generator x = G(z, y) and a discriminator D(x, y) side by side.

Shapes: B batch, Z noise, E columns of a row, Y classes.
References: 2014, Goodfellow et al., Generative adversarial networks, arXiv 1406.2661. 2014, Mirza,
Osindero, Conditional generative adversarial nets, arXiv 1411.1784. 2018, Miyato, Kataoka, Koyama,
Yoshida, Spectral normalization, arXiv 1802.05957.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from castalia.nets.generative.one_hot_rows import OneHotRows

__all__ = ["AdversarialPair", "GeneratorNetwork", "affine_generator"]


class GeneratorNetwork(nn.Module):
    """x = g(z): noise, and the class of a conditional model, to the columns of a row.

    Parameters
    ----------
    body
        From Z + Y numbers to E outputs.
    rows
        How outputs become columns; None: grey values of images, by a sigmoid.
    noise
        Number Z of normal numbers.
    classes
        Number Y of classes; 0: none.
    """

    def __init__(
        self, body: nn.Module, rows: OneHotRows | None, *, noise: int, classes: int = 0
    ) -> None:
        super().__init__()
        self.body, self.rows, self.noise, self.classes = body, rows, noise, classes

    def forward(self, z: Tensor, y: Tensor | None = None, chance: Tensor | None = None) -> Tensor:
        """Return columns (B, E); ``chance`` are the uniform numbers by which categories fall."""
        if self.classes and y is not None:
            z = torch.cat([z, F.one_hot(y, self.classes).to(z.dtype)], dim=1)
        outputs = self.body(z)
        if self.rows is None:
            return outputs.sigmoid()
        return self.rows.squash(outputs, torch.rand_like(outputs) if chance is None else chance)


def affine_generator(mean: Tensor, covariance: Tensor) -> GeneratorNetwork:
    """Return the generator x = mu + L z, L L^T = covariance: it draws N(mu, covariance).

    >>> generator = affine_generator(torch.tensor([1.0]), torch.tensor([[4.0]]))
    >>> generator(torch.tensor([[0.5]]))
    tensor([[2.]], grad_fn=<CatBackward0>)
    """
    body = nn.Linear(len(mean), len(mean)).to(mean.dtype)
    with torch.no_grad():
        body.weight.copy_(torch.linalg.cholesky(covariance))
        body.bias.copy_(mean)
    return GeneratorNetwork(body, OneHotRows(len(mean)), noise=len(mean))


class AdversarialPair(nn.Module):
    """Generator and discriminator.

    Parameters
    ----------
    generator
        From noise to columns.
    critic
        From rows, or columns and one-hot classes, to one number.
    shape
        Of an image, (C, H, W); () for tables.
    spectral
        Whether every matrix of the critic is divided by its largest singular value.
    """

    def __init__(
        self,
        generator: GeneratorNetwork,
        critic: nn.Module,
        *,
        shape: tuple[int, ...] = (),
        spectral: bool = False,
    ) -> None:
        super().__init__()
        self.generator, self.shape = generator, shape
        self.critic = critic.apply(_normed) if spectral else critic

    def expand(self, x: Tensor) -> Tensor:
        """Return encoded rows as the columns that the generator makes, (B, E)."""
        rows = self.generator.rows
        return x.flatten(1) if rows is None else rows.expand(x)

    def discriminate(self, wide: Tensor, y: Tensor | None = None) -> Tensor:
        """Return the log-odds, or the value, that columns are those of data, (B,)."""
        if self.generator.classes and y is not None:
            hot = F.one_hot(y, self.generator.classes).to(wide.dtype)  # (B, Y)
            if self.shape:  # a plane for each class
                planes = hot[:, :, None, None].expand(-1, -1, *self.shape[1:])
                return self.critic(torch.cat([wide.view(-1, *self.shape), planes], dim=1))[:, 0]
            return self.critic(torch.cat([wide, hot], dim=1))[:, 0]
        return self.critic(wide.view(-1, *self.shape) if self.shape else wide)[:, 0]

    def forward(self, x: Tensor) -> Tensor:
        """Return the log-odds of encoded rows."""
        return self.discriminate(self.expand(x))


def _normed(layer: nn.Module) -> None:
    if isinstance(layer, nn.Linear | nn.Conv2d):
        make: Callable[..., nn.Module] = spectral_norm
        make(layer)
