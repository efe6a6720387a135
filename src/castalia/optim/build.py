"""Optimizers by name: torch's, fused where torch has a fused kernel, and the library's own."""

from collections.abc import Callable, Collection, Mapping, Sequence
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
from castalia.optim.torch_names import torch_optimizer, unpacked
from castalia.utils.text import did_you_mean, listing

__all__ = [
    "OPTIMIZERS",
    "Kind",
    "base_rate",
    "build_optimizer",
    "closure_kind",
    "hidden_matrices",
    "named_optimizer",
    "optimizer_class",
    "optimizer_name",
]

# A name, a name and arguments, an optimizer, or what makes one of parameters and a rate.
Kind = str | tuple[str, dict[str, Any]] | Optimizer | Callable[..., Optimizer]

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


def optimizer_name(kind: Any) -> Any:
    """Return the name in a setting: of ``("muon", {"momentum": 0.9})`` it is ``"muon"``.

    >>> optimizer_name(("muon", {"momentum": 0.9})), optimizer_name("adam")
    ('muon', 'adam')
    """
    pair = isinstance(kind, tuple | list) and len(kind) == 2 and isinstance(kind[1], dict)
    return kind[0] if pair else kind


def optimizer_class(kind: Kind) -> type[Optimizer] | None:
    """Return the class that a setting names, or None for a function, which only its call shows.

    >>> optimizer_class("newton").__name__, optimizer_class("RAdam").__name__
    ('Newton', 'RAdam')
    """
    made: Any = unpacked(kind)[0]
    if isinstance(made, str):
        return _entry(made)[0]
    if isinstance(made, Optimizer):
        return type(made)
    return made if isinstance(made, type) and issubclass(made, Optimizer) else None


def _entry(name: str) -> tuple[Any, dict[str, Any]]:
    """Return the class of a name, in any case, and the arguments it has here."""
    known = OPTIMIZERS.get(name.lower())
    return known if known is not None else (torch_optimizer(name), {})


def named_optimizer(kind: Any) -> Any:
    """Return a setting as a name, or a name and arguments, which can be saved; else as it is.

    Takes torch's classes, ``functools.partial`` of them, and optimizers, whose arguments and rate
    are taken over; what parameters these were made for does not matter.

    >>> named_optimizer(torch.optim.RAdam)
    'radam'
    >>> named_optimizer(torch.optim.SGD([torch.zeros(1)], lr=0.3, momentum=0.9))
    ('sgd', {'momentum': 0.9, 'lr': 0.3})
    """
    made, arguments = unpacked(kind)
    if isinstance(made, Optimizer):
        arguments = _arguments_of(made)
        made = type(made)
    if not isinstance(made, type) or _entry(made.__name__)[0] is not made:
        return kind
    name = made.__name__.lower()
    theirs = {n: signature(made).parameters[n].default for n in _entry(name)[1]}
    arguments = {**theirs, **arguments}
    return (name, arguments) if arguments else name


