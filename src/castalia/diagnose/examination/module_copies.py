"""Copies of the user's module, loss and optimizer that belong together."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.diagnose.thresholds import limit

__all__ = [
    "Copy",
    "adam",
    "bare",
    "copied",
    "peak_rates",
    "reinitialised",
    "scalar",
    "without_dropout",
]

FUSED = ("cpu", "cuda")
HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


@dataclass
class Copy:
    """A module, its loss and its optimizer, to be tried out and thrown away."""

    net: nn.Module
    loss_fn: Any
    optimizer: Optimizer

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the loss of a batch as one number."""
        return scalar(self.loss_fn(self.net(x), y))


def scalar(loss: Any) -> Tensor:
    """Return one number: an unreduced loss is averaged."""
    if isinstance(loss, tuple | list):
        loss = loss[0]
    return loss if loss.ndim == 0 else loss.mean()


def bare(module: nn.Module) -> nn.Module:
    """Take a module out of ``torch.compile`` and of the data-parallel wrappers."""
    wrapped = getattr(module, "_orig_mod", None)
    if wrapped is None and type(module).__name__ in ("DataParallel", "DistributedDataParallel"):
        wrapped = module.module
    return bare(wrapped) if isinstance(wrapped, nn.Module) else module


def copied(
    module: nn.Module,
    loss_fn: Any,
    optimizer: Optimizer | Callable[[Iterable[nn.Parameter]], Optimizer] | None,
) -> Copy:
    """Copy the three together, so that the new optimizer trains the new weights.

    Tensors that are computed from others, as weight normalisation keeps them, cannot be copied by
    Python; they are replaced by their values. The state of the optimizer stays behind, and so do
    hooks that belong to the user.
    """
    memo: dict[int, Any] = {
        id(value): value.detach().clone()
        for part in module.modules()
        for value in vars(part).values()
        if isinstance(value, Tensor) and not value.is_leaf
    }
    given = optimizer if isinstance(optimizer, Optimizer) else None
    if given is not None:
        memo[id(given.state)] = defaultdict(dict)  # moments of the past
    net = copy.deepcopy(module, memo)
    _drop_hooks(net)
    for p in net.parameters():
        p.grad = None
    return Copy(net, _copy_loss(loss_fn, memo), _optimizer(net, optimizer, memo))


def _copy_loss(loss_fn: Any, memo: dict[int, Any]) -> Any:
    if not isinstance(loss_fn, nn.Module):
        return loss_fn
    found = copy.deepcopy(loss_fn, memo)
    _drop_hooks(found)
    return found


def _optimizer(net: nn.Module, optimizer: Any, memo: dict[int, Any]) -> Optimizer:
    if isinstance(optimizer, Optimizer):
        found: Optimizer = copy.deepcopy(optimizer, memo)
        for group, rate in zip(found.param_groups, peak_rates(found), strict=True):
            group["lr"] = rate
        return found
    parameters = [p for p in net.parameters() if p.requires_grad]
    if not parameters:  # optimizers insist on one; nothing will be trained
        parameters, optimizer = [nn.Parameter(torch.zeros(1))], None
    if optimizer is None:
        return adam(parameters, 1e-3)
    return optimizer(parameters)  # type: ignore[no-any-return]


def adam(parameters: list[nn.Parameter], lr: float) -> Optimizer:
    """Return Adam, in one kernel a step where torch has it for all of the parameters."""
    fused = all(p.is_floating_point() and p.device.type in FUSED for p in parameters)
    return torch.optim.Adam(parameters, lr=lr, fused=fused)


def peak_rates(optimizer: Optimizer) -> list[Any]:
    """Return the rate of each group before a schedule took it down, or after it took it up.

    torch's schedules leave ``initial_lr`` and ``max_lr`` in the groups. Of one written by hand only
    the rate that the optimizer was made with is left: it counts where all groups lie far below.

    >>> adam = torch.optim.Adam([torch.zeros(1)], lr=0.01)
    >>> adam.param_groups[0]["lr"] = 1e-8
    >>> peak_rates(adam)
    [0.01]
    """
    groups = optimizer.param_groups
    rates = [max(g["lr"], g.get("initial_lr", 0.0), g.get("max_lr", 0.0)) for g in groups]
    made, most = optimizer.defaults.get("lr", 0.0), max(rates)
    if not 0 < float(most) < limit("rate.annealed") * float(made):
        return rates if float(most) > 0 else [made for _ in rates]
    return [rate * (made / most) for rate in rates]


def _drop_hooks(net: nn.Module) -> None:
    """Remove hooks that would call the user's functions; keep those that are part of a module."""
    own = set(net.modules())
    for part in own:
        for name in HOOKS:
            hooks = getattr(part, name, {})
            for key in [k for k, hook in hooks.items() if not _part_of(hook, own)]:
                del hooks[key]


def _part_of(hook: Any, own: set[nn.Module]) -> bool:
    if isinstance(hook, MethodType):
        return isinstance(hook.__self__, nn.Module) and hook.__self__ in own
    return type(hook).__module__.startswith("torch.nn.utils")  # weight and spectral normalisation


def reinitialised(net: nn.Module) -> bool:
    """Draw the weights of a copy again, layer by layer; say whether every weight was drawn."""
    done: set[int] = set()
    for part in net.modules():
        reset = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
        if callable(reset):
            reset()
            done.update(id(p) for p in part.parameters(recurse=False))
            if getattr(part, "_reset_parameters", None) is not None:
                done.update(id(p) for p in part.parameters())
    return all(id(p) in done for p in net.parameters() if p.requires_grad)


def without_dropout(net: nn.Module) -> nn.Module:
    """Switch dropout off in a copy, also inside recurrent and attention layers."""
    for part in net.modules():
        if isinstance(part, nn.modules.dropout._DropoutNd):
            part.p = 0.0
        elif isinstance(getattr(part, "dropout", None), float):
            setattr(part, "dropout", 0.0)  # noqa: B010 - of recurrent and attention layers
    return net
