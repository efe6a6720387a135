"""Inside a network: its rows, its objective, and what its layers receive and return.

The network is left as it was, bit for bit, and so is the caller's random state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.autodiff.functional_calls import call_with
from castalia.base import Estimator
from castalia.base.input_checks import check_rows
from castalia.errors import InvalidParameter
from castalia.nn.inspection.layer_signals import UNITS
from castalia.objectives.objective import Objective as BaseObjective
from castalia.protocols import Batch, Objective
from castalia.utils.seeds import seed_scope
from castalia.utils.text import did_you_mean, listing

__all__ = [
    "LAYERS",
    "LayerCall",
    "as_objective",
    "encoded",
    "layer_calls",
    "problem",
    "run",
    "untouched",
]

CHANNELS_SECOND = (
    nn.modules.conv._ConvNd,
    nn.modules.batchnorm._NormBase,
    nn.GroupNorm,
)
CHANNELS_LAST = (nn.Linear, nn.LayerNorm, nn.RNNBase, nn.Embedding)
LAYERS = (nn.Linear, nn.modules.conv._ConvNd)
# torch's own activations, besides those that have a name in the library.
MORE_UNITS = (
    nn.CELU,
    nn.GLU,
    nn.Hardshrink,
    nn.Hardsigmoid,
    nn.Hardswish,
    nn.Hardtanh,
    nn.LogSigmoid,
    nn.Mish,
    nn.RReLU,
    nn.Softshrink,
    nn.Softsign,
    nn.Tanhshrink,
    nn.Threshold,
)
ACTIVATION_UNITS = (*UNITS, *MORE_UNITS)


# ---- estimators and objectives ----


class _Plain(BaseObjective):
    """A plain function of outputs and targets as an objective."""

    def __init__(self, loss_fn: Callable[[Any, Any], Tensor]) -> None:
        self.loss_fn = loss_fn

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss, averaged if the function does not average itself."""
        if batch.weight is not None:
            raise InvalidParameter(
                "from_network: `weight` must be None beside a plain loss function, which does not "
                "know rows; got weights. Use an objective of castalia.objectives."
            )
        return {"loss": self.loss_fn(net(*_arguments(batch.x)), batch.y).mean()}


def as_objective(loss: Any) -> Objective:
    """Return an objective: itself, or one made of a plain function ``loss(outputs, targets)``.

    >>> as_objective(nn.MSELoss()).terms(nn.Identity(), Batch(torch.ones(2), torch.zeros(2)), "")
    {'loss': tensor(1.)}
    """
    return loss if hasattr(loss, "terms") else _Plain(loss)  # type: ignore[no-any-return]


def _network(owner: str, estimator: Any) -> nn.Module:
    check_is_fitted(estimator)
    if not isinstance(estimator, Estimator):
        raise InvalidParameter(
            f"{owner}: `estimator` must be one of ours that is trained by gradients; got "
            f"{type(estimator).__name__}. Use from_network(estimator.module_, …)."
        )
    net: nn.Module = estimator.module_
    return net


def encoded(owner: str, estimator: Any, X: Any) -> tuple[nn.Module, Tensor]:
    """Return a fitted estimator's network and rows X as it takes them, on its device."""
    net = _network(owner, estimator)
    parameter = next(net.parameters())
    X = check_rows(estimator, estimator.adapter_, X, reset=False)
    blocks = estimator.adapter_.blocks(X, str(parameter.dtype).removeprefix("torch."))
    return net, torch.cat(list(blocks)).to(parameter.device)


def problem(owner: str, estimator: Any, X: Any, y: Any) -> tuple[nn.Module, Objective, Batch]:
    """Return a fitted estimator's network, its last objective, and rows and targets as a batch."""
    net = _network(owner, estimator)
    parameter = next(net.parameters())
    X = check_rows(estimator, estimator.adapter_, X, reset=False)
    codec = estimator.codec
    target = codec.encode(estimator, codec.check(estimator, estimator.adapter_, X, y))
    samples = estimator._samples(X, target, parameter.dtype).to(parameter.device)
    batch = samples.batch(torch.arange(len(samples), device=parameter.device))
    objective = estimator._objective(estimator.spec_)
    return net, objective[-1].objective if isinstance(objective, Sequence) else objective, batch


