"""Parameters: norms of gradients, sizes of steps, rows that are equal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from castalia.diagnose.monitor.host_transfer import to_host
from castalia.diagnose.thresholds import limit

__all__ = [
    "COMPARED",
    "all_finite",
    "any_gradient",
    "compared_sizes",
    "equal_rows",
    "gradient_norms",
    "gradient_sample",
    "gradient_sizes",
    "looks_fresh",
    "moved",
    "sample",
    "spectral_radius",
    "step_sample",
    "step_sizes",
    "travelled",
    "update_ratios",
]

SAMPLED = 4096  # numbers of a parameter that are compared before and after a step
MOST_ROWS = 256  # of a matrix that are compared with one another
FEWEST = 100  # numbers of a matrix that looks drawn
FIRST = 16  # numbers of such a row that are compared first
HALF = (torch.float16, torch.bfloat16)
COMPARED = 64  # numbers of a parameter's gradient kept to compare with other steps


def gradient_norms(parameters: Mapping[str, nn.Parameter]) -> dict[str, float | None]:
    """Norm of each gradient; None where there is none."""
    names, norms = gradient_sizes(parameters)
    return {**dict.fromkeys(parameters), **dict(zip(names, norms.tolist(), strict=True))}


def gradient_sizes(parameters: Mapping[str, nn.Parameter]) -> tuple[list[str], Tensor]:
    """Names of the parameters with a gradient, and its norms, which stay on their device."""
    there = {n: _dense(g) for n, p in parameters.items() if (g := p.grad) is not None}
    return list(there), _norms(list(there.values()))


def any_gradient(parameters: Mapping[str, nn.Parameter]) -> bool:
    """Whether any gradient is there and not zero."""
    there = [_dense(p.grad) for p in parameters.values() if p.grad is not None]
    return bool(there) and not bool((_norms(there) == 0).all())


def all_finite(parameters: Sequence[Tensor]) -> list[bool]:
    """Whether each parameter is free of NaN and infinity."""
    return torch.isfinite(_norms([_local(p) for p in parameters], math.inf)).tolist()  # type: ignore[no-any-return]


def sample(parameters: Mapping[str, nn.Parameter], most: int = SAMPLED) -> dict[str, Tensor]:
    """Copy an even sample of each parameter; those of one kind by one kernel."""
    thin = {name: _thin(p, most) for name, p in parameters.items()}
    kinds: dict[Any, list[str]] = {}
    for name, value in thin.items():
        kinds.setdefault((value.device, value.dtype), []).append(name)
    found: dict[str, Tensor] = {}
    for names in kinds.values():
        copy = torch.cat([thin[name] for name in names])
        parts = copy.split([thin[name].numel() for name in names])
        found.update(zip(names, parts, strict=True))
    return found


def moved(before: Tensor, parameter: nn.Parameter, most: int) -> bool:
    """Whether a sampled parameter has changed."""
    now = _thin(parameter, most)
    return now.shape != before.shape or not torch.equal(now.to(before), before)


def update_ratios(
    before: Mapping[str, Tensor], parameters: Mapping[str, nn.Parameter]
) -> tuple[dict[str, float], dict[str, float]]:
    """Size of the step over the size of the parameter, and root mean square of the parameter."""
    counts, sizes = step_sizes(before, parameters)
    return compared_sizes(counts, sizes.cpu().numpy())


def step_sizes(
    before: Mapping[str, Tensor], parameters: Mapping[str, nn.Parameter]
) -> tuple[dict[str, int], Tensor]:
    """Numbers compared of each parameter; norms of its step and of itself, (2, n), on a device."""
    new = sample({n: parameters[n] for n in before if n in parameters})
    names = [n for n in new if new[n].shape == before[n].shape and new[n].numel()]
    old = [before[n] for n in names]
    steps = list(torch._foreach_sub([new[n] for n in names], old)) if names else []
    return {n: before[n].numel() for n in names}, _norms([*steps, *old]).reshape(2, len(names))


def compared_sizes(
    counts: Mapping[str, int], sizes: np.ndarray
) -> tuple[dict[str, float], dict[str, float]]:
    """Return what ``update_ratios`` does, of what ``step_sizes`` found."""
    names, count = list(counts), np.array(list(counts.values()))
    step, size = sizes.astype(float)
    with np.errstate(invalid="ignore"):  # of weights that have overflowed
        ratio = step / np.maximum(size, 1e-12)
    # A parameter at zero has no size of its own: a bias that only just begins is not a large step.
    counted = {n: float(r) for n, r, s in zip(names, ratio, size, strict=True) if s > 0 or r == 0}
    return counted, dict(zip(names, (size / np.sqrt(count)).tolist(), strict=True))


def gradient_sample(parameters: Mapping[str, nn.Parameter]) -> np.ndarray:
    """Return some numbers of every gradient, one after another; they may still be on their way."""
    there = [_thin(_dense(g), COMPARED) for p in parameters.values() if (g := p.grad) is not None]
    if not there:
        return np.zeros(0, np.float32)
    return to_host(torch.cat(there))


def step_sample(
    before: Mapping[str, Tensor], parameters: Mapping[str, nn.Parameter]
) -> np.ndarray | None:
    """Return what a step added to the numbers of ``before``, each times how many it stands for.

    The numbers are those of ``gradient_sample``: the product of both estimates that of the whole.
    """
    if not before or any(name not in parameters for name in before):
        return None
    now = sample({name: parameters[name] for name in before}, COMPARED)
    if any(now[name].shape != before[name].shape for name in before):
        return None
    steps = [
        (now[n] - old).float() * (parameters[n].numel() / max(old.numel(), 1))
        for n, old in before.items()
    ]
    device = steps[0].device
    return to_host(torch.cat([step.to(device) for step in steps]))


def travelled(before: Tensor, parameter: nn.Parameter, most: int) -> float | None:
    """Return how far a sampled parameter is from its start, over its size there."""
    now, size = _thin(parameter, most), float(_norm(before, 2.0))
    if now.shape != before.shape or not size > 0:
        return None
    return float(_norm(now.to(before) - before, 2.0)) / size


def equal_rows(weight: Tensor) -> float:
    """Share of the rows of a matrix that equal another of its rows.

    >>> equal_rows(torch.tensor([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    0.5
    """
    rows = _local(weight)[:MOST_ROWS].flatten(1)[:, :SAMPLED].float()
    largest = float(_norm(rows, math.inf)) if rows.numel() else math.nan
    if not math.isfinite(largest):
        return 0.0
    tolerance = 1e-6 * largest + 1e-30
    # Rows whose first numbers differ are not equal, and of most matrices no further one is needed.
    found = _repeated(rows[:, :FIRST], tolerance)
    return _repeated(rows, tolerance) if found else 0.0


def _repeated(rows: Tensor, tolerance: float) -> float:
    """Share of the rows that are there more than once, but for rounding."""
    rounded = (rows / tolerance / 8).round() if tolerance > limit("rounding.smallest") else rows
    _, which, counts = torch.unique(rounded.cpu(), dim=0, return_inverse=True, return_counts=True)
    return float((counts[which] > 1).float().mean())


def looks_fresh(weight: Tensor) -> bool:
    """Whether a matrix is as it was drawn: independent numbers, all alike, even or normal.

    Learning makes some directions of a matrix longer than chance ever does (Marchenko and Pastur,
    1967), and some of its rows or columns longer than others. A vector, such as the gain of a norm,
    begins with equal numbers.

    >>> looks_fresh(nn.Linear(30, 40).weight), looks_fresh(torch.randn(40, 30))
    (True, True)
    >>> looks_fresh(torch.randn(40, 30) + torch.randn(40, 1))
    False
    """
    weight = _local(weight)
    if weight.ndim == 1:
        return bool((weight == weight[:1]).all())
    if weight.ndim < 2 or weight.numel() < FEWEST or not weight.is_floating_point():
        return False
    matrix = weight.flatten(1)[:MOST_ROWS, :SAMPLED].double()
    size = matrix.square().mean()
    if min(matrix.shape) < 2 or not (size.isfinite() and size > 0):
        return False
    return _independent((matrix / size.sqrt()).cpu())


def _independent(matrix: Tensor) -> bool:
    """Whether a matrix of mean square 1 has the tails, lengths and directions of chance."""
    fourth = float(matrix.pow(4).mean())
    rows, columns = matrix.shape
    if not limit("fresh.even") < fourth < limit("fresh.normal"):
        return False
    for across, along in ((columns, 1), (rows, 0)):
        spread = float(matrix.square().mean(dim=along).var()) * across / max(fourth - 1, 1e-9)
        count = matrix.shape[1 - along]
        if spread > 1 + limit("fresh.errors") * math.sqrt(2 / max(count - 1, 1)):
            return False
    edge = math.sqrt(rows) + math.sqrt(columns)
    return float(torch.linalg.matrix_norm(matrix, 2)) < limit("fresh.edge") * edge


def spectral_radius(weight: Tensor) -> float | None:
    """Spectral radius of a square matrix, which may be applied again and again; None for others.

    >>> spectral_radius(torch.tensor([[2.0, 1.0], [0.0, 0.5]]))
    2.0
    """
    if weight.ndim != 2 or not 2 <= weight.shape[0] == weight.shape[1] <= 512:
        return None
    if not weight.is_floating_point() or weight.is_meta or weight.is_sparse:
        return None
    values = weight.detach().double().cpu()
    return float(torch.linalg.eigvals(values).abs().max()) if values.isfinite().all() else None


def _norms(tensors: list[Tensor], order: float = 2.0) -> Tensor:
    """Norm of each, without a copy of any; a device is not waited for."""
    if not tensors:
        return torch.zeros(0)
    first = tensors[0]
    alike = all(t.dtype == first.dtype and t.device == first.device for t in tensors)
    if alike and first.dtype not in HALF and all(t.numel() for t in tensors):
        return torch.stack(torch._foreach_norm(tensors, order)).float()
    return torch.stack([_norm(t, order).to(first.device) for t in tensors])


def _norm(value: Tensor, order: float) -> Tensor:
    if not value.numel():
        return torch.zeros(())
    kind = torch.float32 if value.dtype in HALF else None  # half precision overflows
    return torch.linalg.vector_norm(value, order, dtype=kind).float()


def _dense(gradient: Tensor) -> Tensor:
    if gradient.is_sparse:
        gradient = gradient.coalesce().values()
    return _local(gradient)


def _local(value: Tensor) -> Tensor:
    """Return this process's part of a distributed tensor, and a complex one as pairs of reals."""
    value = value.detach()
    if type(value) is not Tensor and hasattr(value, "to_local"):
        value = value.to_local()
    return torch.view_as_real(value) if value.is_complex() else value


def _thin(value: Tensor, most: int) -> Tensor:
    """Take at most so many numbers in a row, evenly, without copying the others."""
    value = _local(value)
    if value.numel() <= most:
        return value.reshape(-1)
    flat = value.reshape(-1) if value.is_contiguous() else _by_rows(value, most)
    return flat[:: -(-flat.numel() // most)]


def _by_rows(value: Tensor, most: int) -> Tensor:
    """Flatten a tensor that is not contiguous, and so is copied, of which rows are left out."""
    if value.ndim < 2:
        return value.flatten()
    rows = max(1, value.shape[0] * most // value.numel())
    return value[:: -(-value.shape[0] // rows)].flatten()
