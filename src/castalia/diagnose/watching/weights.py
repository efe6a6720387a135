"""Parameters: norms of gradients, sizes of steps, rows that are equal."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

__all__ = [
    "equal_rows",
    "gradient_norms",
    "gradient_sample",
    "looks_fresh",
    "sample",
    "update_ratios",
]

SAMPLED = 4096  # numbers of a parameter that are compared before and after a step
MOST_ROWS = 256  # of a matrix that are compared with one another
COMPARED = 64  # numbers of a parameter's gradient kept to compare with other steps


def gradient_norms(parameters: Mapping[str, nn.Parameter]) -> dict[str, float | None]:
    """Norm of each gradient; None where there is none."""
    norms: dict[str, float | None] = dict.fromkeys(parameters)
    there = {n: _dense(p.grad) for n, p in parameters.items() if p.grad is not None}
    norms.update(_read(there, _norms(list(there.values()))))
    return norms


def sample(parameters: Mapping[str, nn.Parameter], most: int = SAMPLED) -> dict[str, Tensor]:
    """Copy an even sample of each parameter."""
    return {name: _thin(p.detach(), most).clone() for name, p in parameters.items()}


def moved(before: Tensor, parameter: nn.Parameter, most: int) -> bool:
    """Whether a sampled parameter has changed."""
    now = _thin(parameter.detach(), most)
    return now.shape != before.shape or not torch.equal(now.to(before.device), before)


def update_ratios(
    before: Mapping[str, Tensor], parameters: Mapping[str, nn.Parameter]
) -> tuple[dict[str, float], dict[str, float]]:
    """Size of the step over the size of the parameter, and root mean square of the parameter."""
    names = [name for name, old in before.items() if name in parameters]
    old = [before[name] for name in names]
    new = [_thin(parameters[name].detach(), SAMPLED) for name in names]
    pairs = [i for i in range(len(names)) if old[i].shape == new[i].shape and old[i].numel()]
    moved = _norms([(new[i] - old[i]).float() for i in pairs])
    size = _norms([old[i].float() for i in pairs])
    counts = torch.tensor([float(old[i].numel()) for i in pairs])
    kept = [names[i] for i in pairs]
    moved_by, sizes = np.asarray(moved.cpu()), np.asarray(size.cpu())
    ratios = dict(zip(kept, (moved_by / np.maximum(sizes, 1e-12)).tolist(), strict=True))
    # A parameter at zero has no size of its own: a bias that only just begins is not a large step.
    ratios = {n: r for n, r, s in zip(kept, ratios.values(), sizes, strict=True) if s > 0 or r == 0}
    rms = sizes / np.sqrt(counts.numpy())
    return ratios, dict(zip(kept, rms.tolist(), strict=True))


def gradient_sample(parameters: Mapping[str, nn.Parameter]) -> np.ndarray:
    """Return some numbers of every gradient, one after another."""
    there = [
        _thin(_dense(p.grad), COMPARED).float() for p in parameters.values() if p.grad is not None
    ]
    return torch.cat(there).cpu().numpy() if there else np.zeros(0, np.float32)


def equal_rows(weight: Tensor) -> float:
    """Share of the rows of a matrix that equal another of its rows.

    >>> equal_rows(torch.tensor([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    0.5
    """
    rows = weight.detach().flatten(1)
    rows = rows[:MOST_ROWS, :SAMPLED].float().cpu()
    if not bool(torch.isfinite(rows).all()):
        return 0.0
    tolerance = 1e-6 * float(rows.abs().max()) + 1e-30
    rounded = (rows / tolerance / 8).round() if tolerance > 1e-29 else rows
    _, which, counts = torch.unique(rounded, dim=0, return_inverse=True, return_counts=True)
    return float((counts[which] > 1).float().mean())


def looks_fresh(weight: Tensor) -> bool:
    """Whether a matrix is spread evenly up to 1/√(fan-in), as torch initialises its layers.

    >>> looks_fresh(nn.Linear(30, 40).weight), looks_fresh(torch.randn(40, 30))
    (True, False)
    """
    if weight.ndim < 2 or weight.numel() < 200:
        return False
    scaled = weight.detach().flatten().float() * math.sqrt(weight[0].numel())
    most, rms = float(scaled.abs().max()), float(scaled.square().mean().sqrt())
    return 0.97 < most <= 1.0001 and abs(rms * math.sqrt(3.0) - 1.0) < 0.1


def _norms(tensors: list[Tensor]) -> Tensor:
    if not tensors:
        return torch.zeros(0)
    if len({t.device for t in tensors}) > 1:
        return torch.stack([t.float().norm().cpu() for t in tensors])
    return torch.stack([n.float() for n in torch._foreach_norm(tensors)])


def _read(named: Mapping[str, Tensor], values: Tensor) -> dict[str, float]:
    return dict(zip(named, values.tolist(), strict=True))


def _dense(gradient: Tensor) -> Tensor:
    gradient = gradient.detach()
    if hasattr(gradient, "to_local"):
        gradient = gradient.to_local()
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def _thin(value: Tensor, most: int) -> Tensor:
    if hasattr(value, "to_local"):
        value = value.to_local()
    flat = value.reshape(-1) if value.is_contiguous() else value.flatten()
    return flat[:: -(-flat.numel() // most)] if flat.numel() > most else flat
