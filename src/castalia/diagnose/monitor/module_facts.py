"""Small questions about modules, optimizers and tensors."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from castalia.diagnose.monitor.watched_parameters import plain
from castalia.diagnose.record import Layer, OptimizerFacts, Record

__all__ = [
    "are_asides",
    "first_tensor",
    "layers_of",
    "listed",
    "needs_gradient",
    "not_a_loss",
    "note",
    "number",
    "optimizers_of",
    "rate",
    "rows",
    "spread",
    "tensor",
    "tensors",
]

ASIDES = 3  # calls before one step that may be those of an agent
DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
BATCH_NORMS = (nn.modules.batchnorm._BatchNorm,)


def listed(optimizer: Any) -> list[Any]:
    """Return optimizers as a list."""
    if optimizer is None:
        return []
    if hasattr(optimizer, "param_groups"):
        return [optimizer]
    several = optimizer.values() if isinstance(optimizer, Mapping) else optimizer
    return [o for o in several if hasattr(o, "param_groups")] if _iterable(several) else []


def _iterable(value: Any) -> bool:
    return isinstance(value, Iterable)


def layers_of(module: nn.Module) -> list[Layer]:
    """Modules without children, in the order they were registered."""
    return [
        Layer(plain(name), type(part).__name__, _settings(part))
        for name, part in module.named_modules()
        if not any(True for _ in part.children())
    ]


def _settings(part: nn.Module) -> dict[str, Any]:
    if isinstance(part, DROPOUTS):
        return {"p": float(part.p)}
    if isinstance(part, BATCH_NORMS):
        return {"momentum": part.momentum, "tracked": part.track_running_stats}
    return {}


def optimizers_of(
    optimizers: list[Any], earlier: list[OptimizerFacts] | None = None
) -> list[OptimizerFacts]:
    """Describe the optimizers as they are now; their first rate is kept from earlier."""
    facts = [_optimizer(o) for o in optimizers]
    if earlier and len(earlier) == len(facts):
        pairs = zip(facts, earlier, strict=True)
        facts = [dataclasses.replace(now, first=before.first) for now, before in pairs]
    return facts


def _optimizer(optimizer: Any) -> OptimizerFacts:
    groups = optimizer.param_groups
    first = groups[0]
    lr = float(first.get("lr", math.nan))
    momentum = float(first.get("momentum", 0.0) or 0.0)
    if "betas" in first:
        momentum = float(first["betas"][0])
    return OptimizerFacts(
        kind=type(optimizer).__name__,
        lr=lr,
        momentum=momentum,
        weight_decay=float(first.get("weight_decay", 0.0) or 0.0),
        most=max(float(g.get("lr", 0.0)) for g in groups),
        first=lr,
    )


def has_dropout(module: nn.Module) -> bool:
    """Whether dropout is left to modules, which know their mode."""
    within = (nn.RNNBase, nn.MultiheadAttention)
    return any(
        isinstance(part, DROPOUTS) or (isinstance(part, within) and part.dropout > 0)
        for part in module.modules()
    )


def rate(optimizer: Any) -> float:
    """Learning rate of an optimizer's first group."""
    return float(optimizer.param_groups[0].get("lr", math.nan))


def place(value: Any) -> int:
    """Return where the numbers of a tensor lie; 0 where they have no single place.

    >>> x = torch.zeros(4, 2)
    >>> place(x.detach().view(2, 4)) == place(x), place(None)
    (True, 0)
    """
    if not isinstance(value, Tensor) or value.layout != torch.strided:
        return 0
    return value.data_ptr() if type(value) in (Tensor, nn.Parameter) else 0


def first_tensor(*values: Any) -> Tensor | None:
    """Return the first tensor in nested arguments: tuples, lists, mappings, dataclasses.

    >>> first_tensor({"mask": None, "x": [torch.zeros(2)]})
    tensor([0., 0.])
    """
    for value in values:
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Mapping):
            found = first_tensor(*value.values())
        elif isinstance(value, tuple | list):
            found = first_tensor(*value)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            found = first_tensor(*(getattr(value, f.name) for f in dataclasses.fields(value)))
        else:
            continue
        if found is not None:
            return found
    return None


def tensors(value: Any) -> list[Tensor]:
    """Return every tensor in nested results, in order.

    >>> len(tensors({"mask": None, "x": [torch.zeros(2), (torch.zeros(1),)]}))
    2
    """
    if isinstance(value, Tensor):
        return [value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, f.name) for f in dataclasses.fields(value)]
    parts = value.values() if isinstance(value, Mapping) else value
    return [t for part in parts for t in tensors(part)] if _nests(value) else []


def _nests(value: Any) -> bool:
    return isinstance(value, Mapping | tuple | list)


def tensor(value: Any) -> Tensor | None:
    """Return a tensor of what the user logged, or None."""
    if value is None or isinstance(value, Tensor):
        return None if value is None else value.detach()
    found = first_tensor(value)
    return torch.as_tensor(value) if found is None else found.detach()


def number(value: Any) -> float | None:
    """Return a float of whatever the user calls a number."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        return float(value.detach().float().mean())
    return float(value)


def needs_gradient(*values: Any) -> bool:
    """Whether any of these belongs to a training step."""
    return any(isinstance(v, Tensor) and v.requires_grad for v in values)


def rows(*candidates: Any) -> int:
    """Rows of the first tensor there is."""
    found = next((c for c in candidates if isinstance(c, Tensor) and c.ndim), None)
    return int(found.shape[0]) if found is not None else 0


def are_asides(sizes: tuple[int, ...]) -> bool:
    """Whether most calls before a step were of smaller inputs than the last one.

    >>> are_asides((4, 4, 4, 128)), are_asides((128, 128))
    (True, False)
    """
    return len(sizes) >= ASIDES and sorted(sizes)[len(sizes) // 2] < sizes[-1] / 2


def spread(outputs: Any) -> Tensor:
    """Spread of the outputs over the rows, relative to their size."""
    many = isinstance(outputs, Tensor) and outputs.is_floating_point() and outputs.ndim >= 1
    if not many or outputs.shape[0] < 2 or not outputs.numel():
        return torch.tensor(math.nan)
    some = outputs.detach()[:1024]
    return some.reshape(len(some), -1)[:, :1024].float().std(dim=0).mean()


def not_a_loss(tensors: Iterable[Tensor]) -> str:
    """Say that backward was called on something that is no loss."""
    shape = next((tuple(t.shape) for t in tensors if t.numel() != 1), None)
    if shape is not None:
        return f"backward() was called on a tensor of shape {shape}: a loss is one number."
    return "backward() was called on a number without a graph."


def note(record: Record, words: str) -> None:
    """Add a note once."""
    if words not in record.notes:
        record.notes.append(words)
