"""The table of a network's layers, from one pass of a row without data."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from castalia.errors import ShapeMismatch
from castalia.nn.architecture.forward_trace import Visit, Watch
from castalia.nn.architecture.input_reach import TooNarrow
from castalia.nn.architecture.layer_kinds import kind
from castalia.nn.architecture.summary_records import Layer, Summary
from castalia.nn.network_modes import evaluating

__all__ = ["summary"]

MARGIN = 1024  # positions thought beyond each end of an axis; more are taken when needed
WIDEST = MARGIN * 4**4


def summary(
    module: nn.Module,
    input_shape: Sequence[int],
    *,
    channels: str = "first",
    dtype: torch.dtype | None = None,
) -> Summary:
    """Tabulate a network: output size, weights, biases, FLOPs and receptive field of each layer.

    One row of shapes without numbers goes through the network in evaluation mode, so a large one
    costs neither time nor memory. A layer is a module without children, or one with weights or
    products of its own. FLOPs count two for each multiply-add of products and convolutions. The
    receptive field is followed through every operation, so branches, skips, concatenation and
    upsampling are right; it is that of an endless image, and can be larger than the input.

    Parameters
    ----------
    module
        The network; left as it was.
    input_shape
        Of one row, without the batch: (C, H, W), (C, T), (inputs,).
    channels
        Which axis of the input is not positions: ``"first"``, as for convolutions, or ``"last"``,
        as for sequences (T, D).
    dtype
        Number format of the input; that of the weights by default. ``torch.long`` for tokens, which
        have no channels: then every axis is positions.

    Examples
    --------
    >>> net = nn.Sequential(nn.Conv2d(1, 5, 3, padding=1), nn.MaxPool2d(2), nn.Flatten())
    >>> table = summary(net, (1, 192, 256))
    >>> table["1"].output, table["1"].field, table.parameters
    ((96, 128, 5), (4, 4), 50)
    >>> print(summary(nn.Conv2d(1, 5, 3, padding=1), (1, 192, 256)))
    name  layer                      output  weights  biases      FLOPs  field
    ----  ----------------------  ---------  -------  ------  ---------  -----
          input                   192x256x1        0       0          0    1x1
          conv 3x3, 1->5, s1, p1  192x256x5       45       5  4,423,680    3x3
    ----  ----------------------  ---------  -------  ------  ---------  -----
          total                   192x256x5       45       5  4,423,680    3x3
    """
    axes = list(range(1, len(input_shape) + 1))
    if dtype is None or dtype.is_floating_point:
        axes = axes[1:] if channels == "first" else axes[:-1]
    visits = _watched(module, tuple(input_shape), axes, dtype).visits
    entry = Layer("", "input", _ordered((0, *input_shape), axes), field=(1,) * len(axes) or None)
    layers = (entry, *_layers(module, visits, channels))
    return Summary(layers, _size(visits[-1], channels), _field(visits[-1]))


def _watched(
    module: nn.Module, shape: tuple[int, ...], axes: list[int], dtype: torch.dtype | None
) -> Watch:
    """Run the network on the meta device, or where that fails on a row of zeros."""
    margin = MARGIN
    while True:
        try:
            try:
                return _run(module, shape, axes, dtype, margin, meta=True)
            except (NotImplementedError, RuntimeError):  # an operation that needs numbers
                return _run(module, shape, axes, dtype, margin, meta=False)
        except TooNarrow:
            margin *= 4
            axes = axes if margin <= WIDEST else []
        except (RuntimeError, ValueError, IndexError) as error:
            raise ShapeMismatch(
                f"summary: `input_shape` must be the shape of one row that "
                f"{type(module).__name__} takes; got {shape}, and: "
                f"{str(error).splitlines()[0]}"
            ) from error


def _run(
    module: nn.Module,
    shape: tuple[int, ...],
    axes: list[int],
    dtype: torch.dtype | None,
    margin: int,
    *,
    meta: bool,
) -> Watch:
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    floats = [t for t in tensors.values() if t.is_floating_point()]
    device = torch.device("meta") if meta else (floats[0].device if floats else "cpu")
    if dtype is None:
        dtype = floats[0].dtype if floats else torch.get_default_dtype()
    x = torch.zeros(1, *shape, dtype=dtype, device=device)
    watch = Watch(x, axes, margin)
    with torch.no_grad(), evaluating(module), watch.hooks(module):
        if meta:
            shapes = {name: tensor.to("meta") for name, tensor in tensors.items()}
            with torch.device("meta"), watch:
                torch.func.functional_call(module, shapes, (x,))
        else:
            with watch:
                module(x)
    _check(watch.visits)
    return watch


def _check(visits: list[Visit]) -> None:
    """Refuse reaches that ran out of their continuation."""
    for visit in visits:
        _field(visit)


def _field(visit: Visit) -> tuple[int, ...] | None:
    if not visit.reaches:
        return None
    return tuple(
        reach.width(1 if reach.axis is None else visit.shape[reach.axis]) for reach in visit.reaches
    )


def _layers(module: nn.Module, visits: list[Visit], channels: str) -> list[Layer]:
    """Turn the visits that are layers into rows, and give each parameter to one of them."""
    shown = [visit for visit in visits if _is_layer(visit)]
    counts = _counts(module, {visit.name for visit in shown})
    rows = []
    for visit in shown:
        weights, biases = counts.pop(visit.name, (0, 0))
        words = kind(visit.module)
        size = _size(visit, channels)
        rows.append(Layer(visit.name, words, size, weights, biases, visit.flops, _field(visit)))
    for weights, biases in counts.values():  # of modules that were never called
        rows.append(Layer("", "elsewhere", (), weights, biases))
    return rows


def _is_layer(visit: Visit) -> bool:
    own = any(True for _ in visit.module.parameters(recurse=False))
    leaf = not any(True for _ in visit.module.children())
    return own or leaf or visit.flops > 0


def _counts(module: nn.Module, names: set[str]) -> dict[str | None, tuple[int, int]]:
    """Return weights and biases by the innermost layer that holds them; None has the rest."""
    counts: dict[str | None, tuple[int, int]] = {}
    for path, parameter in module.named_parameters():
        owner, _, last = path.rpartition(".")
        while owner not in names and owner:
            owner = owner.rpartition(".")[0]
        key = owner if owner in names else None
        weights, biases = counts.get(key, (0, 0))
        bias = "bias" in last
        counts[key] = (weights + parameter.numel() * (not bias), biases + parameter.numel() * bias)
    return counts


def _size(visit: Visit, channels: str) -> tuple[int, ...]:
    """Return the output's size; where its positions are not known, channels are where they were."""
    axes = [reach.axis for reach in visit.reaches or () if reach.axis is not None]
    last = list(range(2 if channels == "first" else 1, len(visit.shape)))
    return _ordered(visit.shape, axes or last)


def _ordered(shape: Sequence[int], positions: Sequence[int]) -> tuple[int, ...]:
    """Return a shape without its batch, positions before channels."""
    rest = [axis for axis in range(1, len(shape)) if axis not in positions]
    return tuple(shape[axis] for axis in (*dict.fromkeys(positions), *rest))
