"""What dense estimators share: the shape of the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import nn

from castalia.base import Estimator, Interval, OneOf, Sizes, fields_for
from castalia.nets.dense import MLP
from castalia.nn import ACTIVATIONS
from castalia.protocols import Spec
from castalia.train import Training

__all__ = ["Dense"]


@dataclass(kw_only=True, eq=False, repr=False)
class Dense(Estimator):
    """Base of estimators whose network is a multi-layer perceptron."""

    usual_training: ClassVar[Training] = Training(patience=20)

    hidden: Annotated[tuple[int, ...], Sizes()] = (64, 64)
    activation: Annotated[str, OneOf(*ACTIVATIONS)] = "relu"
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        return MLP(spec.inputs, spec.outputs, **fields_for(self, MLP), categories=spec.categories)
