"""A fitted model as one traceable module: raw rows in, answers out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from castalia.base import Estimator
from castalia.base.targets import ClassCodec, NumberCodec
from castalia.data.table_adapter import TableAdapter
from castalia.errors import InvalidData
from castalia.export.answer import Answer
from castalia.export.ensemble_answers import VoteAnswer
from castalia.export.kernel_answers import (
    CentreAnswer,
    KernelAnswer,
    KernelClassAnswer,
    ProjectionAnswer,
)
from castalia.export.linear_answers import LinearAnswer, OddsAnswer, ScoreAnswer
from castalia.export.network_answers import (
    ClassAnswer,
    CodeAnswer,
    MaskAnswer,
    MeanAnswer,
    NumberAnswer,
)
from castalia.export.refusals import why_not
from castalia.export.row_inputs import GraphInput, MatrixInput, TableInput, input_of
from castalia.models.dense import DistributionRegressor
from castalia.models.ensemble import Bagging, DeepEnsemble, SnapshotEnsemble, WeightAverage
from castalia.models.generative import PCA
from castalia.models.generative.code_methods import Codes
from castalia.models.kernel import KernelRidge, KMeans, LogisticKernelMachine, SupportVectorMachine
from castalia.models.linear.discriminant import Discriminant
from castalia.models.linear.linear_model import LinearRegressor
from castalia.models.linear.logistic import Logistic
from castalia.models.strategies.strategy_base import Strategy
from castalia.models.vision.segmenter_task import Segmenter

__all__ = ["ModelGraph", "graph_of"]

# The first class that a model is an instance of decides how it answers.
ANSWERS: tuple[tuple[type | tuple[type, ...], type[Answer]], ...] = (
    (DistributionRegressor, MeanAnswer),
    (Codes, CodeAnswer),
    (Segmenter, MaskAnswer),
    (Logistic, OddsAnswer),
    (Discriminant, ScoreAnswer),
    (LinearRegressor, LinearAnswer),
    (PCA, ProjectionAnswer),
    (KMeans, CentreAnswer),
    (KernelRidge, KernelAnswer),
    ((SupportVectorMachine, LogisticKernelMachine), KernelClassAnswer),
)
CODECS: tuple[tuple[type, type[Answer]], ...] = (
    (ClassCodec, ClassAnswer),
    (NumberCodec, NumberAnswer),
)
VOTES = (Bagging, DeepEnsemble, SnapshotEnsemble, WeightAverage, Strategy)


class ModelGraph(nn.Module):
    """A graph: how rows enter, and how they are answered."""

    def __init__(self, entry: GraphInput, answer: Answer) -> None:
        super().__init__()
        self.entry, self.answer = entry, answer

    def forward(self, first: Tensor, second: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return the answers, a tensor for each of ``answer.outputs``."""
        rows = self.entry(first) if second is None else self.entry(first, second)
        found: tuple[Tensor, ...] = self.answer(rows)
        return found


def graph_of(model: Any) -> ModelGraph:
    """Return the graph of a fitted model, in evaluation mode, or say why there is none.

    Examples
    --------
    >>> import castalia
    >>> model = castalia.Ridge(alpha=0.0).fit([[0.0], [1.0]], [1.0, 3.0])
    >>> (found,) = graph_of(model)(torch.tensor([[2.0]], dtype=torch.float64))
    >>> found.round().tolist()
    [5.0]
    """
    reason = why_not(type(model).__name__)
    if reason:
        raise InvalidData(f"export: {type(model).__name__} cannot be exported: {reason}.")
    return ModelGraph(_entry(model), _answer(model)).eval().requires_grad_(False)


def _entry(model: Any) -> GraphInput:
    if isinstance(model, Estimator):
        return input_of(model.adapter_, next(model.module_.parameters()).dtype)
    adapter = getattr(model, "adapter_", None)
    if isinstance(adapter, TableAdapter):
        return TableInput(adapter.encoder, torch.float64, one_hot=True)
    return MatrixInput(int(getattr(model, "n_features_in_", 1)))


def _answer(model: Any) -> Answer:
    if isinstance(model, VOTES):
        members = getattr(model, "estimators_", None) or [model.estimator_]  # type: ignore[union-attr]
        return VoteAnswer(model, members, [graph_of(member) for member in members])
    for kind, answer in ANSWERS:
        if isinstance(model, kind):
            return answer(model)
    for codec, answer in CODECS:
        if isinstance(getattr(model, "codec", None), codec):
            return answer(model)
    inner = getattr(model, "estimator", None)
    what = type(inner if inner is not None else model).__name__
    raise InvalidData(
        f"export: a {what} cannot be exported: its answers are not computed by a graph of tensors. "
        "`--model` chooses another model of a run."
    )
