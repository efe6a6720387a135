"""A generator that is trained alone, by kernel moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import nn

from castalia.base import Interval, OneOf, Sizes
from castalia.models.generative.implicit_methods import Implicit, generator_network
from castalia.models.generative.row_estimator import RowEstimator
from castalia.nets.generative import AdversarialPair
from castalia.nn import ACTIVATIONS
from castalia.objectives import MMD
from castalia.protocols import Spec
from castalia.train import Training

__all__ = ["MomentMatching"]


@dataclass(kw_only=True, eq=False, repr=False)
class MomentMatching(Implicit, RowEstimator):
    """Generator whose samples have the kernel moments of the data: no discriminator, no game.

    Minimises MMD^2 = E k(x, x') - 2 E k(x, G(z)) + E k(G(z), G(z')) with a sum of Gaussian kernels,
    batch by batch. Steady, and good for a few columns; blurred where rows are wide.

    Parameters
    ----------
    noise
        Number of normal numbers that a row is made of.
    hidden
        Widths of the hidden layers, from the row to the noise.
    activation
        Non-linearity of hidden layers, a name from ``castalia.nn.ACTIVATIONS``.
    width
        For images: channels of the last convolutions; 0 takes dense layers.
    scales
        Widths of the kernels, in multiples of the root of the number of columns.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network, with ``generator``.
    history_ : list of dict
        The loss, MMD^2, of every epoch.

    Shapes
    ------
    X: (n, D) numbers, a frame of any kind, or images.

    Notes
    -----
    O(B^2 D) a batch of B rows; larger batches compare better. ``score`` is minus the energy
    distance between samples and rows.

    References
    ----------
    2015, Li, Swersky, Zemel, Generative moment matching networks, arXiv 1502.02761. 2012, Gretton
    et al., A kernel two-sample test, JMLR 13.

    See Also
    --------
    GenerativeAdversarialNetwork : learns what to compare.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(3, 1, size=(200, 2))
    >>> MomentMatching(noise=4, epochs=2, random_state=0).fit(X).sample(5).shape
    (5, 2)
    """

    usual_training: ClassVar[Training] = Training(validation=0)

    batch_size: Annotated[int, Interval(2, whole=True)] = 256
    noise: Annotated[int, Interval(1, whole=True)] = 16
    hidden: Annotated[tuple[int, ...], Sizes()] = (128, 128)
    activation: Annotated[str, OneOf(*ACTIVATIONS)] = "relu"
    width: Annotated[int, Interval(0, whole=True)] = 32
    scales: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)

    def _network(self, spec: Spec) -> nn.Module:
        return AdversarialPair(generator_network(self, spec), nn.Identity())

    def _objective(self, spec: Spec) -> MMD:
        return MMD(self.scales)
