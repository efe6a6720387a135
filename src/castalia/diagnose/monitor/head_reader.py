"""The loss recognised from its graph: from the scalar down to the last layer with weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from castalia.diagnose.monitor.autograd_graph import (
    Operation,
    is_dropout,
    is_layer,
    is_transparent,
)
from castalia.diagnose.monitor.loss_terms import has_other_terms, is_weighed, number, reduction_of
from castalia.diagnose.record import Activation, Head

__all__ = ["LOSSES", "NAMES", "Ending", "activation_of", "read_head"]

LOSSES = {
    "NllLoss": "nll",
    "NllLoss2D": "nll",
    "MseLoss": "mse",
    "L1Loss": "l1",
    "SmoothL1Loss": "smooth_l1",
    "HuberLoss": "huber",
    "BinaryCrossEntropy": "bce",
    "BinaryCrossEntropyWithLogits": "bce_logits",
    "KlDiv": "kl_div",
    "SoftMarginLoss": "soft_margin",
    "MultiMarginLoss": "multi_margin",
    "MultilabelMarginLoss": "multilabel_margin",
    "CtcLoss": "ctc",
    "CudnnCtcLoss": "ctc",
}
NAMES = {
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
    "Sigmoid": "sigmoid",
    "LogSigmoid": "log_sigmoid",
    "Relu": "relu",
    "Tanh": "tanh",
    "LeakyRelu": "leaky_relu",
    "Elu": "elu",
    "Gelu": "gelu",
    "Silu": "silu",
    "Softplus": "softplus",
    "Hardtanh": "hardtanh",
    "Hardsigmoid": "hardsigmoid",
    "Hardswish": "hardswish",
    "Mish": "mish",
    "Celu": "celu",
    "PreluKernel": "prelu",
    "RreluWithNoise": "rrelu",
    "Threshold": "threshold",
    "Clamp": "clamp",
    "Exp": "exp",
    "Log": "log",
    "Log1P": "log1p",
    "Abs": "abs",
    "Pow": "pow",
    "Sqrt": "sqrt",
    "Glu": "glu",
    "Sin": "sin",
}
ELEMENTWISE = ("Sub", "Rsub", "Add", "Mul", "Div", "Expand", "Where", "Maximum", "Minimum")
EVEN = ("mse", "l1", "smooth_l1", "huber")  # losses whose two sides may be exchanged
SEARCHED = 400  # operations searched above the last layer


@dataclass
class Ending:
    """A head with the tensors that entered the loss.

    Attributes
    ----------
    head
        What was recognised.
    outputs, targets
        As the loss saw them; None where it kept none.
    operations
        Everything above the last layer, the loss first.
    difference
        Outputs minus targets, where the loss kept only that.
    node
        Autograd's node of the loss.
    """

    head: Head
    outputs: Tensor | None
    targets: Tensor | None
    operations: list[Operation]
    difference: Tensor | None = None
    node: Any = None

    def complete(self, outputs: Tensor | None) -> None:
        """Work out the targets from the network's outputs and what the loss kept."""
        shape = self.head.outputs
        if self.outputs is None and outputs is not None and outputs.numel() == math.prod(shape):
            self.outputs = outputs.detach().reshape(shape)
        kept = self.difference
        if self.targets is None and self.outputs is not None and kept is not None:
            self.targets = self.outputs - kept if self.outputs.shape == kept.shape else None


def read_head(order: list[Operation]) -> Ending:
    """Recognise how the outputs of the network become its loss."""
    root = order[-1]
    above = list(_above_layers(root))
    known = [operation for operation in above if operation.kind in LOSSES]
    scale, negated = _scale(root)
    if known:
        term: Operation | None = known[0]
        ending = _known(known[0], above)
    else:
        term, ending = _by_hand(above)
        # Minus a log-probability is as it should be; minus a square is not.
        negated = negated and ending.head.loss in ("mse", "l1")
    head = ending.head
    others = tuple(LOSSES[o.kind] for o in known[1:])
    weighted, reduction = head.weighted, head.reduction
    if term is not None:
        ending.node = term.node
        others = others or (("unknown",) if has_other_terms(term) else ())
        weighted = weighted or (reduction == "none" and is_weighed(term))
        if head.loss in ("mse", "l1") and reduction == "none":
            reduction = reduction_of(term, scale)
    ending.head = replace(
        head,
        others=others,
        weighted=weighted,
        reduction=reduction,
        scale=scale,
        negated=negated,
        broadcast=head.broadcast or _broadcast(above),
        last=_last(above),
        dropped=any(is_dropout(o) and math.prod(o.shape) == math.prod(head.outputs) for o in above),
    )
    return ending


