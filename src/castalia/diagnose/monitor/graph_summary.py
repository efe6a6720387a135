"""Everything that one graph shows of one step."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from castalia.diagnose.monitor.autograd_graph import (
    Operation,
    is_dropout,
    is_layer,
    is_linear_layer,
    is_transparent,
    longest_chains,
    read_graph,
)
from castalia.diagnose.monitor.head_reader import LOSSES, Ending, activation_of, read_head
from castalia.diagnose.monitor.host_transfer import gather
from castalia.diagnose.monitor.module_facts import spread as spread_of
from castalia.diagnose.monitor.unit_reader import UnitReader
from castalia.diagnose.record import UNROLLED, Activation, Look

__all__ = ["GraphSummary", "call_behind", "quick_ending", "read"]

MOST_STRANGERS = 64
NEAR, FAR = 12, 400  # operations below a scalar that are searched
NORMS = ("NativeBatchNorm", "CudnnBatchNorm", "NativeLayerNorm", "NativeGroupNorm", "FusedRmsNorm")
SINGULAR = {
    "Log": ("self", "log of 0"),
    "Log2": ("self", "log of 0"),
    "Log10": ("self", "log of 0"),
    "Sqrt": ("result", "square root at 0"),
    "Rsqrt": ("result", "inverse square root of 0"),
    "Div": ("other", "division by 0"),
    "Reciprocal": ("result", "division by 0"),
    "LinalgVectorNorm": ("result", "norm of a zero vector"),
    "Norm": ("result", "norm of a zero vector"),
    "Exp": ("result", "overflow of exp"),
    "Pow": ("self", "power of 0"),
    "Acos": ("self", "acos at its limit"),
    "Asin": ("self", "asin at its limit"),
    "Atanh": ("self", "atanh at its limit"),
}


@dataclass
class GraphSummary:
    """What a graph shows.

    Attributes
    ----------
    ending
        The loss and what entered it.
    units
        Activations, still on their device.
    used
        Names of the parameters in the graph.
    structure, chains, softmaxes
        As in a look.
    batch_norms
        Name, numbers per channel, and running and batch statistics, (4, C).
    singular
        Layer, what may be infinite there, and whether it is.
    data_normalised
        Whether data meet a normalising layer first.
    opaque
        Whether a compiled part hides what happened.
    strangers
        Leaves that want a gradient and are no parameters of the module.
    dropped
        Whether a dropout mask was met.
    """

    ending: Ending
    units: UnitReader
    used: set[str]
    structure: list[tuple[str, str, tuple[str, ...]]]
    chains: dict[str, int]
    softmaxes: list[Activation]
    batch_norms: list[tuple[str, int, Tensor]]
    singular: list[tuple[str, str, Tensor]]
    data_normalised: bool
    opaque: bool
    strangers: list[Tensor]
    dropped: bool

    def fill(self, look: Look) -> None:
        """Write what was read into a look."""
        tensors, write = self.begin(look)
        write(gather(tensors))

    def begin(self, look: Look) -> tuple[list[Tensor], Callable[[list[np.ndarray]], None]]:
        """Write what needs no numbers into a look; return those wanted, and what writes them.

        Neither keeps the graph, nor anything large, alive.
        """
        look.head = self.ending.head
        look.structure, look.softmaxes = self.structure, self.softmaxes
        look.chains = self.chains
        units = self.units.pending()
        norms = {name: (n, statistics) for name, n, statistics in self.batch_norms}
        words = [f"{words} in `{layer}`" for layer, words, _ in self.singular]
        flags = [flag for *_, flag in self.singular]
        tensors = [spread_of(self.ending.outputs), *units, *(s for _, s in norms.values()), *flags]
        counts = {name: n for name, (n, _) in norms.items()}
        return tensors, partial(_write, look, self.units, counts, words)


def _write(
    look: Look,
    units: UnitReader,
    counts: dict[str, int],
    words: list[str],
    values: list[np.ndarray],
) -> None:
    """Write the numbers of ``GraphSummary.begin`` into a look."""
    first = 1 + len(units.found)
    last = first + len(counts)
    look.output_spread = float(values[0])
    look.units = units.read(values[1:first])
    statistics = zip(counts.items(), values[first:last], strict=True)
    look.batch_norms = {name: (n, _distance(both)) for (name, n), both in statistics}
    look.suspects = tuple(w for w, flag in zip(words, values[last:], strict=True) if flag)


def read(loss: Tensor, names: Mapping[int, str], returned: Sequence[Any] = ()) -> GraphSummary:
    """Read the graph below a loss, with the arguments of ``read_graph``.

    ``returned`` are the nodes whose results the module returned: these are wanted as they are.

    A graph of thousands of operations would set off Python's search for garbage, which goes through
    everything that torch has imported; nothing made here outlives the call, so it waits.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return _read(loss, names, returned)
    finally:
        if collects:
            gc.enable()


