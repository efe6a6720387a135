"""Stacked autoencoder: trained layer by layer, then as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from torch import Tensor, nn

from castalia.base import Interval, OneOf, Sizes
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.generative.anomaly_methods import Anomalies
from castalia.models.generative.code_methods import Codes
from castalia.models.generative.row_estimator import RowEstimator, row_likelihood, row_width
from castalia.nets.generative import StackedNetwork
from castalia.nn import ACTIVATIONS
from castalia.objectives import LayerReconstruction, Reconstruction, RowLikelihood
from castalia.protocols import Spec, Stage
from castalia.train import Training

__all__ = ["StackedAutoencoder"]


@dataclass(kw_only=True, eq=False, repr=False)
class StackedAutoencoder(Anomalies, Codes, RowEstimator):
    """Deep autoencoder that is pre-trained greedily and then fine-tuned.

    Each layer first learns, alone, to rebuild what the layers below it give (with noise: a stack of
    denoising autoencoders); then all layers minimise 1/2 ||x_hat - x||^2 together. The layers are a
    start for a classifier with few labels: ``classifier_network``.

    Parameters
    ----------
    hidden
        Widths of the layers, from below; the last is the code.
    activation
        Non-linearity of every layer, a name from ``castalia.nn.ACTIVATIONS``.
    noise
        Deviation of the noise on what a layer is given in pre-training.
    pretraining
        Epochs of each layer; 0: all layers together from the start.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.generative.StackedNetwork``.
    code_ : int
        Width of the code.
    threshold_ : float
        Score below which a row is an anomaly.
    history_ : list of dict
        Loss of every epoch of every stage.

    Shapes
    ------
    X: (n, D) numbers, or images.  Codes: (n, hidden[-1]).

    Notes
    -----
    Rows with categories are for ``Autoencoder``.

    References
    ----------
    2007, Bengio, Lamblin, Popovici, Larochelle, Greedy layer-wise training of deep networks, NIPS
    19. 2010, Vincent et al., Stacked denoising autoencoders, JMLR 11.

    See Also
    --------
    Autoencoder : all layers from the start, which mostly will do.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> model = StackedAutoencoder(hidden=(5, 3), pretraining=2, epochs=2, random_state=0).fit(X)
    >>> [line["stage"] for line in model.history_]
    ['layer 1', 'layer 1', 'layer 2', 'layer 2', 'fine-tuning', 'fine-tuning']
    """

    usual_training: ClassVar[Training] = Training(patience=20)
    likelihood: ClassVar[str] = "gaussian"

    hidden: Annotated[tuple[int, ...], Sizes()] = (64, 16)
    activation: Annotated[str, OneOf(*ACTIVATIONS)] = "sigmoid"
    noise: Annotated[float, Interval(0)] = 0.1
    pretraining: Annotated[int, Interval(0, whole=True)] = 20

    @property
    def code_(self) -> int:
        """Width of the code."""
        return self.hidden[-1]

    def _row_likelihood(self, spec: Spec | None = None) -> RowLikelihood:
        return row_likelihood("gaussian", spec or self.spec_)

    def _network(self, spec: Spec) -> nn.Module:
        if not self.hidden:
            raise InvalidParameter("StackedAutoencoder: `hidden` must name a layer; got none.")
        if spec.categories:
            raise InvalidData(
                "StackedAutoencoder: columns must be numbers; got "
                f"{len(spec.categories)} of categories. Use Autoencoder for those."
            )
        return StackedNetwork(row_width(spec), self.hidden, activation=self.activation)

    def _objective(self, spec: Spec) -> Sequence[Stage]:
        layers = range(len(self.hidden)) if self.pretraining else range(0)
        return [
            *(
                Stage(f"layer {i + 1}", LayerReconstruction(i, self.noise), epochs=self.pretraining)
                for i in layers
            ),
            Stage("fine-tuning", Reconstruction(self._row_likelihood(spec))),
        ]

    def _row_scores(self, x: Tensor) -> Tensor:
        return -self._row_likelihood().rows(self.module_(x), x.flatten(1))

    def classifier_network(self, classes: int) -> Any:
        """Return a ``castalia.nets.dense.MLP`` that begins with the learnt layers."""
        return self.module_.classifier(classes)  # type: ignore[operator]