def _above_layers(root: Operation) -> Iterator[Operation]:
    """Yield what lies above the layers with weights, the loss first; layers are not yielded."""
    seen, queue = {id(root)}, [root]
    while queue and len(seen) < SEARCHED:
        current = queue.pop(0)
        if is_layer(current):
            continue
        yield current
        for source in current.inputs:
            if id(source) not in seen:
                seen.add(id(source))
                queue.append(source)


def _last(above: list[Operation]) -> tuple[str, ...]:
    """Return the layers that what lies above all layers takes the results of."""
    sources = [source for operation in above for source in operation.inputs if is_layer(source)]
    return tuple(dict.fromkeys(str(source.layer) for source in sources))


def _scale(root: Operation) -> tuple[float, bool]:
    """Factor that was applied to the loss, as for accumulation or by a gradient scaler, and sign.

    What a sum is divided by makes it a mean; that is no factor.
    """
    scale, divisor, negated, current = 1.0, 1.0, False, root
    while True:
        if current.kind == "Sum" or (current.kind in LOSSES and current.saved("reduction") == 2):
            scale, divisor = scale * divisor, 1.0
        if len(current.inputs) != 1 or current.weights:
            break
        if current.kind == "Neg":
            negated = not negated
        elif current.kind in ("Mul", "Div"):
            factor = number(current.saved("other"), current.saved("self"))
            if factor is None or factor == 0:
                break
            scale = scale * factor if current.kind == "Mul" else scale / factor
            divisor = 1.0 if current.kind == "Mul" else factor
        elif current.kind not in ("ToCopy", "View", "Squeeze", "Alias", "Mean", "Sum"):
            break
        if current.kind == "Mean":
            divisor = 1.0  # was no part of a mean
        current = current.inputs[0]
    return scale, negated


def _known(main: Operation, above: list[Operation]) -> Ending:
    loss = LOSSES[main.kind]
    outputs, targets = main.saved("self"), main.saved("target")
    if loss in EVEN and main.node.next_functions[0][0] is None:
        outputs, targets = targets, outputs  # what was predicted is the one with a graph
    below = main.inputs[0] if main.inputs else None
    log_softmax = None
    if loss == "nll" and below is not None:
        below = _through(below)
        if below is not None and below.kind == "LogSoftmax":
            loss, log_softmax = "cross_entropy", activation_of(below)
            below = below.inputs[0] if below.inputs else None
    chain, layer = _chain(below)
    reduction = main.saved("reduction")
    head = Head(
        loss=loss,
        chain=chain,
        log_softmax=log_softmax,
        outputs=tuple(outputs.shape) if outputs is not None else main.shape,
        targets=tuple(targets.shape) if targets is not None else (),
        ignore_index=_signed(main.saved("ignore_index")),
        weighted=any(_differs(main.saved(name)) for name in ("weight", "pos_weight")),
        reduction={0: "none", 1: "mean", 2: "sum"}.get(reduction, "mean"),
        layer=layer,
    )
    return Ending(head, outputs, targets, above)


