"""The norm of the gradient at every layer, for one batch, without touching the network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from castalia.autodiff.functional_calls import call_with, differentiating
from castalia.errors import InvalidParameter
from castalia.evaluate.network_probe import untouched
from castalia.protocols import Batch, Objective

__all__ = ["gradient_norms", "layer_names"]


def gradient_norms(net: nn.Module, objective: Objective, batch: Batch) -> dict[str, float]:
    """Return the norm of the loss's gradient by each weight matrix, in the order of the forward.

    The network runs in its present mode. Its gradients, buffers and hooks stay as they are, and so
    does the caller's random state. Vectors (biases, scales) are left out where there are matrices.

    Parameters
    ----------
    net, objective
        The network and what it minimises.
    batch
        Rows, targets and weights, on the network's device.

    Examples
    --------
    >>> from castalia.objectives import SquaredError
    >>> net = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.zeros_(net.weight)
    >>> gradient_norms(net, SquaredError(), Batch(torch.tensor([[3.0, 4.0]]), -torch.ones(1, 1)))
    {'weight': 10.0}
    """
    trained = {name: p for name, p in net.named_parameters() if p.requires_grad}
    matrices = {name: p for name, p in trained.items() if p.ndim > 1} or trained
    if not matrices:
        raise InvalidParameter(
            f"GradientNorms: {type(net).__name__} must have a trainable parameter; got none."
        )
    calls: list[str] = []
    handles = [
        module.register_forward_pre_hook(lambda *_, name=name: calls.append(name))  # type: ignore
        for name, module in net.named_modules()
    ]
    try:
        loss = _loss(net, objective, batch)
    finally:
        for handle in handles:
            handle.remove()
    found = torch.autograd.grad(loss, list(matrices.values()), allow_unused=True)
    norms = {
        name: 0.0 if gradient is None else float(torch.linalg.vector_norm(gradient))
        for name, gradient in zip(matrices, found, strict=True)
    }
    return {name: norms[name] for name in sorted(norms, key=_rank(calls))}


def _loss(net: nn.Module, objective: Objective, batch: Batch) -> Tensor:
    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self) -> Any:
            return objective.terms(net, batch, objective.phases(net)[0].name)["loss"]

    lent = {f"net.{name}": value.clone() for name, value in net.named_buffers()}
    with untouched(net), differentiating():
        loss: Tensor = call_with(Loss(), lent, ())
    return loss


def _rank(calls: list[str]) -> Any:
    """Order parameters by the first call of the innermost module around them that was called."""
    first: dict[str, int] = {}
    for i, name in enumerate(calls):
        first.setdefault(name, i)

    def rank(parameter: str) -> int:
        owner = parameter.rpartition(".")[0]
        while owner not in first and owner:
            owner = owner.rpartition(".")[0]
        return first.get(owner, -1)

    return rank


def layer_names(parameters: list[str]) -> list[str]:
    """Name layers by their parameters, where one parameter a layer is left.

    >>> layer_names(["0.weight", "rnn.weight_ih_l0"])
    ['0', 'rnn.weight_ih_l0']
    """
    return [name.removesuffix(".weight") for name in parameters]
