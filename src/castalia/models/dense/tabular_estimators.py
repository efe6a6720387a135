"""Ensembles of perceptrons made for tables: what ``castalia fit`` trains by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor, nn

from castalia.base import Classifier, Estimator, Interval, OneOf, Regressor, Sizes, fields_for
from castalia.data.adapter_base import Reads
from castalia.data.batches import Samples
from castalia.data.tabular_adapter import TabularAdapter
from castalia.nets.dense import MLPEnsemble
from castalia.nn import ACTIVATIONS
from castalia.objectives import MemberLoss, Objective, SquaredError, class_loss
from castalia.protocols import Spec
from castalia.train import Training

__all__ = ["TabularClassifier", "TabularRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class Tabular(Estimator):
    """Base of both: the network, and rows that judge the members which did not train on them."""

    adapter: ClassVar[Any] = Reads(TabularAdapter, "members", "bins")
    usual_training: ClassVar[Training] = Training(
        optimizer="adamw",
        weight_decay=0.01,
        average=("ema", 0.99),
        patience=16,
        validation=0.125,
    )

    epochs: Annotated[int, Interval(1, whole=True)] = 256
    batch_size: Annotated[int, Interval(1, whole=True)] = 128
    lr: Annotated[float, Interval(0, closed="neither")] = 3e-3
    hidden: Annotated[tuple[int, ...], Sizes()] = (64, 64)
    activation: Annotated[str, OneOf(*ACTIVATIONS)] = "relu"
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    members: Annotated[int, Interval(1, whole=True)] = 8
    bins: Annotated[int, Interval(4, whole=True)] = 16
    pieces: Annotated[bool, OneOf(True, False)] = True
    robust: Annotated[bool, OneOf(True, False)] = True
    label_smoothing: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        return MLPEnsemble(
            spec.inputs,
            spec.outputs,
            **fields_for(self, MLPEnsemble),
            categories=spec.categories,
            quantiles=spec.extra["quantiles"],
        )

    @torch.inference_mode()
    def _validation_outputs(self, held: Samples) -> tuple[Tensor | None, Tensor | None]:
        """Return what the members say that did not train on a row."""
        if held.weight is None or held.weight.ndim < 2:
            return super()._validation_outputs(held)
        if not self.codec.judges:
            return None, None
        device, outputs = next(self.module_.parameters()).device, []
        for window, order in held.windows(None, 0):
            for index in order.split(8192):
                batch = window.batch(index).to(device)
                share = (batch.weight > 0).T.unsqueeze(2)  # (M, B, 1)
                found = self.module_.member_outputs(batch.x) * share
                outputs.append((found.sum(dim=0) / share.sum(dim=0)).cpu())
        return torch.cat(outputs), held.y


@dataclass(kw_only=True, eq=False, repr=False)
class TabularClassifier(Classifier, Tabular):
    """Classifier.
    """

    def _objective(self, spec: Spec) -> Objective:
        return MemberLoss(class_loss(self.multilabel_, self.label_smoothing))


@dataclass(kw_only=True, eq=False, repr=False)
class TabularRegressor(Regressor, Tabular):
    """Regressor.
    """

    def _objective(self, spec: Spec) -> Objective:
        return MemberLoss(SquaredError())
