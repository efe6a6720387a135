"""Optimizers by name: torch's, fused where torch has a fused kernel, and the library's own."""

import functools
from collections.abc import Callable, Collection, Sequence
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.errors import InvalidParameter
from castalia.optim.conjugate_gradient import ConjugateGradient
from castalia.optim.delta_bar_delta import DeltaBarDelta
from castalia.optim.dynamo import without_dynamo
from castalia.optim.hessian_free import HessianFree
from castalia.optim.lion import Lion
from castalia.optim.muon import Muon
from castalia.optim.newton_methods import GaussNewton, Newton
from castalia.utils.text import did_you_mean, listing

__all__ = [
    "OPTIMIZERS",
    "Kind",
    "base_rate",
    "build_optimizer",
    "closure_kind",
    "hidden_matrices",
    "optimizer_class",
    "optimizer_name",
]

# A name, a name and arguments, or what makes an optimizer of parameters and a rate.
Kind = str | tuple[str, dict[str, Any]] | Callable[..., Optimizer]

# name: (class, its own arguments)
OPTIMIZERS: dict[str, tuple[type[Optimizer], dict[str, Any]]] = {
    "sgd": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "nesterov": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    "adam": (torch.optim.Adam, {}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.0}),  # torch has 0.01
    "adagrad": (torch.optim.Adagrad, {}),
    "rmsprop": (torch.optim.RMSprop, {}),
    "adadelta": (torch.optim.Adadelta, {}),
    "lion": (Lion, {}),
    "muon": (Muon, {}),
    "lbfgs": (torch.optim.LBFGS, {"line_search_fn": "strong_wolfe"}),
    "delta_bar_delta": (DeltaBarDelta, {}),
    "conjugate_gradient": (ConjugateGradient, {"iterations": 5}),
    "newton": (
        Newton,
        {"damping": 0.1, "saddle_free": True, "line_search": "backtracking"},
    ),
    "gauss_newton": (GaussNewton, {}),
    "hessian_free": (HessianFree, {}),
}
FUSED: dict[type[Optimizer], tuple[str, ...]] = {
    torch.optim.SGD: ("cpu", "cuda"),
    torch.optim.Adam: ("cpu", "cuda"),
    torch.optim.AdamW: ("cpu", "cuda"),
    torch.optim.Adagrad: ("cpu",),
}
# Layers whose weights are matrices between hidden units.
HIDDEN = (nn.Linear, nn.modules.conv._ConvNd, nn.RNNBase, nn.MultiheadAttention)
SHARDED_FUSED = (torch.optim.Adam, torch.optim.AdamW)  # DTensor has no rule for the other kernels
CAPTURABLE = (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adadelta)


def optimizer_name(kind: Any) -> Any:
    """Return the name in a setting: of ``("muon", {"momentum": 0.9})`` it is ``"muon"``.

    >>> optimizer_name(("muon", {"momentum": 0.9})), optimizer_name("adam")
    ('muon', 'adam')
    """
    pair = isinstance(kind, tuple | list) and len(kind) == 2 and isinstance(kind[1], dict)
    return kind[0] if pair else kind


def optimizer_class(kind: Kind) -> type[Optimizer] | None:
    """Return the class that a setting names, or None for a function, which only its call shows.

    >>> optimizer_class("newton").__name__
    'Newton'
    """
    kind = optimizer_name(kind)
    if isinstance(kind, str):
        return OPTIMIZERS[kind][0] if kind in OPTIMIZERS else None
    made: Any = kind.func if isinstance(kind, functools.partial) else kind
    return made if isinstance(made, type) and issubclass(made, Optimizer) else None


def closure_kind(cls: type[Optimizer] | None) -> str | None:
    """Return what an optimizer's closure must do, its attribute ``closure``; None: it needs none.

    The kinds are those of ``VectorOptimizer``. Another library's optimizer may say its own.

    >>> closure_kind(torch.optim.Adam), closure_kind(torch.optim.LBFGS), closure_kind(Newton)
    (None, 'gradients', 'loss')
    """
    if cls is not None and issubclass(cls, torch.optim.LBFGS):
        return "gradients"
    return getattr(cls, "closure", None)


def base_rate(kind: Kind, lr: float) -> float:
    """Return the rate to build an optimizer with: 1 if it finds the length of its steps.

    >>> base_rate("adam", 1e-3), base_rate("newton", 1e-3)
    (0.001, 1.0)
    """
    return 1.0 if getattr(optimizer_class(kind), "finds_length", False) else lr


def hidden_matrices(net: nn.Module) -> list[Tensor]:
    """Return the weight matrices and filters of the hidden layers, which Muon makes orthogonal.

    They are those of linear, convolutional, attention and recurrent layers. The last layer gives
    the scores and is none, unless another has its shape, as where scores come from the embeddings.

    Examples
    --------
    >>> net = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> [tuple(weight.shape) for weight in hidden_matrices(net)]
    [(3, 4)]
    """
    layers = [layer for layer in net.modules() if isinstance(layer, HIDDEN)]
    found = [p for layer in layers for p in layer.parameters(recurse=False) if p.ndim >= 2]
    embeddings = [layer for layer in net.modules() if isinstance(layer, nn.Embedding)]
    tied = {id(p) for layer in embeddings for p in layer.parameters()}
    if found and found[-1].shape not in [p.shape for p in found[:-1]]:
        found.pop()
    return [p for p in found if id(p) not in tied]


