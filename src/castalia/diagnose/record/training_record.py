"""The record of a training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from castalia.diagnose.record.loss_head import Activation, Head
from castalia.diagnose.record.row_sample import Rows
from castalia.diagnose.record.unit_activity import Units

__all__ = ["UNROLLED", "Evaluation", "Layer", "Look", "OptimizerFacts", "Record", "Weight"]

UNROLLED = 8  # calls of a layer in one pass that may be a recurrence


@dataclass
class Weight:
    """What is known of one parameter.

    Attributes
    ----------
    name, shape
        In the module.
    trainable
        Whether it asks for a gradient.
    optimized
        Whether an optimizer holds it.
    kind
        Class of the module it belongs to, such as "Linear".
    rows_equal_at_start, rows_equal_at_end
        For a matrix: the share of its rows (units) that equal another row; None where not measured.
    radius
        Of a recurrent matrix, or one that is square: its spectral radius at the start.
    moved
        Whether any of a sample of its numbers has changed since the start.
    travelled
        How far it is from its start, over its size there; None where it began at zero.
    fresh
        Whether it lies as an initialisation left it: independent numbers, even or normal.
    """

    name: str
    shape: tuple[int, ...]
    trainable: bool
    optimized: bool
    kind: str
    rows_equal_at_start: float | None = None
    rows_equal_at_end: float | None = None
    radius: float | None = None
    moved: bool | None = None
    travelled: float | None = None
    fresh: bool = False


@dataclass(frozen=True)
class Layer:
    """A module without children, or one that torch runs as a whole, in the order of the calls.

    Attributes
    ----------
    name, kind
        In the module, and its class.
    settings
        Numbers of interest: p of a dropout, momentum and eps of a batch norm ….
    """

    name: str
    kind: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OptimizerFacts:
    """An optimizer as it was when last seen.

    Attributes
    ----------
    kind
        Its class.
    lr, momentum, weight_decay
        Of its first group; the largest rate of all groups is `most`.
    most
        The largest learning rate of its groups.
    first
        The learning rate at the first step.
    """

    kind: str
    lr: float
    momentum: float = 0.0
    weight_decay: float = 0.0
    most: float = 0.0
    first: float = 0.0


@dataclass
class Look:
    """Everything measured at one sampled step.

    Attributes
    ----------
    step, loss
        Number of the step, and its loss.
    size
        Rows of the batch.
    lr
        Learning rate of the first optimizer.
    training
        Whether the module was in training mode.
    head
        How the outputs become the loss.
    units
        Activations in the order of computation.
    structure
        Layers with weights in the order of computation, each with the names of the layers that feed
        it through linear operations only.
    chains
        Of every weight that at least ``UNROLLED`` operations take: how many of them feed each
        other, one by one, as the steps of a recurrence do. None: not known.
    gradients
        Norm of the gradient of each parameter after the backward pass; None for one without.
    applied
        The same when the optimizer was called, after any clipping.
    weights
        Root mean square of each parameter.
    updates
        Norm of the step over the norm of the parameter.
    stale
        Whether gradients of an earlier step were still there when this step's were computed.
    batch_norms
        Of each batch norm: numbers per channel in its batch, and how far its running mean lies from
        the mean of the batch, in spreads of the batch.
    gradient
        A sample of the gradient's numbers, to compare with those of other steps.
    next_gradient
        The same numbers one step later.
    update
        What the step added to the same numbers of the parameters, each times the numbers it stands
        for: its product with a gradient is the change of the loss that this gradient predicts.
    output_spread
        Spread of the outputs over the rows.
    passes
        Backward passes before the step.
    suspects
        Operations that were given numbers at which their value or slope is infinite.
    softmaxes
        Every softmax of the graph.
    """

    step: int
    loss: float = float("nan")
    size: int = 0
    lr: float = float("nan")
    training: bool = True
    head: Head | None = None
    units: list[Units] = field(default_factory=list)
    structure: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    chains: dict[str, int] | None = None
    softmaxes: list[Activation] = field(default_factory=list)
    gradients: dict[str, float | None] = field(default_factory=dict)
    applied: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    updates: dict[str, float] = field(default_factory=dict)
    stale: bool | None = None
    batch_norms: dict[str, tuple[int, float]] = field(default_factory=dict)
    gradient: np.ndarray | None = None
    next_gradient: np.ndarray | None = None
    update: np.ndarray | None = None
    output_spread: float = float("nan")
    passes: int = 1
    suspects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evaluation:
    """One validation.

    Attributes
    ----------
    step
        Steps of training before it.
    loss, score
        As logged or seen; a score is better the higher it is.
    train_loss
        Mean of the training losses since the validation before.
    """

    step: int
    loss: float | None = None
    score: float | None = None
    train_loss: float | None = None


@dataclass
class Record:
    """What was seen of one training.

    Attributes
    ----------
    task
        As given by the user; None where not given.
    module
        Class of the module.
    layers, weights, optimizers
        What the training is made of.
    losses
        Loss of every step, NaN where not known.
    unknown
        Steps whose loss is not known.
    looks
        The sampled steps.
    train, validation
        Rows that passed by.
    evaluations
        Validations in order.
    restored
        Whether the weights of the best of them were put back at the end.
    trained_in_training_mode, trained_in_evaluation_mode
        Steps of which the module was in that mode.
    validated_in_training_mode, validated_in_evaluation_mode
        Validations of which the module was in that mode.
    silent_in_training_mode, silent_in_evaluation_mode
        Calls without gradients of which the module was in that mode.
    asked_again
        Calls without gradients on the rows of the call before, as for Monte Carlo dropout.
    asides
        Looked-at steps before which the module answered many smaller inputs with gradients on, as
        an agent does that acts.
    data_normalised
        Whether data meet a normalising layer first.
    used
        Parameters that some loss depended on.
    dropped
        Whether a dropout mask was met.
    input_shape
        Of one row given to the module.
    latent
        Mean and log-variance of the latent code of the last looked-at batch, of a network that
        returns them.
    shown
        Rows that a discriminator was given at the last looks, each batch with whether another
        module that is trained had made it.
    failed
        Shapes of outputs and targets, and the largest target, of a loss function that raised.
    final
        Numbers measured on the module when the diagnosis was asked for.
    notes
        What could not be seen.
    given_up
        Whether watching ended early, so that the rest of the training is not known.
    """

    task: str | None = None
    module: str = ""
    layers: list[Layer] = field(default_factory=list)
    weights: list[Weight] = field(default_factory=list)
    optimizers: list[OptimizerFacts] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    unknown: set[int] = field(default_factory=set)
    looks: list[Look] = field(default_factory=list)
    train: Rows = field(default_factory=Rows)
    validation: Rows = field(default_factory=Rows)
    evaluations: list[Evaluation] = field(default_factory=list)
    restored: bool = False
    trained_in_training_mode: int = 0
    trained_in_evaluation_mode: int = 0
    validated_in_training_mode: int = 0
    validated_in_evaluation_mode: int = 0
    silent_in_training_mode: int = 0
    silent_in_evaluation_mode: int = 0
    asked_again: int = 0
    asides: int = 0
    data_normalised: bool = False
    used: set[str] = field(default_factory=set)
    dropped: bool = False
    input_shape: tuple[int, ...] = ()
    latent: tuple[np.ndarray, np.ndarray] | None = None
    shown: list[tuple[bool, np.ndarray]] = field(default_factory=list)
    failed: tuple[tuple[int, ...], tuple[int, ...], int] | None = None
    final: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    given_up: bool = False

    @property
    def steps(self) -> int:
        """Steps taken."""
        return len(self.losses)
