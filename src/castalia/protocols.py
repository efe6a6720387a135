"""The small records and protocols by which the parts of the library meet.

Nothing here computes; torch is imported for type checkers only, so floor 0 stays light.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from castalia.utils.tensor_trees import move

if TYPE_CHECKING:
    from torch import Tensor, nn

    # From a network's outputs to the loss and its gradient by those outputs.
    LossGradient = Callable[[Tensor], tuple[Tensor, Tensor]]

__all__ = [
    "Backprops",
    "Batch",
    "Decodes",
    "Encodes",
    "Energy",
    "LogProb",
    "LossGradients",
    "Objective",
    "Phase",
    "RowLosses",
    "Rows",
    "Solves",
    "Spec",
    "Stage",
    "StepPlan",
]


class Batch(NamedTuple):
    """One mini-batch: inputs, targets and weights, already on the device.

    Attributes
    ----------
    x, y
        Trees of tensors: a tensor, a tuple, a dict, a dataclass, or a record with ``to``.
    weight
        One weight a row, (B,), or None for all ones.
    lengths
        Of padded rows, how much of each is real, (B,); None where rows are not padded.
    """

    x: Any
    y: Any = None
    weight: Tensor | None = None
    lengths: Tensor | None = None

    def to(self, device: Any) -> Batch:
        """Return the same batch on a device."""
        return Batch(*(move(part, device) for part in self))


@dataclass(frozen=True)
class Spec:
    """What an adapter and a task learnt about the data, and all a network needs to be built.

    Attributes
    ----------
    inputs
        Width of one encoded row.
    outputs
        Number of network outputs.
    categories
        Sizes of the categorical columns, which are the last columns of a row; each size includes
        slot 0 for unseen and missing values.
    class_weight
        One weight per class, or None.
    rows
        Number of training rows.
    extra
        What a family needs beyond this (vocabulary size, image shape …); plain JSON values.
    """

    inputs: int
    outputs: int
    categories: tuple[int, ...] = ()
    class_weight: tuple[float, ...] | None = None
    rows: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Phase:
    """Which parameters are trained by which loss, and how often.

    One optimizer is made per phase. In each batch every phase takes ``repeat`` steps, in order, on
    batches whose number is a multiple of ``every``. A GAN has two phases. ``lr_scale`` multiplies
    the learning rate: one factor, or one for each parameter. ``decayed`` says for each parameter
    whether weight decay applies to it; None: to those of two or more axes, the weight matrices.
    """

    name: str
    parameters: Sequence[Tensor]
    repeat: int = 1
    every: int = 1
    lr_scale: float | Sequence[float] = 1.0
    decayed: Sequence[bool] | None = None


@dataclass(frozen=True)
class StepPlan:
    """How the steps of a stage are taken, as far as an objective may use it.

    Attributes
    ----------
    second_order
        Whether the optimizer differentiates the loss twice.
    compile
        Mode in which a compiled network is compiled; None is torch's default.
    rows
        Training rows of an epoch; 0 where that is not known.
    steps
        Steps of an epoch, in all processes the same; 0 where that is not known.
    """

    second_order: bool = True
    compile: str | None = None
    rows: int = 0
    steps: int = 0


@dataclass(frozen=True)
class Stage:
    """One leg of a training: an objective, the part of the network it trains, and for how long.

    ``epochs`` and ``lr`` default to the estimator's. Stages run in order on the same network.
    """

    name: str
    objective: Objective
    epochs: int | None = None
    lr: float | None = None


class Objective(Protocol):
    """What is minimised. See ``castalia.objectives.objective`` for the default behaviour."""

    def phases(self, net: nn.Module) -> list[Phase]:
        """Say which parameters are trained by which loss."""

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return ``{"loss": scalar, …named parts}``, each a mean over the rows of the batch."""

    def judged(
        self, net: nn.Module, batch: Batch, phase: str
    ) -> tuple[Tensor, Tensor | None]:  # (P,)
        """Return the losses of the parts of the network that learn apart, and what rows weigh."""

    def after_step(self, net: nn.Module) -> None:
        """Update what gradients do not: moving averages, codebooks."""

    def prepare(self, plan: StepPlan) -> None:
        """Receive how steps are taken, before the first one."""

    def state_dict(self) -> dict[str, Tensor]:
        """Return what is carried from step to step outside the network."""

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what ``state_dict`` returned."""


@runtime_checkable
class Solves(Protocol):
    """An objective whose best weights are known in closed form: its stage takes no steps."""

    def solve(self, net: nn.Module, data: Any, validation: Any) -> dict[str, float]:
        """Set the weights from ``Samples``, validated by others or None, and return the terms."""


@runtime_checkable
class Rows(Protocol):
    """Encoded inputs that can be indexed by row; as a base class it gives the defaults.

    A class of its own needs ``__len__`` and ``take``; the defaults are those of rows that stay on
    the host and have no common shape.

    Attributes
    ----------
    shape
        Of one row, channels first (tokens have one channel); () where rows differ.
    nbytes
        What they take on a device; 0: they stay where they are, and ``take`` puts batches on the
        device; None: they stay on the host, and so do batches until the loop moves them.
    fixed
        Whether batches are slices of one tensor, so that a CUDA step can be captured.
    lengths
        Of padded rows, how much of each is real, (N,); None: rows are not padded.
    """

    shape: tuple[int, ...] = ()
    nbytes: int | None = None
    fixed: bool = False
    lengths: Tensor | None = None

    def __len__(self) -> int: ...

    def take(self, index: Tensor, width: int | None = None) -> Any:
        """Return the inputs at these rows as one batch, a tree; padded rows cut to a width."""

    def plan(self, batches: Iterable[Tensor]) -> None:
        """Receive which rows will be taken, batch after batch, to have them ready."""
        return

    def to(self, device: Any) -> Rows:
        """Return the same rows held on a device."""
        return self


@runtime_checkable
class RowLosses(Protocol):
    """An objective that is a mean of losses which compare outputs with targets row by row."""

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each row, (B,)."""


@runtime_checkable
class LossGradients(Protocol):
    """An objective that writes out the gradient of its loss by the network's outputs."""

    def loss_gradient(self, outputs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the loss and its gradient by the outputs."""


@runtime_checkable
class Backprops(Protocol):
    """A network that writes its back-propagation out, for steps too small for autograd."""

    def can_backprop(self) -> bool:
        """Whether this configuration is one it can do."""

    def backprop(self, x: Tensor, loss_gradient: LossGradient) -> Tensor:
        """Set every parameter's gradient for inputs x and return the loss."""


@runtime_checkable
class Encodes(Protocol):
    """A network that maps inputs to codes."""

    def encode(self, x: Tensor) -> Tensor:
        """Return the codes."""


@runtime_checkable
class Decodes(Protocol):
    """A network that maps codes to inputs."""

    def decode(self, z: Tensor) -> Tensor:
        """Return the inputs."""


@runtime_checkable
class LogProb(Protocol):
    """A network that scores inputs by their log-probability."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Return log p(x), one number a row."""


@runtime_checkable
class Energy(Protocol):
    """A network that scores inputs by an unnormalised energy."""

    def energy(self, x: Tensor) -> Tensor:
        """Return E(x), one number a row."""
