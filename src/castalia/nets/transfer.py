"""Transfer: what a network has learnt, kept, continued, or given new classes.

A network is seen as parts in order, each a layer with weights together with what follows it without
any: the children of ``features`` and of ``head`` where it has them, else its own children. The last
part gives the scores.
Reference: 2014, Yosinski, Clune, Bengio, Lipson, How transferable are features in deep neural
networks?, arXiv 1411.1792; 2018, Howard, Ruder, Universal language model fine-tuning, arXiv
1801.06146 (rates that fall with depth).
"""

from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn import init
from castalia.utils.text import did_you_mean, listing

__all__ = ["freeze", "parts", "rate_scales", "replace_head", "unfreeze"]

Part = tuple[str, list[nn.Module]]


def parts(module: nn.Module) -> list[Part]:
    """Return the parts of a network in order, each with the name of its first module.

    >>> [name for name, _ in parts(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)))]
    ['0', '2']
    """
    _check_module("parts", module)
    halves = [name for name in ("features", "head") if hasattr(module, name)]
    children = [
        (f"{half}.{name}", child)
        for half in halves
        for name, child in getattr(module, half).named_children()
    ]
    found: list[Part] = []
    for name, child in children or module.named_children():
        if any(p.ndim > 1 for p in child.parameters()) or not found:
            found.append((name, [child]))
        else:
            found[-1][1].append(child)
    return found


def freeze(module: nn.Module, upto: int | str) -> nn.Module:
    """Keep the first parts of a network as they are, and return it.

    Their weights get no gradient, and they stay in evaluation mode whatever mode the network is set
    to, so that the statistics of batch normalisation keep their bits too.

    Parameters
    ----------
    module
        The network; changed in place.
    upto
        How many parts; negative leaves that many at the end (-1: all but the last). Or the name of
        the last part to freeze, as ``"features.stage2"``.

    Examples
    --------
    >>> net = freeze(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), -1)
    >>> [p.requires_grad for p in net.parameters()]
    [False, False, True, True]
    """
    _check_module("freeze", module)
    for _, members in parts(module)[: _count(module, upto)]:
        for member in members:
            member.requires_grad_(False)
            if not _frozen(member):
                member.register_forward_pre_hook(_stay)
    return module


def unfreeze(module: nn.Module, depth: int | None = None) -> nn.Module:
    """Train the last parts of a network again, and return it.

    Parameters
    ----------
    module
        The network; changed in place.
    depth
        How many parts, counted from the scores; None is all of them. Parts before them stay as they
        are.

    Examples
    --------
    >>> net = freeze(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), -1)
    >>> all(p.requires_grad for p in unfreeze(net, 2).parameters())
    True
    """
    _check_module("unfreeze", module)
    found = parts(module)
    if depth is not None and not (isinstance(depth, int) and 0 <= depth <= len(found)):
        raise InvalidParameter(
            f"unfreeze: `depth` must be 0 to {len(found)}, the parts of this "
            f"{type(module).__name__}; got {depth!r}."
        )
    for _, members in found[len(found) - depth :] if depth is not None else found:
        for member in members:
            member.requires_grad_(True)
            for key, hook in list(member._forward_pre_hooks.items()):
                if hook is _stay:
                    del member._forward_pre_hooks[key]
            member.train(module.training)
    return module


def replace_head(module: nn.Module, classes: int) -> nn.Module:
    """Put a new linear layer for other classes in the place of the last one; return the network.

    Examples
    --------
    >>> replace_head(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), 5)[-1]
    Linear(in_features=3, out_features=5, bias=True)
    """
    _check_module("replace_head", module)
    if not isinstance(classes, int) or classes < 1:
        raise InvalidParameter(
            f"replace_head: `classes` must be a whole number at least 1; got {classes!r}."
        )
    layers = [(n, m) for n, m in module.named_modules() if isinstance(m, nn.Linear)]
    if not layers:
        raise InvalidParameter(
            f"replace_head: the network must end in a linear layer; {type(module).__name__} has "
            "none."
        )
    path, old = layers[-1]
    new = nn.Linear(old.in_features, classes, bias=old.bias is not None)
    init(new, "glorot", random_state=torch.default_generator)
    owner, _, name = path.rpartition(".")
    setattr(module.get_submodule(owner), name, new.to(old.weight.device, old.weight.dtype))
    return module


def rate_scales(module: nn.Module, decay: float) -> list[tuple[Tensor, float]]:
    """Return every trained parameter with the factor on its learning rate.

    The last part has factor 1, the one before it ``decay``, then ``decay``^2 and so on: the nearer
    to the input, the more general the features and the less they should move.

    Parameters
    ----------
    module
        The network.
    decay
        Factor from a part to the one before it, above 0 and at most 1.

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    >>> [(tuple(p.shape), factor) for p, factor in rate_scales(net, 0.5)]
    [((3, 2), 0.5), ((3,), 0.5), ((1, 3), 1.0), ((1,), 1.0)]
    """
    found = parts(module)
    return [
        (parameter, decay ** (len(found) - 1 - i))
        for i, (_, members) in enumerate(found)
        for member in members
        for parameter in member.parameters()
        if parameter.requires_grad
    ]


def _check_module(owner: str, module: Any) -> None:
    if not isinstance(module, nn.Module):
        raise InvalidParameter(
            f"{owner}: `module` must be a torch.nn.Module, such as the `module_` of a fitted "
            f"estimator; got {type(module).__name__}."
        )


def _stay(module: nn.Module, args: Any) -> None:
    """Set a frozen part back to evaluation mode before it computes."""
    if module.training:
        module.eval()


def _frozen(module: nn.Module) -> bool:
    return any(hook is _stay for hook in module._forward_pre_hooks.values())


def _count(module: nn.Module, upto: int | str) -> int:
    """Turn a number or a name into a number of parts."""
    known = [name for name, _ in parts(module)]
    owner = type(module).__name__
    if isinstance(upto, str):
        if upto not in known:
            raise InvalidParameter(
                f"freeze: `upto` must be a part of this {owner}, {listing(known)}; got {upto!r}."
                f"{did_you_mean(upto, known)}"
            )
        return known.index(upto) + 1
    if not isinstance(upto, int) or not -len(known) <= upto <= len(known):
        raise InvalidParameter(
            f"freeze: `upto` must be between {-len(known)} and {len(known)}, for this {owner} has "
            f"{len(known)} parts; got {upto!r}."
        )
    return upto if upto >= 0 else len(known) + upto
