"""The graph that autograd keeps below a loss.

Before its backward pass, a loss still knows how it was computed: every operation, the numbers it
saved, and the parameters at the leaves. That is what was really computed, whoever wrote the code
and however: modules, functions or plain arithmetic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from torch import Tensor

__all__ = [
    "Operation",
    "is_dropout",
    "is_layer",
    "is_linear_layer",
    "is_transparent",
    "longest_chains",
    "reaches",
    "read_graph",
]

MOST_OPERATIONS = 20_000

# What only moves, copies, casts or masks numbers.
TRANSPARENT = frozenset(
    {
        "View",
        "UnsafeView",
        "Reshape",
        "ReshapeAlias",
        "T",
        "Transpose",
        "Permute",
        "Squeeze",
        "Unsqueeze",
        "Expand",
        "Clone",
        "ToCopy",
        "Slice",
        "Select",
        "Alias",
        "AsStrided",
        "Contiguous",
        "NativeDropout",
        "Index",
        "IndexSelect",
        "Split",
        "SplitWithSizes",
        "Unbind",
        "Narrow",
        "Cat",
        "Stack",
        "Flip",
        "Roll",
        "ConstantPadNd",
        "Mt",
        "Diagonal",
        "PackPaddedSequence",
        "Gather",
        "FusedDropout",
        "Chunk",
        "UnsafeSplit",
        "Movedim",
        "Repeat",
        "Flatten",
    }
)
PRODUCTS = frozenset(
    {
        "Addmm",
        "Mm",
        "Linear",
        "MkldnnLinear",
        "Convolution",
        "ConvolutionOverrideable",
        "MkldnnConvolution",
        "CudnnConvolution",
        "SlowConv2D",
        "Baddbmm",
        "Bmm",
        "Addbmm",
        "Mv",
        "Addmv",
        "Dot",
        "Bilinear",
    }
)
LAYERS = frozenset(
    {
        "Embedding",
        "EmbeddingBag",
        "MkldnnRnnLayer",
        "CudnnRnn",
        "ThnnFusedLstmCell",
        "ThnnFusedGruCell",
        "NativeBatchNorm",
        "CudnnBatchNorm",
        "MiopenBatchNorm",
        "NativeLayerNorm",
        "FusedRmsNorm",
        "NativeGroupNorm",
        "PreluKernel",
    }
)


class Operation:
    """One operation of the graph.

    Attributes
    ----------
    kind
        Its name without "Backward" and a number: "Addmm", "Relu" ….
    node
        Autograd's node.
    inputs
        Operations whose results it takes, parameters left out.
    weights
        Names of the parameters it takes directly, through a transpose, a view or a cast.
    users
        Operations that take its result.
    layer
        Name of the nearest layer with weights at or below it.
    """

    __slots__ = ("inputs", "kind", "layer", "node", "users", "weights")

    def __init__(self, kind: str, node: Any) -> None:
        self.kind, self.node = kind, node
        self.inputs: list[Operation] = []
        self.weights: list[str] = []
        self.users: list[Operation] = []
        self.layer: str | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the (first) result."""
        return _shape(self.node)

    def saved(self, name: str) -> Any:
        """Return a saved value, or None where it is gone or reading it would disturb the training.

        Tensors packed by somebody's hooks (checkpointing, offloading) are left alone: they can be
        unpacked only once.
        """
        raw = getattr(self.node, f"_raw_saved_{name}", None)
        if raw is not None and getattr(raw, "unpack_hook", None) is not None:
            return None
        try:
            value = getattr(self.node, f"_saved_{name}", None)
        except RuntimeError:  # freed, or changed in place since
            return None
        return value.detach() if isinstance(value, Tensor) else value

    def forget(self) -> None:
        """Let go of its neighbours: in a circle with them it would keep the graph alive."""
        self.inputs, self.users = [], []

    def __repr__(self) -> str:
        """Return kind, shape and layer."""
        return f"{self.kind}{list(self.shape)}@{self.layer}"


def read_graph(loss: Tensor, names: Mapping[int, str]) -> list[Operation]:
    """Return the operations below a loss, inputs before their users; the last one gave the loss."""
    made: dict[Any, Operation] = {}
    order: list[Operation] = []
    leaves: dict[Any, str] = {}
    below: list[list[Any]] = []  # of each operation, in the order of `order`
    stack: list[Any] = [loss.grad_fn]  # nodes, and (operation, nodes) after all below them
    while stack and len(made) < MOST_OPERATIONS:
        node = stack.pop()
        if type(node) is tuple:
            order.append(node[0])
            below.append(node[1])
            continue
        if node is None or node in made or node in leaves:
            continue
        kind = _kind_of(node)
        if kind is None:
            leaves[node] = names.get(id(_variable(node)), "")
            continue
        operation = made[node] = Operation(kind, node)
        sources = [source for source, _ in node.next_functions]
        stack.append((operation, sources))
        stack += sources
    for operation, sources in zip(order, below, strict=True):
        _connect(operation, sources, made, leaves)
    return order


