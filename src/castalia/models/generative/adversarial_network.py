"""Generative adversarial networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import nn

from castalia.base import Interval, OneOf, Sizes
from castalia.models.generative.implicit_methods import Implicit, generator_network
from castalia.models.generative.row_estimator import RowEstimator
from castalia.nets.generative import AdversarialPair, encoder
from castalia.nn import ACTIVATIONS
from castalia.objectives import AdversarialGame, HingeGame, Minimax, NonSaturating, Wasserstein
from castalia.protocols import Spec
from castalia.train import Training

__all__ = ["GenerativeAdversarialNetwork"]

GAMES: dict[str, type[AdversarialGame]] = {
    "non-saturating": NonSaturating,
    "minimax": Minimax,
    "wasserstein": Wasserstein,
    "hinge": HingeGame,
}


@dataclass(kw_only=True, eq=False, repr=False)
class GenerativeAdversarialNetwork(Implicit, RowEstimator):
    """Draws rows of a table, or images, that a discriminator cannot tell from data.

    min_G max_D E log D(x) + E log(1 - D(G(z))): two networks take turns in the one loop, as two
    phases. Draws are sharp; there is no density, no code, and training may collapse onto a few
    modes. Where rows must be scored, take ``VariationalAutoencoder`` or ``NormalizingFlow``.

    Parameters
    ----------
    noise
        Number of normal numbers that a row is made of.
    hidden
        Widths of the discriminator's hidden layers; the generator has them backwards.
    activation
        Non-linearity of hidden layers, a name from ``castalia.nn.ACTIVATIONS``.
    width
        For images: channels of the first convolutions (DCGAN); 0 takes dense layers.
    loss
        ``"non-saturating"``: the generator maximises log D(G(z)); ``"minimax"``: it minimises
        log(1 - D(G(z))); ``"wasserstein"``: a critic of slope 1; ``"hinge"``.
    discriminator_steps
        Discriminator steps, on batches of their own, for each of the generator; None: 1, and 5 of a
        Wasserstein critic.
    gradient_penalty
        Weight of (||grad f|| - 1)^2 between data and samples; None: 10 of a Wasserstein critic,
        otherwise 0.
    spectral_norm
        Whether the discriminator's matrices are divided by their largest singular values.
    conditional
        Whether y is given, and rows of a class are drawn.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.generative.AdversarialPair``: ``generator`` and ``critic``.
    classes_ : ndarray
        Classes of a conditional model.
    history_ : list of dict
        Losses ``discriminator`` and ``generator`` of every epoch, and the mean D on data and on
        samples, ``real`` and ``fake``.

    Shapes
    ------
    X: (n, D) numbers, a frame of any kind, or images.

    Notes
    -----
    Where ``training`` is None, Adam runs with beta1 = 0.5, nothing is held out, and the weights
    are averaged (EMA). ``score`` is minus the energy distance between samples and rows.

    References
    ----------
    2014, Goodfellow et al., Generative adversarial networks, arXiv 1406.2661. 2016, Radford, Metz,
    Chintala, arXiv 1511.06434. 2017, Gulrajani et al., Improved training of Wasserstein GANs, arXiv
    1704.00028. 2018, Miyato et al., Spectral normalization, arXiv 1802.05957.

    See Also
    --------
    MomentMatching : a generator without a discriminator.
    DiffusionModel : steadier, and slower to draw.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(3, 1, size=(200, 2))
    >>> model = GenerativeAdversarialNetwork(noise=4, epochs=2, random_state=0).fit(X)
    >>> model.sample(5).shape, hasattr(model, "score_samples")
    ((5, 2), False)
    """

    usual_training: ClassVar[Training] = Training(
        optimizer=("adam", {"betas": (0.5, 0.999)}), validation=0, average=("ema", 0.99)
    )

    lr: Annotated[float, Interval(0, closed="neither")] = 2e-4
    noise: Annotated[int, Interval(1, whole=True)] = 32
    hidden: Annotated[tuple[int, ...], Sizes()] = (128, 128)
    activation: Annotated[str, OneOf(*ACTIVATIONS)] = "leaky_relu"
    width: Annotated[int, Interval(0, whole=True)] = 32
    loss: Annotated[str, OneOf(*GAMES)] = "non-saturating"
    discriminator_steps: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    gradient_penalty: Annotated[float | None, Interval(0, optional=True)] = None
    spectral_norm: Annotated[bool, OneOf(True, False)] = False
    conditional: Annotated[bool, OneOf(True, False)] = False

    def _network(self, spec: Spec) -> nn.Module:
        generator, size = generator_network(self, spec), tuple(spec.extra.get("size") or ())
        inputs = spec.inputs if generator.rows is None else generator.rows.width
        critic = encoder(
            inputs + spec.outputs,
            1,
            size=size,
            hidden=self.hidden,
            width=self.width,
            activation=self.activation,
        )
        shape = (spec.inputs, *size) if size else ()
        return AdversarialPair(generator, critic, shape=shape, spectral=self.spectral_norm)

    def _objective(self, spec: Spec) -> AdversarialGame:
        asked: dict[str, Any] = {
            "steps": self.discriminator_steps,
            "penalty": self.gradient_penalty,
        }
        return GAMES[self.loss](**{k: v for k, v in asked.items() if v is not None})

    def discriminate(self, X: Any) -> np.ndarray:
        """Return D(x) of each row, (n,): the probability that it is data and no sample."""
        return torch.cat(list(self._each(X, lambda x: self.module_(x).sigmoid()))).numpy()