def _arguments_of(optimizer: Optimizer) -> dict[str, Any]:
    """Return what an optimizer was made with that is not the default of its class."""
    if len(optimizer.param_groups) > 1:
        raise InvalidParameter(
            f"Training: `optimizer` must have one group of parameters; got "
            f"{type(optimizer).__name__} with {len(optimizer.param_groups)}, which belong to "
            "another network. Give layers rates of their own with (name, {'rates': {'head': 10}})."
        )
    known = signature(type(optimizer)).parameters
    given = {n: v for n, v in optimizer.defaults.items() if n in known and v != known[n].default}
    given.pop("lr", None)
    return {**given, "lr": float(optimizer.defaults["lr"])}


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

    A rate among its arguments comes before the model's.

    >>> base_rate("adam", 1e-3), base_rate("newton", 1e-3), base_rate(("sgd", {"lr": 0.3}), 1e-3)
    (0.001, 1.0, 0.3)
    """
    if getattr(optimizer_class(kind), "finds_length", False):
        return 1.0
    return float(unpacked(named_optimizer(kind))[1].get("lr", lr))


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
    names: Sequence[str] | None = None,
) -> Optimizer:
    """Make an optimizer for a list of parameters.

    Parameters
    ----------
    kind
        A name from ``OPTIMIZERS`` or of a class of torch, in any case; a pair of a name and
        arguments; an optimizer, whose class and arguments are taken; or a callable ``(parameters,
        lr=…) -> Optimizer``. An argument ``rates`` maps beginnings of parameters' names to factors
        of the rate.
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
    names
        Names of the parameters, for ``rates``.

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
    kind = named_optimizer(kind)
    if callable(kind):
        return kind(parameters if lr_scale == 1 else _by_scale(parameters, lr_scale, lr), lr=lr)
    name, own = unpacked(kind)
    cls, arguments = _entry(name) if isinstance(name, str) else (None, {})
    if cls is None:
        raise InvalidParameter(
            f"Training: `optimizer` must be {listing(OPTIMIZERS, most=20)}, an optimizer of torch "
            f"or a callable; got {kind!r}.{did_you_mean(str(name), OPTIMIZERS)}"
        )
    name = name.lower()
    arguments = {**arguments, **own}
    arguments.pop("lr", None)
    rates = arguments.pop("rates", None)
    if rates is not None:
        lr_scale = _layer_rates(rates, names, lr_scale, len(parameters))
    device = parameters[0].device
    sharded = any(hasattr(p, "full_tensor") for p in parameters)
    if device.type in FUSED.get(cls, ()) and (not sharded or cls in SHARDED_FUSED):
        arguments = {"fused": True, **arguments}
    if capture and "capturable" in signature(cls).parameters:
        arguments = {**arguments, "capturable": True}
    if decayed is None:
        decayed = [p.ndim >= 2 for p in parameters]
    heavy = {id(p) for p, decays in zip(parameters, decayed, strict=True) if decays}
    groups = _by_decay(name, cls, _by_scale(parameters, lr_scale, lr), weight_decay, heavy)
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


def _layer_rates(
    rates: Mapping[str, float],
    names: Sequence[str] | None,
    scale: float | Sequence[float],
    count: int,
) -> list[float]:
    """Multiply the factor of each parameter by that of the longest beginning of its name."""
    names = [str(i) for i in range(count)] if names is None else names
    for start, factor in rates.items():
        if not any(_begins(name, start) for name in names):
            raise InvalidParameter(
                f"Training: `rates` must name layers of the network, such as {names[0]!r}; got "
                f"{start!r}.{did_you_mean(start, _beginnings(names))}"
            )
        if not (isinstance(factor, int | float) and factor >= 0):
            raise InvalidParameter(
                f"Training: a factor in `rates` must be a number of at least 0; got {factor!r} for "
                f"{start!r}."
            )
    scales = [scale] * count if isinstance(scale, int | float) else list(scale)
    found = []
    for name, own in zip(names, scales, strict=True):
        longest = max((s for s in rates if _begins(name, s)), key=len, default=None)
        found.append(float(own if longest is None else own * rates[longest]))
    return found


def _begins(name: str, start: str) -> bool:
    return name == start or name.startswith(f"{start}.")


def _beginnings(names: Sequence[str]) -> list[str]:
    parts = [name.split(".") for name in names]
    return list(dict.fromkeys(".".join(p[:i]) for p in parts for i in range(1, len(p) + 1)))


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
    name: str, cls: type[Optimizer], groups: list[dict[str, Any]], decay: float, heavy: set[int]
) -> list[dict[str, Any]]:
    """Split groups into what decays and what does not."""
    if len(groups) > 1 and closure_kind(cls) is not None:
        raise InvalidParameter(
            f"Training: the parameters must share one learning rate with optimizer {name!r}; got "
            f"{len(groups)} rates. Use `adam`, or rates that do not differ by layer."
        )
    if not decay:
        return groups
    if closure_kind(cls) is not None or "weight_decay" not in signature(cls).parameters:
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
