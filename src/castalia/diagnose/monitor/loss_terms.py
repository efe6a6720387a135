"""What becomes of one term of a loss on its way up to the scalar: weighed, reduced, added to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from castalia.diagnose.monitor.autograd_graph import TRANSPARENT, Operation, is_layer

__all__ = ["has_other_terms", "is_weighed", "number", "reduction_of"]

# What picks some of the numbers, or lets a mask decide over each.
PICKING = frozenset(
    {"Where", "MaskedFill", "MaskedSelect", "Index", "IndexSelect", "Gather", "Slice", "Select"}
)
SUMS = ("Add", "Sub", "Rsub", "Stack", "Cat")
SQUASHING = ("LogSoftmax", "Softmax", "Sigmoid", "LogSigmoid")
LOGARITHMIC = TRANSPARENT | {"NllLoss", "NllLoss2D", "KlDiv", "Log", "Add", "Rsub", "Clamp"}
SEARCHED = 400  # operations of another term


def number(*candidates: Any) -> float | None:
    """Return the first that is a single number."""
    for candidate in candidates:
        if isinstance(candidate, int | float):
            return float(candidate)
        if isinstance(candidate, Tensor) and candidate.numel() == 1 and not candidate.is_meta:
            return float(candidate)
    return None


def is_weighed(term: Operation) -> bool:
    """Whether the numbers of a term count differently: by weights, by a mask, by a choice."""
    return any(_weighs(user) for user in _upwards(term))


def _weighs(operation: Operation) -> bool:
    if math.prod(operation.shape) <= 1 and operation.kind not in PICKING:
        return False  # of the whole
    if operation.kind in ("Mul", "Div"):
        return _factor(operation) is None
    return operation.kind in PICKING


def reduction_of(term: Operation, scale: float) -> str:
    """Return how a term's numbers became one: "mean", "sum", or "none" where it is neither."""
    share, below = 1.0, term
    for user in _upwards(term):
        if user.kind == "Mean":
            share *= math.prod(user.shape) / max(math.prod(below.shape), 1)
        elif user.kind in ("Mul", "Div"):
            factor = _factor(user)
            if not factor:
                return "none"
            share *= factor if user.kind == "Mul" else 1 / factor
        elif user.kind not in ("Sum", "Neg", *SUMS) and user.kind not in TRANSPARENT - PICKING:
            return "none"
        below = user
    return "mean" if math.isclose(share * math.prod(term.shape), scale, rel_tol=1e-3) else "sum"


def has_other_terms(term: Operation) -> bool:
    """Whether something else that the network computed was added to a term.

    Penalties on parameters are nothing the network computed, nor are other uses of the term's own
    probabilities, as where labels are smoothed.
    """
    own, below = _own(term), term
    for user in _upwards(term):
        if user.kind in SUMS:
            others = [source for source in user.inputs if source is not below]
            if any(_reaches_layer(source, own) for source in others):
                return True
        below = user
    return False


def _own(term: Operation) -> set[int]:
    """Return a term and what it takes the logarithm of, down to a softmax or sigmoid."""
    found, current = {id(term)}, term
    while current.kind not in SQUASHING:
        if current.kind not in LOGARITHMIC or not current.inputs:
            return {id(term)}
        current = current.inputs[0]
        found.add(id(current))
    return found


def _reaches_layer(start: Operation, stop: set[int]) -> bool:
    """Whether a layer lies below, on a way that avoids some operations."""
    seen, stack = {id(start), *stop}, [] if id(start) in stop else [start]
    while stack and len(seen) < SEARCHED:
        current = stack.pop()
        if is_layer(current):
            return True
        stack.extend(source for source in current.inputs if id(source) not in seen)
        seen.update(map(id, current.inputs))
    return False


def _upwards(operation: Operation) -> Iterator[Operation]:
    """Yield what was made of a result, up to the scalar."""
    while operation.users:
        operation = operation.users[0]
        yield operation


def _factor(product: Operation) -> float | None:
    """Return the number that a result was multiplied with or divided by; None if it is not one."""
    if len(product.inputs) != 1 or product.weights:
        return None
    return number(product.saved("other"), product.saved("self"))
