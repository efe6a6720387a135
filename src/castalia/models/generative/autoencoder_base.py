"""What autoencoders share: an encoder, a decoder of the same shape backwards, and a row's loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from torch import Tensor, nn

from castalia.base import Interval, OneOf, Sizes
from castalia.models.generative.anomaly_methods import Anomalies
from castalia.models.generative.code_methods import Codes
from castalia.models.generative.row_estimator import RowEstimator, row_likelihood, row_width
from castalia.nets.generative import AutoencoderNetwork, decoder, encoder
from castalia.nn import ACTIVATIONS
from castalia.objectives import RowLikelihood
from castalia.protocols import Spec
from castalia.train import Training

__all__ = ["AutoencoderBase", "code_width"]

WIDEST = 16  # code where none is asked for


def code_width(code: int | None, spec: Spec, *, over: bool = False) -> int:
    """Return the width of a code: half a row at most where None is asked for, or twice a row."""
    if code is not None:
        return code
    width = row_width(spec)
    return min(256, 2 * width) if over else max(1, min(WIDEST, width // 2))


@dataclass(kw_only=True, eq=False, repr=False)
class AutoencoderBase(Anomalies, Codes, RowEstimator):
    """Base of autoencoders.

    Parameters
    ----------
    code
        Width of the code; None: half the width of a row, at most 16.
    hidden
        Widths of the encoder's hidden layers; the decoder has them backwards.
    activation
        Non-linearity of hidden layers, a name from ``castalia.nn.ACTIVATIONS``.
    width
        For images: channels of the first of the convolutions that halve them; 0 takes dense layers.
    likelihood
        For images: ``"gaussian"`` minimises squared errors, ``"bernoulli"`` cross-entropies of grey
        values. Columns of tables have a loss by their kind.
    """

    usual_training: ClassVar[Training] = Training(patience=20)
    _spread: ClassVar[bool] = False  # whether deviations of numbers are learnt
    _over: ClassVar[bool] = False  # whether the code is wider than a row by default

    code: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    hidden: Annotated[tuple[int, ...], Sizes()] = (128,)
    activation: Annotated[str, OneOf(*ACTIVATIONS)] = "relu"
    width: Annotated[int, Interval(0, whole=True)] = 32
    likelihood: Annotated[str, OneOf("gaussian", "bernoulli")] = "gaussian"

    @property
    def code_(self) -> int:
        """Width of the code."""
        return code_width(self.code, self.spec_, over=self._over)

    def _row_likelihood(self, spec: Spec | None = None) -> RowLikelihood:
        return row_likelihood(
            self.likelihood, spec or self.spec_, spread=self._spread, owner=type(self).__name__
        )

    def _network(self, spec: Spec) -> nn.Module:
        return self._pair(spec)

    def _pair(self, spec: Spec, **settings: Any) -> nn.Module:
        """Return encoder and decoder as one network."""
        code = code_width(self.code, spec, over=self._over)
        likelihood = self._row_likelihood(spec)
        shape: dict[str, Any] = {
            "size": tuple(spec.extra.get("size") or ()),
            "hidden": self.hidden,
            "width": self.width,
            "activation": self.activation,
        }
        first = encoder(spec.inputs, code, categories=spec.categories, **shape)
        last = decoder(code, likelihood.outputs - likelihood.spreads, **shape)
        return AutoencoderNetwork(first, last, spreads=likelihood.spreads, **settings)

    def _row_scores(self, x: Tensor) -> Tensor:
        return -self._row_likelihood().rows(self.module_(x), x.flatten(1))
