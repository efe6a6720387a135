"""What estimators with recurrent layers share: their fields, and how the layers are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from castalia.base import Estimator, Interval, OneOf
from castalia.data.adapter_base import Reads
from castalia.data.sequences import SequenceAdapter
from castalia.nets.sequence import CELL_NAMES, RecurrentStack, StepEmbedding
from castalia.protocols import Spec
from castalia.train import Training

__all__ = ["CLIPPED", "ReadsSequences", "RecurrentEstimator"]

CLIPPED: Training = Training(clip=1.0, patience=20)  # a steep place must not end it


class ReadsSequences:
    """Mixin, left of the task: X is sequences, whose checks scikit-learn leaves to the adapter."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class RecurrentEstimator(Estimator):
    """Base of estimators with recurrent layers.

    Parameters
    ----------
    cell
        ``"lstm"``, ``"gru"``, ``"peephole"`` (an LSTM whose gates see the cell), ``"elman"`` (the
        state is fed back), ``"jordan"`` or ``"output"`` (the output is fed back).
    hidden
        Width of the state of each layer and direction.
    depth
        Layers.
    residual
        Whether each layer but the first adds to what it reads; helps deep stacks.
    dropout
        Probability of zeroing a number between layers and before the output.
    without
        Parts that an LSTM is left without, to see what they are for: ``"nig"``, ``"nfg"``,
        ``"nog"`` (input, forget, output gate), ``"niaf"``, ``"noaf"`` (input, output activation).
    truncate
        Steps that gradients go back through time; None: all. The state goes on in any case.
    memory
        Steps that an LSTM or GRU begins by remembering, where what matters lies that far back;
        None: a few.
    categorical
        Numbers of channels that hold codes of categories; channels of words always are categories.
    missing
        What to do about NaN and infinity: ``"error"`` refuses them, ``"forward"`` carries the last
        value on, ``"mean"`` takes the mean of the channel.
    """

    adapter: ClassVar[Any] = Reads(SequenceAdapter, "categorical", "missing")
    usual_training: ClassVar[Training] = CLIPPED

    cell: Annotated[str, OneOf(*CELL_NAMES)] = "lstm"
    hidden: Annotated[int, Interval(1, whole=True)] = 64
    depth: Annotated[int, Interval(1, whole=True)] = 1
    residual: Annotated[bool, OneOf(True, False)] = False
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    without: tuple[str, ...] = ()
    truncate: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    memory: Annotated[int | None, Interval(2, whole=True, optional=True)] = None
    categorical: tuple[int, ...] = ()
    missing: Annotated[str, OneOf("error", "forward", "mean")] = "error"

    def _layers(self, spec: Spec, dim: int | None = None) -> tuple[StepEmbedding, RecurrentStack]:
        """Make what reads a step, and the recurrent layers above it."""
        embed = StepEmbedding(spec.inputs, spec.categories, dim=dim, **spec.extra)
        return embed, self._stack(embed.width)

    def _stack(self, inputs: int) -> RecurrentStack:
        return RecurrentStack(
            inputs,
            cell=self.cell,
            hidden=self.hidden,
            depth=self.depth,
            bidirectional=getattr(self, "bidirectional", False),
            residual=self.residual,
            dropout=self.dropout,
            without=self.without,
            truncate=self.truncate,
            memory=self.memory,
        )
