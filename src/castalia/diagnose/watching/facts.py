"""Small questions about modules, optimizers and tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from castalia.diagnose.record import Layer, OptimizerFacts, Record, Weight
from castalia.diagnose.watching.weights import equal_rows, looks_fresh, moved

__all__: list[str] = []

STARTED = 64  # numbers of each parameter kept from the start
DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
BATCH_NORMS = (nn.modules.batchnorm._BatchNorm,)


def listed(optimizer: Any) -> list[Any]:
    """Return optimizers as a list."""
    if optimizer is None:
        return []
    if hasattr(optimizer, "param_groups"):
        return [optimizer]
    return [o for o in optimizer if hasattr(o, "param_groups")] if _iterable(optimizer) else []


def _iterable(value: Any) -> bool:
    return isinstance(value, Iterable)


def named_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters by name, without the prefixes of wrappers."""
    found = {}
    for name, parameter in module.named_parameters():
        if not isinstance(parameter, nn.parameter.UninitializedParameter):
            found[plain(name)] = parameter
    return found


def plain(name: str) -> str:
    """Drop what ``torch.compile`` and distributed wrappers put before a name.

    >>> plain("_orig_mod.module.fc.weight")
    'fc.weight'
    """
    parts = [p for p in name.split(".") if p not in ("_orig_mod", "_fsdp_wrapped_module")]
    return ".".join(parts[1:] if parts[:1] == ["module"] and len(parts) > 1 else parts)


def describe(
    record: Record, module: nn.Module, parameters: Mapping[str, nn.Parameter], optimizers: list[Any]
) -> None:
    """Write down what the training is made of."""
    owners = {
        plain(f"{name}.{own}" if name else own): type(part).__name__
        for name, part in module.named_modules()
        for own, _ in part.named_parameters(recurse=False)
    }
    held = {id(p) for o in optimizers for g in o.param_groups for p in g["params"]}
    record.weights = [
        Weight(
            name,
            tuple(p.shape),
            p.requires_grad,
            not optimizers or id(p) in held,
            owners.get(name, ""),
            equal_rows(p) if p.ndim >= 2 and p.shape[0] > 1 else None,
            radius=_radius(name, p),
        )
        for name, p in parameters.items()
    ]
    record.layers = [
        Layer(plain(name), type(part).__name__, _settings(part))
        for name, part in module.named_modules()
        if not any(True for _ in part.children())
    ]
    record.optimizers = [_optimizer(o, None) for o in optimizers]
    if not parameters:
        record.notes.append("The module has no parameters: there is nothing to train.")
    if not optimizers:
        record.notes.append("No optimizer was given: steps are counted by backward passes.")


def _radius(name: str, parameter: Tensor) -> float | None:
    """Spectral radius of a matrix that may be applied again and again."""
    square = parameter.ndim == 2 and 2 <= parameter.shape[0] == parameter.shape[1] <= 512
    if not square or "norm" in name or not parameter.is_floating_point():
        return None
    values = torch.linalg.eigvals(parameter.detach().double().cpu())
    return float(values.abs().max())


def _settings(part: nn.Module) -> dict[str, Any]:
    if isinstance(part, DROPOUTS):
        return {"p": float(part.p)}
    if isinstance(part, BATCH_NORMS):
        return {"momentum": part.momentum, "tracked": part.track_running_stats}
    return {}


def _optimizer(optimizer: Any, earlier: OptimizerFacts | None) -> OptimizerFacts:
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
        first=lr if earlier is None else earlier.first,
    )


def conclude(
    record: Record,
    parameters: Mapping[str, nn.Parameter],
    optimizers: list[Any],
    start: Mapping[str, Tensor],
) -> None:
    """Measure the end state."""
    record.optimizers = [
        _optimizer(o, record.optimizers[i] if i < len(record.optimizers) else None)
        for i, o in enumerate(optimizers)
    ]
    for weight in record.weights:
        parameter = parameters[weight.name]
        weight.trainable = weight.trainable or parameter.requires_grad
        weight.moved = moved(start[weight.name], parameter, STARTED)
        weight.fresh = looks_fresh(parameter)
        if weight.rows_equal_at_start:
            weight.rows_equal_at_end = equal_rows(parameter)
    broken = [n for n, p in parameters.items() if not bool(torch.isfinite(p.detach()).all())]
    record.final["broken_parameters"] = float(len(broken))


def held_by(optimizer: Any, parameters: Mapping[str, nn.Parameter]) -> dict[str, nn.Parameter]:
    """Parameters of the module that an optimizer holds."""
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return {name: p for name, p in parameters.items() if id(p) in held}


def rate(optimizer: Any) -> float:
    """Learning rate of an optimizer's first group."""
    return float(optimizer.param_groups[0].get("lr", math.nan))


def first_tensor(*values: Any) -> Tensor | None:
    """Return the first tensor in nested arguments."""
    for value in values:
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Mapping):
            found = first_tensor(*value.values())
        elif isinstance(value, tuple | list):
            found = first_tensor(*value)
        else:
            continue
        if found is not None:
            return found
    return None


def tensor(value: Any) -> Tensor | None:
    """Return a tensor of what the user told, or None."""
    if value is None:
        return None
    if isinstance(value, tuple | list | Mapping):
        return first_tensor(value)
    return value.detach() if isinstance(value, Tensor) else torch.as_tensor(value)


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


def spread(outputs: Any) -> float:
    """Spread of the outputs over the rows, relative to their size."""
    if not isinstance(outputs, Tensor) or not outputs.is_floating_point() or outputs.ndim < 1:
        return math.nan
    if outputs.shape[0] < 2:
        return math.nan
    flat = outputs.detach().flatten(1) if outputs.ndim > 1 else outputs.detach().reshape(-1, 1)
    return float(flat.float()[:, :1024].std(dim=0).mean())


def not_a_scalar(loss: Any) -> str:
    """Say that a loss has no graph or is not one number."""
    shape = tuple(getattr(loss, "shape", ()))
    if shape:
        return f"backward() was called on a tensor of shape {shape}: a loss is one number."
    return "backward() was called on a number without a graph."


def note(record: Record, words: str) -> None:
    """Add a note once."""
    if words not in record.notes:
        record.notes.append(words)