def _read(loss: Tensor, names: Mapping[int, str], returned: Sequence[Any]) -> GraphSummary:
    order, wanted = read_graph(loss, names), set(returned)
    ending = read_head(order)
    softmaxes = [o for o in order if o.kind in ("Softmax", "LogSoftmax")]
    reading = GraphSummary(
        ending=ending,
        units=UnitReader(order, ending.operations),
        used={name for operation in order for name in operation.weights if name},
        structure=[_feeders(o, wanted) for o in order if is_layer(o)],
        chains=longest_chains(order, UNROLLED),
        softmaxes=[activation_of(o, weighs=_weighs(o)) for o in softmaxes],
        batch_norms=[found for o in order if (found := _batch_norm(o)) is not None],
        singular=_singular(order),
        data_normalised=any(o.kind in NORMS and not o.inputs for o in order),
        opaque=any("Compiled" in o.kind for o in order),
        strangers=_strangers(order, names),
        dropped=any(is_dropout(o) for o in order),
    )
    for operation in order:
        operation.forget()
    return reading


def _strangers(order: list[Operation], names: Mapping[int, str]) -> list[Tensor]:
    """Leaves of at least two axes that the module does not know, such as layers in a plain list."""
    found: dict[int, Tensor] = {}
    for operation in order:
        if "" in operation.weights:
            for node, _ in operation.node.next_functions:
                for leaf in (node, *(n for n, _ in getattr(node, "next_functions", ()))):
                    variable = getattr(leaf, "variable", None)
                    if isinstance(variable, nn.Parameter) and id(variable) not in names:
                        found[id(variable)] = variable
    return [v for v in found.values() if v.ndim >= 2][:MOST_STRANGERS]


def quick_ending(loss: Tensor) -> tuple[Tensor | None, Tensor | None, Any]:
    """Return outputs and targets of a known loss a few operations below the scalar, and its node.

    Of several losses it is the one that is read at a look: that with the fewest operations above.
    """
    queue, met = [loss.grad_fn], 0
    while queue and met < NEAR:
        node, met = queue.pop(0), met + 1
        if node is None:
            continue
        kind = node.name().rpartition("Backward")[0]
        if kind in LOSSES:
            operation = Operation(kind, node)
            return operation.saved("self"), operation.saved("target"), node
        queue += [source for source, _ in node.next_functions]
    return None, None, None


def call_behind(loss: Any, calls: Mapping[Any, Any]) -> Any:
    """Return the call of the module whose answer the loss of a node takes; None where unknown.

    ``calls`` are known by the nodes whose results they returned.
    """
    queue, seen = [loss], {loss}
    while queue and len(seen) < FAR:
        node = queue.pop(0)
        if node in calls:
            return calls[node]
        sources = {source for source, _ in node.next_functions if source is not None} - seen
        queue += [source for source, _ in node.next_functions if source in sources]
        seen |= sources
    return None