def _broadcast(above: list[Operation]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Shapes of the outputs before and after a constant blew them up.

    Lengths that are added are no outputs: pairs of rows are compared by them on purpose.
    """
    for operation in above:
        if operation.kind in ELEMENTWISE and len(operation.inputs) == 1:
            before, after = operation.inputs[0].shape, operation.shape
            larger = before and before != after and math.prod(after) > math.prod(before)
            lengths = operation.kind == "Add" and _is_sum(operation.inputs[0])
            if larger and not lengths:
                return before, after
    return None


def _is_sum(operation: Operation) -> bool:
    """Whether this is a sum over columns, with constants added or multiplied to it perhaps."""
    source = _through(operation)
    while source is not None and source.kind in ELEMENTWISE and len(source.inputs) == 1:
        source = _through(source.inputs[0])
    return source is not None and source.kind in ("Sum", "Mean", "LinalgVectorNorm")


def _through(operation: Operation | None) -> Operation | None:
    """Skip what only moves numbers."""
    while operation is not None and is_transparent(operation) and operation.inputs:
        operation = operation.inputs[0]
    return operation


def _chain(operation: Operation | None) -> tuple[tuple[Activation, ...], str | None]:
    """Operations from here to the nearest layer with weights, along the first input."""
    chain: list[Activation] = []
    while operation is not None and not is_layer(operation) and len(chain) < 12:
        if operation.kind in NAMES:
            chain.append(activation_of(operation))
        elif not is_transparent(operation):
            chain.append(Activation(operation.kind.lower(), operation.shape))
        operation = operation.inputs[0] if operation.inputs else None
    return tuple(chain), operation.layer if operation is not None else None


def _differs(weight: Any) -> bool:
    """Whether weights are given, other than ones."""
    return isinstance(weight, Tensor) and not bool((weight == 1).all())


def _signed(value: Any) -> int | None:
    """Return an integer that autograd may have kept as an unsigned one."""
    if not isinstance(value, int):
        return None
    return value - 2**64 if value >= 2**63 else value


def activation_of(operation: Operation, weighs: bool = False) -> Activation:
    """Describe an operation; a clamp at zero is called what it is, a ReLU."""
    dim = _signed(operation.saved("dim"))
    if dim is not None and dim < 0:
        dim += len(operation.shape)
    kind = NAMES.get(operation.kind, operation.kind.lower())
    if kind == "clamp" and number(operation.saved("min")) == 0 and operation.saved("max") is None:
        kind = "relu"
    return Activation(kind, operation.shape, dim, weighs, _twice(operation))


def _twice(operation: Operation) -> bool:
    """Whether it is the log-softmax of a softmax."""
    below = _through(operation.inputs[0]) if operation.inputs else None
    return operation.kind == "LogSoftmax" and below is not None and below.kind == "Softmax"


def _by_hand(above: list[Operation]) -> tuple[Operation | None, Ending]:
    """Recognise losses written as plain arithmetic, and the operation each number comes from."""
    for operation in above:
        if operation.kind == "Pow" and number(operation.saved("exponent")) == 2:
            found = _of_difference(operation, "mse", above)
        elif operation.kind == "Abs":
            found = _of_difference(operation, "l1", above)
        elif operation.kind == "Mul" and _squared(operation):
            found = _of_difference(operation, "mse", above)
        elif operation.kind in ("LogSoftmax", "Log", "LogSigmoid"):
            found = _of_logarithm(operation, above)
        elif operation.kind == "Sub":
            found = _of_counts(operation, above) or _of_divergence(operation, above)
        else:
            continue
        if found is not None:
            return operation, found
    chain, layer = _chain(_through(above[0].inputs[0]) if above and above[0].inputs else None)
    shape = above[0].inputs[0].shape if above and above[0].inputs else ()
    return None, Ending(Head(chain=chain, outputs=shape, layer=layer), None, None, above)


def _squared(operation: Operation) -> bool:
    return len(operation.inputs) == 2 and operation.inputs[0] is operation.inputs[1]


def _of_difference(square: Operation, loss: str, above: list[Operation]) -> Ending | None:
    """Read a loss of output minus target: the difference is kept, the target was a constant."""
    source = _through(square.inputs[0]) if square.inputs else None
    if source is None or source.kind not in ("Sub", "Rsub") or len(source.inputs) != 1:
        return None
    prediction = source.inputs[0]
    chain, layer = _chain(prediction)
    broadcast = None
    if prediction.shape != source.shape and len(source.shape) >= len(prediction.shape):
        broadcast = (prediction.shape, source.shape)
    head = Head(
        loss=loss,
        chain=chain,
        outputs=prediction.shape,
        broadcast=broadcast,
        reduction="none",
        layer=layer,
    )
    difference = square.saved("self")
    if difference is not None and source.node.next_functions[0][0] is None:
        difference = -difference  # target minus output
    known = prediction.saved("result") if chain else None
    return Ending(head, known, None, above, difference)


def _of_logarithm(logarithm: Operation, above: list[Operation]) -> Ending | None:
    """Read a cross-entropy by hand: minus targets times log-probabilities, or picked from them."""
    if logarithm.kind == "Log":
        inner = _through(logarithm.inputs[0]) if logarithm.inputs else None
        while inner is not None and inner.kind in ("Add", "Clamp") and inner.inputs:
            inner = _through(inner.inputs[0])  # log(p + eps)
        if inner is None or inner.kind not in ("Softmax", "Sigmoid"):
            return None
        loss = "cross_entropy" if inner.kind == "Softmax" else "bce"
        chain, layer = _chain(inner.inputs[0] if inner.inputs else None)
        activation = activation_of(inner)
        if loss == "bce":
            chain = (activation, *chain)
    else:
        loss = "cross_entropy" if logarithm.kind == "LogSoftmax" else "bce_logits"
        chain, layer = _chain(logarithm.inputs[0] if logarithm.inputs else None)
        activation = activation_of(logarithm)
    targets = None
    for user in logarithm.users:
        if user.kind == "Mul":
            kept = [user.saved("self"), user.saved("other")]
            result = logarithm.saved("result")
            targets = next(
                (
                    k
                    for k in kept
                    if isinstance(k, Tensor)
                    and k.shape == logarithm.shape
                    and (result is None or not torch.equal(k, result))
                ),
                None,
            )
    head = Head(
        loss="soft_cross_entropy" if loss == "cross_entropy" else loss,
        chain=chain,
        log_softmax=activation if loss == "cross_entropy" else None,
        outputs=logarithm.shape,
        targets=tuple(targets.shape) if targets is not None else (),
        layer=layer,
        reduction="none",
    )
    return Ending(head, logarithm.saved("result"), targets, above)


def _of_counts(minus: Operation, above: list[Operation]) -> Ending | None:
    """Read Poisson's likelihood: exp(o) - y o of a rate's logarithm, o - y log(o) of a rate."""
    if len(minus.inputs) != 2 or minus.inputs[1].kind != "Mul" or not minus.inputs[1].inputs:
        return None
    rate, weighed = minus.inputs
    targets, inner = _constant(weighed), weighed.inputs[0]
    if rate.kind == "Exp" and rate.inputs and rate.inputs[0] is inner:
        loss = "poisson"
    elif inner.kind == "Log" and inner.inputs:
        loss, inner = "poisson_rate", inner.inputs[0]
        if inner is not rate and inner.kind == "Add" and inner.inputs:
            inner = inner.inputs[0]  # log(o + eps)
        if inner is not rate:
            return None
    else:
        return None
    return _summed(loss, inner, targets, above)


def _of_divergence(minus: Operation, above: list[Operation]) -> Ending | None:
    """Read y log(y) - y o, where y are shares; with a log-softmax it is a cross-entropy."""
    if len(minus.inputs) != 1 or minus.inputs[0].kind != "Mul":
        return None
    weighed = minus.inputs[0]
    targets, inner = _constant(weighed), _through(weighed.inputs[0]) if weighed.inputs else None
    if targets is None or inner is None or inner.kind in ("LogSoftmax", "Log", "LogSigmoid"):
        return None
    shares = targets.ndim > 1 and bool((targets >= 0).all())
    if not shares or not torch.allclose(targets.sum(-1), torch.ones_like(targets[..., 0])):
        return None
    return _summed("kl_div", weighed.inputs[0], targets, above)


def _constant(product: Operation) -> Tensor | None:
    """Return what a product multiplies by, where that is no part of the graph."""
    kept = (product.saved("self"), product.saved("other"))
    found = [k for k in kept if isinstance(k, Tensor) and k.shape == product.shape]
    return found[0] if len(product.inputs) == 1 and len(found) == 1 else None


def _summed(
    loss: str, outputs: Operation, targets: Tensor | None, above: list[Operation]
) -> Ending | None:
    if targets is None:
        return None
    chain, layer = _chain(outputs)
    shape = tuple(targets.shape)
    head = Head(loss, chain=chain, outputs=shape, targets=shape, layer=layer, reduction="none")
    return Ending(head, None, targets, above)
