"""How the outputs of a network become its loss."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Activation", "Head"]


@dataclass(frozen=True)
class Activation:
    """One operation between the last layer and the loss, or inside a network.

    Attributes
    ----------
    kind
        "softmax", "log_softmax", "sigmoid", "relu", "tanh", "log", "exp" ….
    shape
        Of its result.
    dim
        The axis it runs over, counted from the front; None for elementwise ones.
    weighs
        Of a softmax: whether its result weighs the rows of a matrix, as attention does.
    twice
        Of a log-softmax: whether it is taken of a softmax.
    """

    kind: str
    shape: tuple[int, ...] = ()
    dim: int | None = None
    weighs: bool = False
    twice: bool = False


@dataclass(frozen=True)
class Head:
    """The end of the graph, read from the loss downwards.

    Attributes
    ----------
    loss
        "cross_entropy" (log-softmax and negative log-likelihood), "nll", "mse", "l1", "smooth_l1",
        "huber", "bce", "bce_logits", "kl_div", "soft_cross_entropy", "poisson" (of the logarithm of
        a rate), "poisson_rate" … or "unknown".
    others
        Further losses in the same sum, such as a penalty or the other half of a VAE's.
    chain
        Operations between the loss and the last layer with weights, from the loss down; the
        log-softmax of a cross-entropy is not among them.
    log_softmax
        That log-softmax.
    outputs
        Shape of what entered the loss.
    targets
        Shape of the targets, where known.
    broadcast
        Shape of the outputs before and after they were broadcast against the targets.
    ignore_index
        Class that a cross-entropy leaves out.
    weighted
        Whether classes are weighted.
    reduction
        How the loss function made one number of many: "mean", "sum" or "none".
    negated
        Whether the loss is minus a known loss.
    scale
        Factor between the loss function's value and the scalar whose gradient was taken.
    layer
        Name of the last layer with weights.
    last
        Names of all layers from which the loss is reached without passing another.
    dropped
        Whether a dropout mask falls between that layer and the loss.
    """

    loss: str = "unknown"
    others: tuple[str, ...] = ()
    chain: tuple[Activation, ...] = ()
    log_softmax: Activation | None = None
    outputs: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    broadcast: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    ignore_index: int | None = None
    weighted: bool = False
    reduction: str = "mean"
    negated: bool = False
    scale: float = 1.0
    layer: str | None = None
    last: tuple[str, ...] = ()
    dropped: bool = False