def build_optimizer(
    kind: Kind,
    parameters: Sequence[Tensor],
    *,
    lr: float,
    lr_scale: float | Sequence[float] = 1.0,
    decayed: Sequence[bool] | None = None,
    weight_decay: float = 0.0,
    capture: bool = False,
    hidden: Collection[Tensor] | None = None,
) -> Optimizer:
    """Make an optimizer for a list of parameters.

    Parameters
    ----------
    kind
        A name from ``OPTIMIZERS``, a pair of a name and arguments, or a callable ``(parameters,
        lr=…) -> Optimizer``.
    parameters
        What it updates.
    lr
        Learning rate.
    lr_scale
        Factor on it, or one for each parameter. It is kept in the groups, under this name, for
        whoever sets the rate later.
    decayed
        For each parameter, whether it decays; None: weight matrices do, biases and scales do not.
    weight_decay
        Decay passed to the optimizer.
    capture
        Make its step safe to record in a CUDA graph: the rate is a tensor, the counters live on the
        device.
    hidden
        What Muon makes orthogonal, see ``hidden_matrices``; None: whatever has two or more axes.

    Examples
    --------
    >>> build_optimizer("adam", [torch.zeros(2, requires_grad=True)], lr=0.1).defaults["fused"]
    True
    """
    parameters = list(parameters)
    if not parameters:
        raise InvalidParameter(
            "Training: there must be a trainable parameter; got a network with none. Set "
            "`requires_grad_(True)` on what is to be learnt."
        )
    if callable(kind):
        return kind(parameters if lr_scale == 1 else _by_scale(parameters, lr_scale, lr), lr=lr)
    name = optimizer_name(kind)
    if name not in OPTIMIZERS:
        raise InvalidParameter(
            f"Training: `optimizer` must be {listing(OPTIMIZERS)} or a callable; got {kind!r}."
            f"{did_you_mean(str(name), OPTIMIZERS)}"
        )
    cls: Any
    cls, arguments = OPTIMIZERS[name]
    own: Any = kind[1] if name is not kind else {}
    arguments = {**arguments, **own}
    device = parameters[0].device
    sharded = any(hasattr(p, "full_tensor") for p in parameters)
    if device.type in FUSED.get(cls, ()) and (not sharded or cls in SHARDED_FUSED):
        arguments = {**arguments, "fused": True}
    if capture:
        arguments = {**arguments, **({"capturable": True} if cls in CAPTURABLE else {})}
    if decayed is None:
        decayed = [p.ndim >= 2 for p in parameters]
    heavy = {id(p) for p, decays in zip(parameters, decayed, strict=True) if decays}
    groups = _by_decay(cls, _by_scale(parameters, lr_scale, lr), weight_decay, heavy)
    if cls is Muon and hidden is not None:
        groups = _by_place(groups, {id(p) for p in hidden})
    rate: Any = torch.tensor(lr, device=device) if capture else lr
    for group in [group for group in groups if capture and "lr" in group]:
        group["lr"] = torch.tensor(group["lr"], device=device)
    with without_dynamo():
        return _made(name, cls, groups, rate, arguments)


def _made(name: str, cls: Any, groups: Any, rate: Any, arguments: dict[str, Any]) -> Optimizer:
    """Call a class; an argument it does not have is named."""
    known = set(signature(cls).parameters) - {"params", "lr", "self"}
    unknown = [argument for argument in arguments if argument not in known]
    if unknown:
        raise InvalidParameter(
            f"Training: the arguments of optimizer {name!r} must be {listing(sorted(known))}; got "
            f"{unknown[0]!r}.{did_you_mean(unknown[0], known)}"
        )
    made: Optimizer = cls(groups, lr=rate, **arguments)
    return made


def _by_scale(
    parameters: list[Tensor], scale: float | Sequence[float], lr: float
) -> list[dict[str, Any]]:
    """Group parameters by the factor on their rate."""
    scales = [scale] * len(parameters) if isinstance(scale, int | float) else list(scale)
    if set(scales) == {1.0}:
        return [{"params": parameters}]
    groups: dict[float, list[Tensor]] = {}
    for parameter, factor in zip(parameters, scales, strict=True):
        groups.setdefault(factor, []).append(parameter)
    return [
        {"params": members, "lr": lr * factor, "lr_scale": factor}
        for factor, members in groups.items()
    ]


def _by_place(groups: list[dict[str, Any]], hidden: set[int]) -> list[dict[str, Any]]:
    """Split groups into what Muon makes orthogonal and what it does not."""
    split = [
        {
            **group,
            "params": [p for p in group["params"] if (id(p) in hidden) == orthogonal],
            "orthogonal": orthogonal,
        }
        for group in groups
        for orthogonal in (True, False)
    ]
    return [group for group in split if group["params"]]


def _by_decay(
    cls: type[Optimizer], groups: list[dict[str, Any]], decay: float, heavy: set[int]
) -> list[dict[str, Any]]:
    """Split groups into what decays and what does not."""
    name = next(name for name, (known, _) in OPTIMIZERS.items() if known is cls)
    if len(groups) > 1 and closure_kind(cls) is not None:
        raise InvalidParameter(
            f"Training: the parameters must share one learning rate with optimizer {name!r}; got "
            f"{len(groups)} rates. Use `adam`, or rates that do not differ by layer."
        )
    if not decay:
        return groups
    if closure_kind(cls) is not None:
        raise InvalidParameter(
            f"Training: `weight_decay` must be 0 with optimizer {name!r}; got {decay}. Add an L2 "
            "penalty instead."
        )
    split = [
        {
            **group,
            "params": [p for p in group["params"] if (id(p) in heavy) == decays],
            "weight_decay": w,
        }
        for group in groups
        for decays, w in ((True, decay), (False, 0.0))
    ]
    return [group for group in split if group["params"]]
