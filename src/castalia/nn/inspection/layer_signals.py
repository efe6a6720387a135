"""What passes through a network right now: saturated units and the gradients of its layers."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn.activations import ACTIVATIONS, Sign, Step
from castalia.nn.layers.maxout import Maxout
from castalia.utils.text import did_you_mean, listing

__all__ = ["layer_gradients", "recording", "saturation", "slopes"]

# A layer that does nothing has no activations of its own.
UNITS = tuple(unit for unit in ACTIVATIONS.values() if unit is not nn.Identity)
UNITS += (Sign, Step, Maxout)

Seen = list[tuple[str, Tensor, Tensor]]  # name of the module, its input, its output


@contextmanager
def recording(net: nn.Module, names: Iterable[str] | None = None) -> Iterator[Seen]:
    """Record what goes into and comes out of modules while the network runs.

    Parameters
    ----------
    net
        The network.
    names
        Modules by their names in ``net.named_modules()``; None takes every activation.

    Yields
    ------
    list
        A triple (name, input, output) for each call, in the order of the calls.

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> with recording(net) as seen:
    ...     _ = net(torch.zeros(1, 2))
    >>> [name for name, _, _ in seen]
    ['1']
    """
    if getattr(net, "_compiled_call_impl", None) is not None:
        raise InvalidParameter(
            "recording: the network must not be compiled, or nobody can listen inside it. "
            "Set Training(compile=False)."
        )
    seen: Seen = []

    def listen(name: str, module: nn.Module) -> torch.utils.hooks.RemovableHandle:
        return module.register_forward_hook(
            lambda _, inputs, output: seen.append((name, inputs[0], output))
        )

    handles = [listen(name, module) for name, module in _chosen(net, names).items()]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _chosen(net: nn.Module, names: Iterable[str] | None) -> dict[str, nn.Module]:
    modules = dict(net.named_modules())
    if names is None:
        units = {name: module for name, module in modules.items() if isinstance(module, UNITS)}
        if not units:
            raise InvalidParameter(
                f"recording: {type(net).__name__} has no activation module; name the modules to "
                f"record, of {listing([name for name in modules if name])}."
            )
        return units
    for name in names:
        if name not in modules:
            raise InvalidParameter(
                f"recording: a module must be {listing([name for name in modules if name])}; got "
                f"{name!r}.{did_you_mean(name, modules)}"
            )
    return {name: modules[name] for name in names}


def saturation(net: nn.Module, x: Tensor, *, below: float = 0.01) -> dict[str, float]:
    """Fraction of units, over a batch, whose activation has a slope near zero.

    A saturated sigmoid or tanh passes no gradient on, nor does a ReLU at a negative input. Units of
    an elementwise activation are counted; a maxout unit always has a slope.

    Parameters
    ----------
    net
        The network, in the mode (training or evaluation) it should be measured in.
    x
        A batch of inputs.
    below
        Slopes smaller than this count as zero.

    Returns
    -------
    dict
        The fraction by the name of the activation module, from the first layer to the last.

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(1, 1), nn.Tanh())
    >>> _ = nn.init.constant_(net[0].weight, 100.0), nn.init.zeros_(net[0].bias)
    >>> saturation(net, torch.tensor([[-1.0], [0.0], [1.0], [2.0]]))
    {'1': 0.75}
    """
    with torch.no_grad(), recording(net) as seen:
        net(x)
    modules = dict(net.named_modules())
    flat: dict[str, list[Tensor]] = {}
    for name, z, _ in seen:
        if not isinstance(modules[name], Maxout):
            flat.setdefault(name, []).append((slopes(modules[name], z).abs() < below).flatten())
    return {name: float(torch.cat(units).float().mean()) for name, units in flat.items()}


def slopes(unit: nn.Module, z: Tensor) -> Tensor:
    """Return g'(z) of an elementwise activation.

    >>> slopes(nn.ReLU(inplace=True), torch.tensor([-1.0, 2.0]))
    tensor([0., 1.])
    """
    with torch.enable_grad():
        z = z.detach().clone().requires_grad_()
        (slope,) = torch.autograd.grad(unit(z.clone()).sum(), z)  # a copy, for units in place
    return slope


def layer_gradients(net: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """Gradients of a loss by each weight matrix, flattened, from the first layer to the last.

    Their spread, layer by layer right after initialisation, shows whether a network can be trained
    at all: ``torch.histogram`` of each makes the usual figure. ``net`` keeps the gradients it had.

    Parameters
    ----------
    net
        The network.
    loss
        A scalar computed from its outputs; its graph is kept.

    Examples
    --------
    >>> net = nn.Linear(2, 1)
    >>> layer_gradients(net, net(torch.tensor([[3.0, 4.0]])).sum())
    {'weight': tensor([3., 4.])}
    """
    weights = {n: p for n, p in net.named_parameters() if p.requires_grad and p.ndim >= 2}
    found = torch.autograd.grad(loss, list(weights.values()), retain_graph=True)
    return {name: gradient.flatten() for name, gradient in zip(weights, found, strict=True)}
