"""CST303: linear layers in a row with nothing between them."""

from __future__ import annotations

from collections.abc import Iterator

from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
from castalia.diagnose.rules.case import Case

__all__ = ["linear_in_a_row"]


def linear_in_a_row(case: Case) -> Iterator[Finding]:
    """Pairs of linear layers whose product could be one layer without loss."""
    if not case.looks:
        return
    structure = case.looks[0].structure
    known = case.record.layers
    wider = {layer.name for layer in known if layer.kind.startswith("ConvTranspose")}
    layers = {layer for layer, kind, _ in structure if kind not in ("Embedding", "EmbeddingBag")}
    # What is added to the results of other layers later is the first term of a sum, as of residual
    # blocks, and cannot be multiplied into one layer.
    terms = {below for _, _, feeders in structure if len(set(feeders)) > 1 for below in feeders}
    pairs = [
        (below, layer)
        for layer, _, feeders in structure
        for below in feeders
        if below not in {layer, *wider, *terms} and not _bottleneck(case, below, layer)
    ]
    if not pairs:
        return
    plain = len(layers) > 1 and not case.looks[0].units
    first, second = pairs[0]
    yield finding(
        "CST303",
        "warning",
        0.93 if plain else 0.6,  # it costs little where other layers are nonlinear
        f"`{first}` feeds `{second}` with nothing nonlinear between them: together they are one "
        "linear layer.",
        Remedy("Put an activation between them.", {"activation": "relu"}),
        Evidence("pairs of linear layers in a row", len(set(pairs)), 0.0),
        where=second,
    )


def _bottleneck(case: Case, below: str, layer: str) -> bool:
    """Whether the numbers between are fewer than on both sides: a factorised layer on purpose."""
    a, b = case.weights.get(f"{below}.weight"), case.weights.get(f"{layer}.weight")
    if a is None or b is None or len(a.shape) < 2 or len(b.shape) < 2:
        return True
    middle = a.shape[0]
    return middle < min(a.shape[1], b.shape[0])