# ---- how it is run ----


def _arguments(x: Any) -> tuple[Any, ...]:
    """Several inputs come as a tuple."""
    return x if isinstance(x, tuple) else (x,)


@contextmanager
def untouched(net: nn.Module) -> Iterator[None]:
    """Seed torch's generators inside, put them back outside, and step around compiled code."""
    first = next(net.parameters(), None)
    device = torch.device("cpu") if first is None else first.device
    compiled = any(getattr(m, "_compiled_call_impl", None) is not None for m in net.modules())
    # Hooks do not run inside compiled code.
    eager: Any = torch.compiler.set_stance("force_eager") if compiled else nullcontext()
    with seed_scope(0, device), eager:
        yield


def run(net: nn.Module, x: Any) -> Any:
    """Return the outputs for x in the network's present mode, its buffers left as they are."""
    lent = {name: value.clone() for name, value in net.named_buffers()}
    with untouched(net), torch.no_grad():
        return call_with(net, lent, _arguments(x))


# ---- calls of layers ----


@dataclass(frozen=True)
class LayerCall:
    """One call of a layer.

    Attributes
    ----------
    name, module
        Which.
    z, out
        What it was given and what it gave, copied.
    axis
        Where its units or channels are: 1 after a convolution, the last axis otherwise.
    """

    name: str
    module: nn.Module
    z: Tensor
    out: Tensor
    axis: int

    @property
    def units(self) -> Tensor:
        """The output with one row a unit or channel, (C, everything else)."""
        return self.out.movedim(self.axis, 0).flatten(1)


def layer_calls(owner: str, net: nn.Module, x: Any, names: Iterable[str] | None) -> list[LayerCall]:
    """Run a network and return every call of some layers, in the order of the calls.

    Parameters
    ----------
    owner
        Who asks; named in errors.
    net, x
        The network and its inputs; several inputs come as a tuple.
    names
        Names in ``net.named_modules()``; None takes every activation, or every layer with weights
        where activations are called as functions.
    """
    hooks = _Hooks(set(_chosen(owner, net, names)))
    handles = []
    for name, module in net.named_modules():
        if name in hooks.chosen or not any(module.children()):
            handles.append(module.register_forward_pre_hook(partial(hooks.before, name)))
            handles.append(module.register_forward_hook(partial(hooks.after, name)))
    try:
        run(net, x)
    finally:
        for handle in handles:
            handle.remove()
    return hooks.calls


class _Hooks:
    """The hooks of ``layer_calls``."""

    def __init__(self, chosen: set[str]) -> None:
        self.chosen = chosen
        self.calls: list[LayerCall] = []
        self.given: dict[str, Tensor] = {}
        self.second = False  # whether the last layer with channels has them on axis 1

    def before(self, name: str, _: nn.Module, inputs: tuple[Any, ...]) -> None:
        if name in self.chosen and inputs and isinstance(inputs[0], Tensor):
            self.given[name] = inputs[0].detach().clone()  # some activations work in place

    def after(self, name: str, module: nn.Module, _: Any, output: Any) -> None:
        if isinstance(module, CHANNELS_SECOND):
            self.second = True
        elif isinstance(module, CHANNELS_LAST):
            self.second = False
        out = output[0] if isinstance(output, tuple) else output
        if name in self.chosen and isinstance(out, Tensor) and out.ndim > 1:
            axis = 1 if self.second and out.ndim > 2 else out.ndim - 1
            out = out.detach().clone()
            self.calls.append(LayerCall(name, module, self.given.pop(name, out), out, axis))


def _chosen(owner: str, net: nn.Module, names: Iterable[str] | None) -> list[str]:
    modules = dict(net.named_modules())
    if names is None:
        for kinds in (ACTIVATION_UNITS, LAYERS):
            found = [name for name, module in modules.items() if isinstance(module, kinds)]
            if found:
                return found
        raise InvalidParameter(
            f"{owner}: {type(net).__name__} has neither activations nor layers with weights that "
            f"are modules; name some of them: {listing(name for name in modules if name)}."
        )
    names = list(names)
    for name in names:
        if name not in modules:
            raise InvalidParameter(
                f"{owner}: a layer must be {listing(name for name in modules if name)}; got "
                f"{name!r}.{did_you_mean(name, modules)}"
            )
    return names
