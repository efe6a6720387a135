"""Copies of modules in float64, and which of their gradients are odd on purpose."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from torch import Tensor, nn

from castalia.errors import InvalidData

__all__ = ["copies", "odd_embeddings", "wide"]


def copies(modules: Sequence[nn.Module]) -> list[nn.Module]:
    """Copy modules, what they share included, and widen the copies."""
    try:
        return [_double(module) for module in copy.deepcopy(list(modules))]
    except (RuntimeError, TypeError, AttributeError) as error:
        raise InvalidData(
            f"check_gradients: modules must be ones that `copy.deepcopy` can copy; got "
            f"{', '.join(type(m).__name__ for m in modules)} ({error}). Keep tensors that are "
            "computed from others out of the module's attributes."
        ) from error


def wide(tensor: Tensor) -> Tensor:
    """Return float64, on the CPU where the device has none."""
    return tensor.cpu().double() if tensor.device.type == "mps" else tensor.double()


def _double(module: nn.Module) -> nn.Module:
    """Widen parameters, buffers and plain tensor attributes of a copy."""
    for part in module.modules():
        for key, value in vars(part).items():
            if isinstance(value, Tensor) and value.is_floating_point():
                setattr(part, key, wide(value))
        if type(part).__name__ == "_SpectralNorm":
            part.eval()  # in training it updates its estimate outside the gradient, by design
    module = module.cpu() if any(p.device.type == "mps" for p in module.parameters()) else module
    module = module.double()
    for p in module.parameters():
        p.data, p.grad = p.data.contiguous(), None
    return module


def odd_embeddings(module: nn.Module) -> dict[str, tuple[int | None, str]]:
    """Find embedding weights whose gradient is, by design, not the slope of the output."""
    found: dict[str, tuple[int | None, str]] = {}
    for name, part in module.named_modules():
        if isinstance(part, nn.Embedding | nn.EmbeddingBag):
            key = f"{name}.weight" if name else "weight"
            if part.scale_grad_by_freq:
                found[key] = (None, "scale_grad_by_freq changes the gradient by design")
            elif part.max_norm is not None:
                found[key] = (None, "max_norm changes the weights in the forward pass")
            elif part.padding_idx is not None:
                found[key] = (part.padding_idx, "")
    return found
