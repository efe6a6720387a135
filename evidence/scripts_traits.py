"""What a script makes use of, which says what faults can be planted in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evidence.scripts_start import wrap

LOSSES = ("cross_entropy", "nll_loss", "mse_loss", "binary_cross_entropy_with_logits")


def note_losses(losses: list[float]) -> None:
    """Note, from now on, the loss of every backward pass."""
    import torch

    wrap(torch.Tensor, "backward", lambda original: _backward(original, losses))


def scan(traits: set[str]) -> None:
    """Note, from now on, what is called."""
    from torch import nn
    from torch.nn import functional as F  # noqa: N812
    from torch.optim import Optimizer
    from torch.utils.data import DataLoader

    for name in LOSSES:
        wrap(F, name, lambda original, name=name: _loss(original, name, traits))
    for kind in (nn.Dropout, nn.modules.batchnorm._BatchNorm):
        wrap(kind, "__init__", lambda original, kind=kind: _noted(original, kind.__name__, traits))
    wrap(F, "dropout", lambda original: _dropout(original, traits))
    wrap(Optimizer, "__init__", lambda original: _optimizer(original, traits))
    wrap(DataLoader, "__iter__", lambda original: _reading(original, traits))


def _noted(original: Callable[..., Any], trait: str, traits: set[str]) -> Callable[..., Any]:
    def noting(*args: Any, **kwargs: Any) -> Any:
        traits.add(trait.strip("_"))
        return original(*args, **kwargs)

    return noting


def _dropout(original: Callable[..., Any], traits: set[str]) -> Callable[..., Any]:
    def dropout(x: Any, p: float = 0.5, training: bool = True, *args: Any, **kwargs: Any) -> Any:
        if p > 0 and training:
            traits.add("Dropout")
        return original(x, p, training, *args, **kwargs)

    return dropout


def _loss(original: Callable[..., Any], name: str, traits: set[str]) -> Callable[..., Any]:
    def loss(outputs: Any, targets: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(outputs, targets, *args, **kwargs)
        if result.requires_grad:
            traits.add(name)
            if name in LOSSES[:2] and outputs.ndim == 2 and not targets.is_floating_point():
                traits.add(f"{name} of rows")
            if targets.ndim == 2 and targets.shape[1] == 1 and len(targets) > 1:
                traits.add(f"{name} of a column")
        return result

    return loss


def _optimizer(original: Callable[..., Any], traits: set[str]) -> Callable[..., Any]:
    def __init__(optimizer: Any, params: Any, defaults: Any) -> None:  # noqa: N807
        original(optimizer, params, defaults)
        traits.add("optimizer")
        traits.update({"decay"} & {"decay" for name in defaults if name == "weight_decay"})
        if sum(p.ndim > 1 for group in optimizer.param_groups for p in group["params"]) > 1:
            traits.add("layers")

    return __init__


def _reading(original: Callable[..., Any], traits: set[str]) -> Callable[..., Any]:
    seen: list[Any] = []

    def __iter__(loader: Any) -> Any:  # noqa: N807
        if all(loader.dataset is not other for other in seen):
            seen.append(loader.dataset)
        if len(seen) > 1:
            traits.add("loaders")
        traits.update(_of_batches(loader))
        return original(loader)

    return __iter__


def _of_batches(loader: Any) -> set[str]:
    import random

    import numpy as np
    import torch
    from torch.utils.data import RandomSampler

    kinds = {"loader"}
    if isinstance(loader.sampler, RandomSampler):
        kinds.add("shuffled")
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        row = loader.dataset[0]
    except Exception:
        return kinds
    finally:
        for set_state, state in zip(
            (torch.set_rng_state, np.random.set_state, random.setstate), states, strict=True
        ):
            set_state(state)
    if isinstance(row, (tuple, list)) and len(row) == 2:
        x, y = row
        kinds |= {"pictures"} if getattr(x, "is_floating_point", bool)() and x.ndim > 1 else set()
        kinds |= (
            {"labels"} if isinstance(y, int) or (hasattr(y, "dtype") and y.ndim == 0) else set()
        )
    return kinds


def _backward(original: Callable[..., Any], losses: list[float]) -> Callable[..., Any]:
    def backward(root: Any, *args: Any, **kwargs: Any) -> Any:
        if root.numel() == 1:
            losses.append(root.item())
        return original(root, *args, **kwargs)

    return backward