def _feeders(layer: Operation, wanted: set[Any]) -> tuple[str, str, tuple[str, ...]]:
    """Return a layer, its kind, and the linear layers that feed it with nothing between."""
    found: list[str] = []
    if is_linear_layer(layer) and _groups(layer) == 1:
        for source in layer.inputs:
            current: Operation = source
            while _stays_linear(current) and current.node not in wanted:
                current = current.inputs[0]
            if not is_linear_layer(current) or _groups(current) != 1 or current.node in wanted:
                continue
            if not _skips(current):
                found.append(str(current.layer))
    return str(layer.layer), layer.kind, tuple(found)


def _skips(operation: Operation) -> bool:
    """Whether the result is also added to something later on, as around a residual branch."""
    return any(user.kind in ("Add", "Cat") and len(user.inputs) > 1 for user in operation.users)


def _stays_linear(operation: Operation) -> bool:
    if operation.kind in ("NativeBatchNorm", "CudnnBatchNorm", "AvgPool2D"):
        return len(operation.inputs) == 1
    return is_transparent(operation) and len(operation.inputs) == 1


def _weighs(softmax: Operation) -> bool:
    """Whether the result weighs the rows of a matrix, as attention does."""
    users = list(softmax.users)
    for user in users:
        if user.kind == "Bmm":
            return True
        if is_transparent(user) and len(users) < 20:
            users.extend(user.users)
    return False


def _groups(layer: Operation) -> int:
    groups = layer.saved("groups")
    return groups if isinstance(groups, int) else 1


def _batch_norm(operation: Operation) -> tuple[str, int, Tensor] | None:
    """Numbers per channel, and the statistics that ``_distance`` compares."""
    if operation.kind not in ("NativeBatchNorm", "CudnnBatchNorm"):
        return None
    if operation.kind == "NativeBatchNorm" and not operation.saved("training"):
        return None
    shape = operation.shape
    numbers = math.prod(shape[:1] + shape[2:])
    names = ("running_mean", "result1", "running_var", "result2")
    found = [operation.saved(name) for name in names]
    if any(part is None or not part.numel() for part in found):
        return str(operation.layer), numbers, torch.full((4, 1), math.nan)
    return str(operation.layer), numbers, torch.stack([part.float() for part in found])


def _distance(statistics: np.ndarray) -> float:  # (4, C)
    """Distance of running from batch statistics, in deviations or, of a variance, factors e^2."""
    running, mean, variance, inverse = statistics.astype(float)
    off = np.mean(np.abs(running - mean) * inverse)
    ratio = np.mean(np.abs(np.log(np.clip(variance * inverse**2, 1e-9, 1e9)))) / 2
    return float(np.maximum(off, ratio))


def _singular(order: list[Operation]) -> list[tuple[str, str, Tensor]]:
    """Operations whose value or slope may be infinite at some number they were given."""
    found = []
    for operation in order:
        if operation.kind not in SINGULAR:
            continue
        name, words = SINGULAR[operation.kind]
        value = operation.saved(name)
        if isinstance(value, Tensor) and value.is_floating_point() and value.numel() > 0:
            flag = _is_singular(operation, value)
            if flag is not None:
                found.append((str(operation.layer), words, flag))
    return found


def _is_singular(operation: Operation, value: Tensor) -> Tensor | None:
    """Judge by the extremes: nothing as large as the value is made."""
    kind = operation.kind
    if kind in ("Exp", "Rsqrt", "Reciprocal"):
        least, most = value.aminmax()
        return torch.isinf(least) | torch.isinf(most)
    if kind in ("Acos", "Asin", "Atanh"):
        least, most = value.aminmax()
        return (least <= -1) | (most >= 1)
    if kind == "Pow":
        exponent = operation.saved("exponent")
        fractional = isinstance(exponent, int | float) and exponent < 1
        return value.amin() <= 0 if fractional else None
    if kind in ("Log", "Log2", "Log10", "Sqrt", "Norm", "LinalgVectorNorm"):
        return value.amin() <= 0
    return (value == 0).any()
