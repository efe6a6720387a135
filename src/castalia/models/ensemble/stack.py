"""Several networks of one shape as one module with a leading axis of members.

h(l) = g(h(l-1) W(l)^T + b(l)) for all members in one batched product.  Shapes: M members, B batch,
D inputs, K outputs.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import vmap

from castalia.autodiff.functional_calls import call_with
from castalia.nets.dense import MLP
from castalia.nn import ACTIVATIONS

__all__ = ["Stack"]

# Layers that treat every number of (M, B, H) alike, so the leading axis does not matter to them.
ELEMENTWISE = (*ACTIVATIONS.values(), nn.Dropout)


class Stack(nn.Module):
    """Networks of one shape, evaluated side by side.

    Parameters
    ----------
    nets
        The networks; their parameters are copied.
    device, dtype
        Where the copies live, and in which format.

    Examples
    --------
    >>> nets = [nn.Linear(4, 2), nn.Linear(4, 2), nn.Linear(4, 2)]
    >>> stack = Stack(nets, torch.device("cpu"), torch.float32)
    >>> x = torch.randn(5, 4)
    >>> stack(x.expand(3, 5, 4)).shape
    torch.Size([3, 5, 2])
    """

    def __init__(self, nets: Sequence[nn.Module], device: torch.device, dtype: torch.dtype) -> None:
        super().__init__()
        states = [dict(net.named_parameters()) for net in nets]
        self.names = list(states[0])
        # One of the networks, to say what is computed; kept out of the parameters.
        self.shape = [copy.deepcopy(nets[0])]
        self.dense = _dense_layers(nets[0])
        self.stacked = nn.ParameterList(
            torch.stack([self._turned(state[name].detach()) for state in states])
            .to(device, dtype)
            .contiguous()
            for name in self.names
        )

    @staticmethod
    def can_hold(net: nn.Module) -> bool:
        """Whether a network has trained parameters only, and no state of another kind."""
        return not list(net.buffers()) and all(p.requires_grad for p in net.parameters())

    def forward(self, x: Tensor) -> Tensor:  # (M, B, D)
        """Return the outputs of all members, (M, B, K)."""
        weights = dict(zip(self.names, self.stacked, strict=True))
        if not self.dense:
            shape = self.shape[0]
            call = vmap(lambda w, x: call_with(shape, w, (x,)), randomness="different")
            return call(weights, x)
        for name, layer in self.dense:
            if isinstance(layer, nn.Linear):
                weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
                x = torch.baddbmm(bias.unsqueeze(1), x, weight)
            else:
                x = layer(x)
        return x

    def train(self, mode: bool = True) -> Stack:
        """Set the mode of every layer, those of the hidden copy too."""
        for layer in (self.shape[0], *(layer for _, layer in self.dense)):
            layer.train(mode)
        return super().train(mode)

    @torch.no_grad()
    def unstack(self, i: int, net: nn.Module) -> nn.Module:
        """Copy the weights of member i into a network and return it, on the stack's device."""
        net.to(self.stacked[0].device, self.stacked[0].dtype)
        state: dict[str, Any] = dict(net.named_parameters())
        for name, stacked in zip(self.names, self.stacked, strict=True):
            state[name].copy_(self._turned(stacked[i]))
        return net

    def _turned(self, weight: Tensor) -> Tensor:
        """Turn a dense layer's matrix, (out, in) or back: gradients then need no turning."""
        return weight.T if self.dense and weight.ndim == 2 else weight


def _dense_layers(net: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the layers of a plain chain of dense layers, or nothing for another network."""
    if type(net) is MLP and net.embed is None:
        named = [(f"layers.{name}", layer) for name, layer in net.layers.named_children()]
    elif type(net) is nn.Sequential:
        named = list(net.named_children())
    else:
        return []
    known = all(
        (type(layer) is nn.Linear and layer.bias is not None) or type(layer) in ELEMENTWISE
        for _, layer in named
    )
    return copy.deepcopy(named) if known else []