def longest_chains(order: list[Operation], least: int) -> dict[str, int]:
    """Of every weight that so many operations take: how many of them feed each other, one by one.

    As many as there are steps in a recurrence; one where a layer is called row by row.
    """
    taking = (operation for operation in order if operation.kind not in TRANSPARENT)
    calls = Counter(name for operation in taking for name in set(operation.weights))
    places = {n: i for i, n in enumerate(name for name, c in calls.items() if name and c >= least)}
    # Of each operation: the longest chain of every weight that ends there, one list for many.
    none, ends = [0] * len(places), dict[Operation, list[int]]()
    for operation in order if places else ():
        below = [ends.get(source, none) for source in operation.inputs]
        found = below[0] if below else none
        if any(one is not found for one in below):
            found = list(map(max, *below))
        if own := [places[name] for name in operation.weights if name in places]:
            found = [n + (i in own) for i, n in enumerate(found)]
        ends[operation] = found
    longest = list(map(max, zip(*ends.values(), strict=True)))
    return dict(zip(places, longest, strict=True))


def reaches(loss: Tensor, names: Mapping[int, str]) -> bool:
    """Whether a loss depends on any of these parameters, or may, below a checkpoint."""
    seen: set[Any] = set()
    stack = [loss.grad_fn]
    while stack and len(seen) < MOST_OPERATIONS:
        node = stack.pop()
        if node is None or node in seen:
            continue
        if node.name().endswith("AccumulateGrad"):
            if id(_variable(node)) in names:
                return True
            continue
        if "Checkpoint" in node.name():
            return True
        seen.add(node)
        stack.extend(below for below, _ in node.next_functions)
    return False


def _connect(
    operation: Operation, below: list[Any], made: dict[Any, Operation], leaves: dict[Any, str]
) -> None:
    for node in below:
        if node in leaves:
            operation.weights.append(leaves[node])
        elif node in made:
            source = made[node]
            if source.weights and not source.inputs and source.kind in TRANSPARENT:
                operation.weights.extend(source.weights)  # the transpose of a weight matrix
            else:
                operation.inputs.append(source)
                source.users.append(operation)
    named = [name for name in operation.weights if name] if operation.weights else ()
    if named and operation.kind not in TRANSPARENT:
        operation.layer = named[0].rpartition(".")[0] or named[0]
        weight = next((name for name in named if name.endswith("weight")), None)
        if weight:
            operation.layer = weight.rpartition(".")[0] or weight
    else:
        for source in operation.inputs:
            if source.layer:
                operation.layer = source.layer
                break


def is_linear_layer(operation: Operation) -> bool:
    """Whether it is a product with a weight matrix or kernel."""
    return operation.kind in PRODUCTS and bool(operation.weights)


def is_layer(operation: Operation) -> bool:
    """Whether it is a layer with weights of its own."""
    return is_linear_layer(operation) or (operation.kind in LAYERS and bool(operation.weights))


def is_transparent(operation: Operation) -> bool:
    """Whether it leaves numbers as they are, up to their place, format or a dropout mask."""
    if operation.kind in TRANSPARENT:
        return True
    if operation.kind == "Add":  # of a bias
        return len(operation.inputs) == 1 and bool(operation.weights)
    return operation.kind in ("Mul", "Div") and len(operation.inputs) == 1 and not operation.weights


def is_dropout(operation: Operation) -> bool:
    """Whether an operation drops numbers and scales up what it keeps."""
    if operation.kind in ("NativeDropout", "FusedDropout"):
        return True
    if operation.kind != "Mul" or len(operation.inputs) != 1 or operation.weights:
        return False
    mask = operation.saved("other")
    if not isinstance(mask, Tensor) or mask.shape != operation.shape or mask.ndim < 2:
        return False
    values = mask.flatten()[:512].unique()
    return values.numel() == 2 and float(values[0]) == 0.0 and float(values[1]) > 1.0


def _variable(leaf: Any) -> Tensor:
    """Return the tensor that a leaf of the graph accumulates gradients for."""
    return leaf.variable  # type: ignore[no-any-return]


_kinds: dict[type, str | None] = {}  # of torch's own nodes, which have a class each


def _kind_of(node: Any) -> str | None:
    """Return what a node computed; None of a leaf. Large graphs have few classes of nodes."""
    found = type(node)
    if found in _kinds:
        return _kinds[found]
    name = node.name()
    kind = None if name.endswith("AccumulateGrad") else _kind(name)
    if name.rpartition(":")[2] == found.__name__ and found.__module__ == "builtins":
        _kinds[found] = kind  # else one class stands for many, or is the user's and may go
    return kind


def _kind(name: str) -> str:
    """Return the name of what was computed; of a derivative taken twice, that of the derivative.

    >>> _kind("TanhBackward0"), _kind("TanhBackwardBackward0")
    ('Tanh', 'TanhBackward')
    """
    return name.rpartition("Backward")[0]


def _shape(node: Any) -> tuple[int, ...]:
    try:
        return tuple(node._input_metadata[0].shape)
    except (AttributeError, IndexError, RuntimeError):
        return ()
